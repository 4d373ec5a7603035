"""Noise of numpy and scipy, as people write it themselves; the plan says the sensitivity."""

from __future__ import annotations

from audits.libraries.row import Attack, Row

_SIMPLE = "numpy/simple.py"
ROWS = (
    Row("home-made sum", "numpy", "Generator.laplace", "sum", f"{_SIMPLE}:total",
        stated="home-made", relation="add-remove", plan="numpy_total.toml", right=True),
    Row("home-made sum that clips nothing", "numpy", "Generator.laplace", "sum",
        f"{_SIMPLE}:unclipped_total", stated="home-made", relation="add-remove",
        plan="numpy_unclipped_total.toml",
        attack=Attack([{"age": 50}], [{"age": 50}, {"age": 1000}])),
)  # fmt: skip
