"""Right and wrong mechanisms with known losses, on which the auditors are measured.

Each module holds one family: small releases, their claims, neighbours and true losses. From the
project's root, ``python -m audits.catalogue`` prints the whole table.
"""

from __future__ import annotations

from . import (
    additive,
    answers,
    gaussian,
    individual,
    local,
    papers,
    published,
    randomness,
    selection,
    shuffled,
    sparse_vector,
    standard,
    training,
    tree,
)
from .floats import FLOATS

ENTRIES = (
    *additive.WRONG,
    *gaussian.WRONG,
    *selection.WRONG,
    *sparse_vector.WRONG,
    *shuffled.WRONG,
    *tree.WRONG,
    *local.WRONG,
    *papers.WRONG,
    *randomness.WRONG,
    *published.WRONG,
    *training.WRONG,
    *answers.WRONG,
    *standard.WRONG,
    *individual.WRONG,
    *additive.RIGHT,
    *gaussian.RIGHT,
    *selection.RIGHT,
    *sparse_vector.RIGHT,
    *shuffled.RIGHT,
    *tree.RIGHT,
    *local.RIGHT,
    *papers.RIGHT,
    *published.RIGHT,
    *training.RIGHT,
    *answers.RIGHT,
    *standard.RIGHT,
    *individual.RIGHT,
)

__all__ = ["ENTRIES", "FLOATS"]
