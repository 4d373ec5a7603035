"""opacus: one step of training, attacked from outside; its accountants have their own table."""

from __future__ import annotations

from audits.libraries.row import Attack, Published, Row

_PIPELINE = "opacus/training.py"
# fmt: off
ROWS = (
    Row("opacus: batch from the number of rows", "opacus", "PrivacyEngine.make_private",
        "training", f"{_PIPELINE}:step", claim="epsilon = 0.8, delta = 1e-5", data="",
        relation="add-remove", attack=Attack([0.0] * 4, [0.0] * 5, 300),
        published=Published("the expected batch follows from the size of the data",
                            "Cebere et al., PETS 2026, arXiv 2602.17454")),
    Row("opacus: one step on all rows", "opacus", "PrivacyEngine.make_private", "training",
        f"{_PIPELINE}:whole", claim="epsilon = 1.8, delta = 1e-5", data="",
        attack=Attack([1.0] * 4, [1.0] * 3 + [-1.0]), right=True),
)
# fmt: on
