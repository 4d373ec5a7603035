"""Right and wrong mechanisms with known losses, on which the auditors are measured.

Each module holds one family: small releases, their claims, neighbours and true losses. From the
project's root, ``python -m audits.catalogue`` prints the whole table.
"""

from __future__ import annotations

from importlib import import_module

from audits.catalogue.generators import FLOATS

_NAMES = (
    "additive gaussian selection sparse_vector shuffled tree local papers generators published "
    "training answers standard individual"
)
FAMILIES = tuple(import_module(f"{__name__}.{name}") for name in _NAMES.split())
ENTRIES = (
    *(entry for family in FAMILIES for entry in family.WRONG),
    *(entry for family in FAMILIES for entry in family.RIGHT),
)

__all__ = ["ENTRIES", "FLOATS"]
