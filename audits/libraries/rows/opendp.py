"""OpenDP."""

from __future__ import annotations

from audits.libraries.row import Row

_CHAIN = "opendp/chains.py"
ROWS = (
    Row("OpenDP count", "opendp", "then_count, then_laplace", "count", f"{_CHAIN}:count",
        stated="map", relation="add-remove", right=True),
    Row("OpenDP sum", "opendp", "then_clamp, then_sum, then_laplace", "sum", f"{_CHAIN}:total",
        stated="map", relation="add-remove", right=True),
)  # fmt: skip
