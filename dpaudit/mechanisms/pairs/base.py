"""What every dominating pair is: the two tails of its privacy loss.

Every mechanism returns one, and every accountant asks for nothing else. Tails must be accurate
where they are small, and both directions cost the same.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.base.fields import Checked
from dpaudit.mechanisms.rounding import concentration

Floats = NDArray[np.float64]

NORMAL = 1e-290
"""Masses below may have lost precision."""

_FAR = 1e15
"""A loss beyond all that are of interest."""


@dataclass(frozen=True, eq=False)
class DominatingPair(Checked, ABC):
    """A symmetric pair (P, Q), seen through its privacy loss L = ln dP/dQ.

    All methods take and return arrays of any shape; losses and orders may be any real numbers. A
    mechanism with finitely many losses needs no class of its own, but a
    :class:`~dpaudit.mechanisms.FinitePair`.
    """

    has_law: ClassVar[bool] = True
    """Whether :meth:`above` and :meth:`below` are known, and not a bound on divergences alone."""
    is_attained: ClassVar[bool] = True
    """Whether two neighbours have this law, so that composed uses cost what the composed law does.
    Where not, each point of the curve is attained, but by other neighbours than the next: the curve
    is exact for one use, and a bound from above for several."""

    @abstractmethod
    def above(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """(P[L > loss], Q[L > loss]), accurate relative to themselves in the upper tail."""

    @abstractmethod
    def below(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """(P[L <= loss], Q[L <= loss]), accurate relative to themselves in the lower tail."""

    @abstractmethod
    def renyi(self, orders: ArrayLike) -> Floats:
        """Rényi divergence of P from Q, for orders above 1."""

    @property
    @abstractmethod
    def pure_epsilon(self) -> Fraction | float:
        """The largest loss: exact where it is rational, rounded up where not, or infinity."""

    @property
    def gaussian_mu(self) -> float | None:
        """The μ of Gaussian differential privacy where the pair is N(μ, 1) against N(0, 1)."""
        return None

    @property
    def zcdp_rho(self) -> float:
        """The ρ of zero-concentrated differential privacy, or infinity.

        A pure ε gives ρ = ε²/2 (Bun and Steinke 2016, Proposition 1.4). It is that of the
        mechanism, which may be less than the pair's own.
        """
        return concentration(self.pure_epsilon, 0.5)

    def delta(self, epsilon: ArrayLike) -> Floats:
        """Hockey-stick divergence P[L > ε] − e^ε Q[L > ε], for any real ε."""
        epsilon = np.asarray(epsilon, dtype=np.float64)
        p, q = self.above(epsilon)
        # A subnormal q may be above the truth by half, so beyond e^700 it counts as nothing.
        held = q > np.where(epsilon > 700, NORMAL, 0.0)
        exponent = np.where(held, epsilon + np.log(np.where(held, q, 1.0)), -np.inf)
        scaled = np.exp(np.minimum(exponent, 1.0))
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = np.where(held & (epsilon <= 700), np.exp(epsilon) * q, scaled)
        clipped: Floats = np.clip(p - scaled, 0.0, 1.0)
        return clipped

    # -- where the law lies, for grids -----------------------------------------------------------

    def upper_quantile(self, tail: float) -> float:
        """A loss with at most about ``tail`` of the P-mass above it, mass at infinity apart."""
        infinite = float(self.above(np.inf)[0])
        return _least(lambda loss: float(self.above(loss)[0]) - infinite <= tail)

    def lower_quantile(self, tail: float) -> float:
        """A loss with at most about ``tail`` of the P-mass below it."""
        return -_least(lambda loss: float(self.below(-loss)[0]) <= tail)

    @property
    def span(self) -> float | None:
        """A loss that a grid should divide, because the law has atoms there; or None."""
        return None


def _least(enough: Callable[[float], bool]) -> float:
    """The least loss, to a thousandth of its distance from 0, from which on ``enough`` holds."""
    inside = enough(0.0)
    step = 1e-6
    while enough(-step if inside else step) == inside:
        step *= 2
        if step > _FAR:
            return 0.0 if inside else step
    low, high = (-step, -step / 2) if inside else (step / 2, step)
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
