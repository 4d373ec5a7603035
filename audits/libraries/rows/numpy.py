"""Noise of numpy and scipy, as people write it themselves; the plan says the sensitivity."""

from __future__ import annotations

from typing import Any

from audits.libraries.row import Attack, Published, Row

_MU = "mu = {}"


def _of(name: str, kind: str, offers: str, function: str, **rest: Any) -> Row:
    plan = "" if rest.get("data") == "" else f"numpy_{function}.toml"
    given = {"stated": "home-made", "plan": plan} | rest
    return Row(f"home-made: {name}", "numpy", offers, kind, f"numpy/simple.py:{function}", **given)


def _smoking(*smokes: int) -> list[dict[str, Any]]:
    return [{"age": 50, "smokes": each, "region": "east"} for each in smokes]


_ADDED: dict[str, Any] = {"relation": "add-remove"}
_TRUE: dict[str, Any] = {"right": True}
_LAPLACE, _NORMAL = "Generator.laplace", "Generator.normal"
ROWS = (
    _of("sum", "sum", _LAPLACE, "total", **_ADDED, **_TRUE),
    _of("sum that clips nothing", "sum", _LAPLACE, "unclipped_total", **_ADDED,
        attack=Attack([{"age": 50}], [{"age": 50}, {"age": 1000}])),
    _of("mean", "mean", _LAPLACE, "mean", claim="epsilon = 1.0000001", **_TRUE),
    _of("mean, noise by the largest value", "mean", _LAPLACE, "mean_of_range",
        claim="epsilon = 1.13",
        attack=Attack([{"age": 1}] * 3, [{"age": 1}] * 2 + [{"age": 100}])),
    _of("histogram", "histogram", _LAPLACE, "histogram", queries=4, **_ADDED, **_TRUE),
    _of("two means", "several", _NORMAL, "means", queries=2, claim=_MU.format(0.375), **_TRUE),
    _of("sum and squares", "several", _LAPLACE, "moments", queries=2, **_TRUE),
    _of("twenty thresholds", "several", _LAPLACE, "thresholds", queries=20, **_TRUE),
    _of("running counts", "several", _LAPLACE, "running", queries=6, **_TRUE),
    _of("twenty thresholds for one", "several", _LAPLACE, "cheap_thresholds", queries=20,
        attack=Attack([{"age": 0}], [{"age": 100}])),
    _of("sum of gradients", "training", _NORMAL, "gradient", claim=_MU.format(0.5), **_TRUE),
    _of("five steps of gradients", "training", _NORMAL, "steps", queries=5,
        claim=_MU.format(0.5), **_TRUE),
    _of("count, scipy.stats.laplace", "count", "stats.laplace", "frozen", **_TRUE),
    _of("count, scipy.stats.dlaplace", "count", "stats.dlaplace", "whole", **_TRUE),
    _of("largest of four, and its size", "selection", _LAPLACE, "loudest", queries=5,
        claim="epsilon = 2", **_ADDED, **_TRUE),
    _of("randomised response", "randomised response", "Generator.random", "answer", data="",
        attack=Attack(_smoking(0), _smoking(1), 5_000), **_TRUE),
    _of("noisy max", "selection", "Generator.exponential", "one_sided", data="",
        attack=Attack(_smoking(0), _smoking(0, 0), 5_000), **_ADDED, **_TRUE),
    _of("two counts, one draw", "several", _LAPLACE, "reused", queries=2, data="",
        attack=Attack(_smoking(0), _smoking(1))),
    _of("lowest bits of a count", "mechanism", _LAPLACE, "lowest_bits", data="",
        attack=Attack(_smoking(0), _smoking(1), 10_000),
        note="The pipeline looks at the bits, as the source does; the attack is any other's.",
        published=Published("the lowest bits of floats", "Mironov, CCS 2012")),
)  # fmt: skip
