"""How much one unit may add to a released sum, enforced by the ledger's bounded queries."""

from __future__ import annotations

from dataclasses import dataclass

from dpaudit.base.errors import InputError
from dpaudit.base.fields import Count, Positive, Record

_LEAST = 1e-200
"""Beyond it, and beyond one over it, squares of floats are no numbers."""


@dataclass(frozen=True)
class Contribution(Record):
    """A bound on all that one unit adds to a sum, whatever its data are.

    Attributes:
        bound: largest norm of a unit's part, in the norm of the mechanism: L1 for Laplace noise, L2
            for Gaussian noise. A larger part is scaled down to it.
        rows: how many rows of a unit count, the first ones; None for all of them.
    """

    bound: Positive
    rows: Count | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not _LEAST <= self.bound <= 1 / _LEAST:
            raise InputError(
                f"bound is {self.bound:g}; it must be from {_LEAST:g} to {1 / _LEAST:g}."
            )
