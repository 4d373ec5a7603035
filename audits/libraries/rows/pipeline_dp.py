"""PipelineDP on its local backend."""

from __future__ import annotations

from typing import Any

from audits.libraries.row import Row


def _of(name: str, kind: str, offers: str, function: str, **rest: Any) -> Row:
    given = {"claim": "epsilon = 1, delta = 1e-6", "stated": "charged", "relation": "add-remove"}
    pipeline = f"pipeline_dp/aggregates.py:{function}"
    return Row(f"PipelineDP: {name}", "pipeline-dp", offers, kind, pipeline, **given | rest)


_TRUE: dict[str, Any] = {"right": True}
_WORD = "What it costs is the library's word: no theorem here speaks of it."
ROWS = (
    _of("sums", "sum", "Metrics.SUM", "total", queries=4, **_TRUE),
    _of("counts", "count", "Metrics.COUNT", "count", queries=4, **_TRUE),
    _of("numbers of people", "count", "Metrics.PRIVACY_ID_COUNT", "people", queries=4, **_TRUE),
    _of("means", "mean", "Metrics.MEAN", "mean", queries=8, **_TRUE),
    _of("variances", "variance", "Metrics.VARIANCE", "variance", queries=12, **_TRUE),
    _of("three metrics", "several", "AggregateParams.metrics", "several", queries=12, **_TRUE),
    _of("Gaussian noise", "several", "NoiseKind.GAUSSIAN", "gaussian", queries=8, **_TRUE),
    _of("medians", "quantile", "Metrics.PERCENTILE", "medians", queries=4, note=_WORD, **_TRUE),
    _of(
        "private partitions",
        "selection",
        "public_partitions=None",
        "private_regions",
        note=_WORD,
        **_TRUE,
    ),
)
