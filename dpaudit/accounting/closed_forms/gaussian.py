"""Gaussian differential privacy: the exact composition of Gaussian releases."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from dpaudit.accounting.accountant import Accountant, Composition, Interval
from dpaudit.accounting.inversion import least_epsilon
from dpaudit.accounting.proved import AccountantName
from dpaudit.accounting.terms import Term, terms
from dpaudit.errors import UnsupportedError
from dpaudit.mechanisms.rounding import up
from dpaudit.plan import Invocation

__all__ = ["GaussianAccountant", "GaussianComposition"]

_UNIT = 2.0**-53


@dataclass(frozen=True)
class GaussianComposition(Composition):
    """N(μ, 1) against N(0, 1), the exact composition of Gaussian mechanisms.

    Dong, Roth and Su 2022, Corollary 3.3: μ² adds up. Both ends of an interval are the closed form,
    moved by a bound on its floating-point error.

    Attributes:
        mu: the root of the sum of squares, rounded up.
    """

    mu: float

    def epsilon(self, delta: float) -> Interval:
        """The root of δ(ε) = δ, and for the lower end that of the curve rounded down."""
        if self.mu == 0:
            return Interval(0.0, 0.0)
        high = _chernoff(self.mu, delta)
        if not high < math.inf:
            return Interval(None, math.inf)
        upper = least_epsilon(lambda eps: self.delta(eps).upper - delta, high)
        low_mu = self.mu * (1 - 8 * _UNIT)
        lower = least_epsilon(lambda eps: _delta(low_mu, eps)[0] - delta, high)
        # The upper end of a bisection lies at most one relative 1e-15 above the root.
        return Interval(max(0.0, lower * (1 - 1e-14)), upper)

    def delta(self, epsilon: float) -> Interval:
        """Balle and Wang 2018, Theorem 8."""
        if self.mu == 0:
            return Interval(0.0, 0.0)
        if not self.mu * self.mu < math.inf:
            return Interval(None, 1.0)
        return Interval(*_delta(self.mu, epsilon))

    @property
    def is_exact(self) -> bool:
        """Yes: the composition of Gaussian mechanisms is Gaussian."""
        return True

    @property
    def native(self) -> Mapping[str, Any]:
        """μ."""
        return {"mu": self.mu if self.mu < math.inf else None}


class GaussianAccountant(Accountant):
    """μ-GDP of ledgers that hold nothing but Gaussian mechanisms without sampling."""

    kind: ClassVar[str] = AccountantName.GAUSSIAN
    in_best: ClassVar[bool] = True

    def compose(self, invocations: Sequence[Invocation]) -> GaussianComposition:
        """Add up the squares.

        Raises:
            UnsupportedError: if one of them is sampled or not Gaussian.
        """
        parts = terms(invocations)
        return GaussianComposition(_root(parts))


def _root(parts: Sequence[Term]) -> float:
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
    try:
        # Scaled where the square would underflow.
        scale = 2**600 if total < Fraction(1e-200) else 1
        return up(math.sqrt(total * scale**2) / scale, 2)
    except OverflowError:
        return math.inf


def _chernoff(mu: float, delta: float) -> float:
    """An ε that is large enough: μ²/2 + μ √(2 ln 1/δ), from the Gaussian tail of the loss."""
    if delta <= 0:
        return math.inf
    return up(mu * mu / 2 + mu * math.sqrt(2 * -math.log(delta)), 64) * (1 + 1e-12)


def _delta(mu: float, epsilon: float) -> tuple[float, float]:
    """The closed form less and plus a bound on its rounding error.

    Each of the two terms is off by a few units in the last place, and by the rounding of its
    exponent a²/2, ε or of erfcx's argument; their difference keeps these absolute errors.
    """
    from scipy.special import erfcx, ndtr

    a, b = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    if a > 40:
        return 0.0, 5e-324  # the tail is below e^-800
    if a > -5:
        scale = math.exp(-a * a / 2) / 2
        first = scale * float(erfcx(a / math.sqrt(2.0)))
        value = first - scale * float(erfcx(b / math.sqrt(2.0)))
        size = first
    else:
        first = float(ndtr(-a))
        second = math.exp(min(epsilon + _log_tail(b), 0.0))
        value, size = first - second, first + second
    # The argument a itself is off by a unit of ε/μ; it moves the tail by its hazard, about 1 + |a|.
    argument = _UNIT * (2 * abs(epsilon / mu) + mu) * (1 + abs(a))
    error = size * (16 * _UNIT + 4 * argument + _UNIT * (a * a + 2 * abs(epsilon) * (a <= -5)))
    return max(0.0, value - error), min(1.0, max(value, 0.0) + error)


def _log_tail(b: float) -> float:
    """Ln Φ(−b)."""
    from scipy.special import log_ndtr

    return float(log_ndtr(-b))
