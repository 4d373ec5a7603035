"""What another library says of a certificate's plan, beside what the certificate states.

It is no part of the certificate. Both sides state bounds on one number; they contradict each other
only where a lower bound of one is above an upper bound of the other.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpaudit.base.fields import Record

TOLERANCE = 0.01
"""Relative difference up to which numbers agree: other libraries round on grids, with floats."""


@dataclass(frozen=True)
class SecondOpinion(Record):
    """What another library says of a certificate's plan.

    Attributes:
        library: its name.
        version: its version.
        accountant: which of its accountants answered; None where none did.
        epsilon: its ε, an upper bound; None where it gives none.
        lower: its ε from below; None where that was not needed, or is not to be had.
        delta: the δ of both; None where the certificate proves nothing.
        ours: what the certificate proves of ε, from below and from above; None where it does not.
        agrees: whether the bounds of both can hold; None where there is nothing to compare.
        reason: both numbers and how they compare, or why there is no opinion; one sentence.
    """

    library: str
    version: str
    accountant: str | None
    epsilon: float | None
    lower: float | None
    delta: float | None
    ours: tuple[float | None, float | None]
    agrees: bool | None
    reason: str

    @property
    def contradicts(self) -> bool:
        """Whether its lower bound is above the ε that the certificate proves."""
        upper = self.ours[1]
        return upper is not None and self.lower is not None and exceeds(self.lower, upper)


def exceeds(one: float, other: float) -> bool:
    """Tell whether a number is above another by more than the tolerance."""
    return one > other * (1 + TOLERANCE) + 1e-9
