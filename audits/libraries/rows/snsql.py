"""SmartNoise SQL, which needs an OpenDP of its own."""

from __future__ import annotations

from typing import Any

from audits.libraries.row import Published, Row


def _of(name: str, kind: str, offers: str, function: str, cost: int = 1, **rest: Any) -> Row:
    given = {"claim": f"epsilon = {cost}, delta = 1e-5", "stated": "charged"}
    given |= {"relation": "add-remove", "environment": "smartnoise-sql"}
    pipeline = f"snsql/queries.py:{function}"
    return Row(f"SmartNoise SQL: {name}", "smartnoise-sql", offers, kind, pipeline, **given | rest)


_TRUE: dict[str, Any] = {"right": True}
_SQUARES = Published(
    "noise of a sum of squares follows the bounds of the values",
    "smartnoise-sdk issue 203 on GitHub (2020)",
    "1.0.10 at the latest",
)
ROWS = (
    _of("count", "count", "COUNT", "count", **_TRUE),
    _of("sum", "sum", "SUM", "total", **_TRUE),
    _of("mean", "mean", "AVG", "mean", 2, queries=2, **_TRUE),
    _of("variance", "variance", "VAR", "variance", 3, queries=3, published=_SQUARES, **_TRUE),
    _of("three numbers", "several", "SELECT", "several", 3, queries=3, **_TRUE),
    _of("Gaussian noise", "several", "Mechanism.gaussian", "gaussian", 2, queries=2, **_TRUE),
    _of("two queries", "several", "PrivateReader.execute", "two_queries", 2, queries=2, **_TRUE),
    _of(
        "groups",
        "histogram",
        "GROUP BY",
        "by_region",
        queries=4,
        documented="censor_dims: False shows groups that one unit may make",
    ),
    _of(
        "groups, rare ones hidden",
        "histogram",
        "censor_dims",
        "hidden_regions",
        2,
        queries=4,
        note="How many groups there are is private: a rehearsal cannot compare them one by one.",
    ),
)
