"""Noise of torch, as people write it themselves; the plan says the sensitivity."""

from __future__ import annotations

from typing import Any

from audits.libraries.row import Attack, Row


def _of(name: str, kind: str, offers: str, function: str, **rest: Any) -> Row:
    given = {"stated": "home-made", "plan": f"torch_{function}.toml"} | rest
    pipeline = f"torch/simple.py:{function}"
    return Row(f"home-made, torch: {name}", "torch", offers, kind, pipeline, **given)


_ADDED: dict[str, Any] = {"relation": "add-remove"}
_TRUE: dict[str, Any] = {"right": True}
_LAPLACE = "distributions.Laplace"
ROWS = (
    _of("sum", "sum", _LAPLACE, "total", **_ADDED, **_TRUE),
    _of("mean", "mean", "normal", "mean", claim="mu = 0.278", **_TRUE),
    _of("two means", "several", "randn", "both", queries=2, claim="mu = 0.375", **_TRUE),
    _of(
        "five steps",
        "training",
        "Tensor.normal_",
        "steps",
        queries=5,
        claim="mu = 0.25",
        **_ADDED,
        **_TRUE,
    ),
    _of("histogram", "histogram", _LAPLACE, "histogram", queries=4, **_ADDED, **_TRUE),
    _of("two means, one noise", "several", "randn", "one_noise", queries=2, claim="mu = 0.4"),
    _of(
        "sum that clips nothing",
        "sum",
        _LAPLACE,
        "unclipped",
        **_ADDED,
        attack=Attack([{"age": 50}], [{"age": 50}, {"age": 1000}]),
    ),
)
