"""Tumult Analytics on Spark, which needs Java; its runs are not rehearsed."""

from __future__ import annotations

from typing import Any

from audits.libraries.row import Row


def _of(name: str, kind: str, offers: str, function: str, **rest: Any) -> Row:
    given = {"stated": "charged", "relation": "add-remove", "environment": "tumult"}
    given |= {"rehearsed": False, "right": True}
    pipeline = f"tmlt/queries.py:{function}"
    return Row(f"Tumult: {name}", "tmlt.analytics", offers, kind, pipeline, **given | rest)


_WORD = "What it costs is the library's word: no theorem here speaks of it."
ROWS = (
    _of("count", "count", "QueryBuilder.count", "count"),
    _of("sum", "sum", "QueryBuilder.sum", "total"),
    _of("mean", "mean", "QueryBuilder.average", "average", queries=2),
    _of("variance", "variance", "QueryBuilder.variance", "variance", queries=3),
    _of("counts by region", "histogram", "QueryBuilder.groupby", "counts", queries=4),
    _of(
        "sums and counts",
        "several",
        "Session.evaluate",
        "totals_and_counts",
        queries=8,
        claim="epsilon = 2",
    ),
    _of("medians", "quantile", "QueryBuilder.median", "medians", queries=4, note=_WORD),
    _of(
        "sums, concentrated",
        "sum",
        "RhoZCDPBudget",
        "concentrated",
        queries=4,
        claim="rho = 0.5, delta = 1e-5",
    ),
)
