"""diffprivlib, by IBM."""

from __future__ import annotations

from audits.libraries.row import Row

_QUERY = "diffprivlib/queries.py"
ROWS = (
    Row("diffprivlib mean", "diffprivlib", "tools.mean", "mean", f"{_QUERY}:mean", right=True),
    Row("diffprivlib mean, no bounds", "diffprivlib", "tools.mean", "mean",
        f"{_QUERY}:mean_without_bounds",
        documented="PrivacyLeakWarning: bounds are then taken from the data"),
    Row("diffprivlib sum", "diffprivlib", "tools.sum", "sum", f"{_QUERY}:total", right=True),
    Row("diffprivlib count", "diffprivlib", "tools.count_nonzero", "count", f"{_QUERY}:count",
        right=True),
)  # fmt: skip
