"""mbi (Private-PGM): estimates from noisy marginals, whose noise is numpy's."""

from __future__ import annotations

from typing import Any

from audits.libraries.row import Row


def _of(name: str, kind: str, function: str, **rest: Any) -> Row:
    given = {"stated": "home-made", "relation": "add-remove", "environment": "mbi"}
    plan, offers = f"mbi_{function}.toml", "estimation.MirrorDescent"
    pipeline = f"mbi/marginals.py:{function}"
    return Row(f"mbi: {name}", "mbi", offers, kind, pipeline, plan=plan, **given | rest)


_TRUE: dict[str, Any] = {"right": True}
_SIXTH = {"claim": "epsilon = 0.1667"}
ROWS = (
    _of("one marginal", "marginal", "one_marginal", **_SIXTH, **_TRUE),
    _of("three marginals", "several", "three_marginals", queries=3, claim="epsilon = 0.5", **_TRUE),
    _of(
        "three marginals, Gaussian",
        "several",
        "gaussian_marginals",
        queries=3,
        claim="mu = 0.4331",
        **_TRUE,
    ),
    _of(
        "marginal and number of rows",
        "several",
        "total_too",
        queries=2,
        claim="epsilon = 0.6667",
        **_TRUE,
    ),
    _of("synthetic table", "synthesis", "synthetic", **_SIXTH, **_TRUE),
    _of("marginal, scaled to the exact number of rows", "marginal", "exact_total", **_SIXTH),
)
