"""Gaussian differential privacy: the exact composition of Gaussian releases."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from dpaudit.accounting.accountant import Accountant, Composition, Interval
from dpaudit.accounting.proved import AccountantName
from dpaudit.accounting.terms import Term, attained, terms
from dpaudit.base.errors import UnsupportedError
from dpaudit.mechanisms import GaussianPair
from dpaudit.mechanisms.rounding import up
from dpaudit.plan import Invocation


@dataclass(frozen=True)
class GaussianComposition(Composition):
    """N(μ, 1) against N(0, 1), the exact composition of Gaussian mechanisms.

    Dong, Roth and Su 2022, Corollary 3.3: μ² adds up. Both ends of an interval are the closed form,
    moved by a bound on its floating-point error.

    Attributes:
        mu: the root of the sum of squares, rounded up.
        is_attained: whether the invocations may cost as much, so that there is a lower end.
    """

    is_exact = True  # the composition of Gaussian mechanisms is Gaussian
    mu: float
    is_attained: bool = True

    def epsilon(self, delta: float) -> Interval:
        """The root of δ(ε) = δ, and the first ε below at which δ(ε), rounded down, is larger."""
        upper = GaussianPair(self.mu).least_epsilon(delta)
        if upper == math.inf or not self.is_attained:
            return Interval(None, upper)
        lower, step = upper, max(2.0**-46 * upper, 5e-324)
        while lower > 0 and self._least.delta_ends(lower)[0] <= delta:
            lower, step = max(lower - step, 0.0), 2 * step
        return Interval(lower, upper)

    def delta(self, epsilon: float) -> Interval:
        """Balle and Wang 2018, Theorem 8."""
        lower = self._least.delta_ends(epsilon)[0] if self.is_attained else None
        return Interval(lower, GaussianPair(self.mu).delta_ends(epsilon)[1])

    @property
    def _least(self) -> GaussianPair:
        """The pair of the μ that was rounded up, at least; of floats that stand for less, none."""
        return GaussianPair(self.mu * (1 - 2.0**-50) if self.mu > 1e-290 else 0.0)

    @property
    def native(self) -> Mapping[str, Any]:
        """μ."""
        return {"mu": self.mu if self.mu < math.inf else None}


class GaussianAccountant(Accountant):
    """μ-GDP of ledgers that hold nothing but Gaussian mechanisms without sampling."""

    kind: ClassVar[str] = AccountantName.GAUSSIAN

    def compose(self, invocations: Sequence[Invocation]) -> GaussianComposition:
        """Add up the squares.

        Raises:
            UnsupportedError: if one of them is sampled or not Gaussian.
        """
        parts = terms(invocations)
        return GaussianComposition(_root_of_squares(parts), attained(parts))


def _root_of_squares(parts: Sequence[Term]) -> float:
    """The root of Σ count μ², rounded up."""
    total = Fraction(0)
    for part in parts:
        mu = part.pair.gaussian_mu
        if mu is None or part.amplification is not None:
            raise UnsupportedError(
                f"{part.invocation.describe()} is not a Gaussian mechanism without sampling; "
                "the gaussian accountant takes nothing else."
            )
        if not mu < math.inf:
            return math.inf
        total += part.count * Fraction(up(mu)) ** 2
    if len(parts) == 1 and parts[0].count == 1:
        return up(float(parts[0].pair.gaussian_mu or 0.0))
    try:
        # Scaled where the square would underflow.
        scale = 2**600 if total < Fraction(1e-200) else 1
        return up(math.sqrt(total * scale**2) / scale, 2)
    except OverflowError:
        return math.inf
