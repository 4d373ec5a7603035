"""Right and wrong mechanisms with known losses, on which the auditors are measured.

Each module holds one family: small releases, their claims, neighbours and true losses. From the
project's root, ``python -m audits.catalogue`` prints the whole table.
"""

from __future__ import annotations

from audits.catalogue import (
    additive,
    answers,
    gaussian,
    generators,
    individual,
    local,
    papers,
    published,
    selection,
    shuffled,
    sparse_vector,
    standard,
    training,
    tree,
)
from audits.catalogue.generators import FLOATS

FAMILIES = (
    additive,
    gaussian,
    selection,
    sparse_vector,
    shuffled,
    tree,
    local,
    papers,
    generators,
    published,
    training,
    answers,
    standard,
    individual,
)
ENTRIES = (
    *(entry for family in FAMILIES for entry in family.WRONG),
    *(entry for family in FAMILIES for entry in family.RIGHT),
)

__all__ = ["ENTRIES", "FLOATS"]
