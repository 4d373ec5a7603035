"""OpenDP: what it offers. What others found wrong stands in a module of its own."""

from __future__ import annotations

from typing import Any

from audits.libraries.row import Attack, Row


def _of(name: str, kind: str, offers: str, pipeline: str, **rest: Any) -> Row:
    given = {"stated": "map", "relation": "add-remove", "right": True} | rest
    return Row(f"OpenDP: {name}", "opendp", offers, kind, f"opendp/{pipeline}", **given)


_EAST = [{"region": "east"}, {"region": "west"}]
_REPLACED: dict[str, Any] = {"relation": "replace-one"}
ROWS = (
    _of("count", "count", "then_count, then_laplace", "chains.py:count"),
    _of("count, Gaussian", "count", "then_gaussian", "chains.py:gaussian_count",
        claim="rho = 0.5"),
    _of("distinct values", "count", "then_count_distinct", "chains.py:distinct"),
    _of("sum", "sum", "then_clamp, then_sum", "chains.py:total"),
    _of("sum of floats", "sum", "then_sum of a sized domain", "chains.py:real_total", **_REPLACED),
    _of("mean", "mean", "then_mean", "chains.py:mean", **_REPLACED),
    _of("variance", "variance", "then_variance", "chains.py:variance", **_REPLACED),
    _of("histogram", "histogram", "then_count_by_categories", "chains.py:histogram", queries=4),
    _of("histogram, a row replaced", "histogram", "then_count_by_categories",
        "chains.py:histogram", queries=4, claim="epsilon = 2", **_REPLACED),
    _of("histogram, Gaussian", "histogram", "then_count_by_categories, then_gaussian",
        "chains.py:gaussian_histogram", queries=4, claim="rho = 0.5"),
    _of("histogram of unknown keys", "histogram", "then_laplace_threshold",
        "chains.py:known_keys", queries=4, claim="epsilon = 1, delta = 1e-5"),
    _of("median", "quantile", "then_quantile_score_candidates, then_noisy_max",
        "chains.py:median"),
    _of("noisy max", "selection", "make_noisy_max", "chains.py:commonest", data="",
        attack=Attack(_EAST, [*_EAST, _EAST[0]], 5_000)),
    _of("binary tree", "histogram", "then_b_ary_tree", "chains.py:tree", queries=7),
    _of("randomised response", "randomised response", "make_randomized_response_bool",
        "chains.py:answer", **_REPLACED),
    _of("randomised response of four", "randomised response", "make_randomized_response",
        "chains.py:word", **_REPLACED),
    _of("context of two", "several", "Context", "contexts.py:pair", queries=2),
    _of("context of four", "several", "Context", "contexts.py:four", queries=4),
    _of("context of two, Gaussian", "several", "Context", "contexts.py:gaussian_pair", queries=2,
        claim="rho = 0.5"),
    _of("context that adapts", "several", "Context", "contexts.py:adaptive", queries=2),
    _of("composition of twenty", "several", "make_composition", "contexts.py:thresholds",
        queries=20),
    _of("compositor of twenty", "several", "make_adaptive_composition", "contexts.py:compositor",
        queries=20),
    _of("compositor of twenty, Gaussian", "several", "make_adaptive_composition",
        "contexts.py:gaussian_compositor", queries=20, claim="rho = 0.5"),
    _of("three responses", "several", "make_randomized_response_bool", "contexts.py:responses",
        queries=3, **_REPLACED),
)  # fmt: skip
