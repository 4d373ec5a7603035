"""Two discrete normal laws, one shifted by whole numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.base.fields import Positive
from dpaudit.mechanisms.pairs.base import DominatingPair, Floats
from dpaudit.mechanisms.pairs.finite import FinitePair
from dpaudit.mechanisms.pairs.gaussian import GaussianPair
from dpaudit.mechanisms.rounding import concentration


@dataclass(frozen=True, eq=False)
class DiscreteNormalTable(FinitePair):
    """A finite cut of the pair that keeps the closed forms of the whole.

    Attributes:
        rho: of zero-concentrated differential privacy.
    """

    rho: float = 0.0

    def renyi(self, orders: ArrayLike) -> Floats:
        """At most α ρ (Canonne, Kamath and Steinke 2020, Theorem 4)."""
        with np.errstate(over="ignore"):
            return np.asarray(orders, dtype=np.float64) * self.rho

    @property
    def zcdp_rho(self) -> float:
        """ρ, rounded up."""
        return math.nextafter(self.rho, math.inf)


@dataclass(frozen=True)
class WideDiscreteNormalPair(DominatingPair):
    """The pair of laws so wide that their tails are those of normal laws, but for two corrections.

    At output k the loss is (2k − s)s/2σ², so that a tail begins at a whole number m. By the
    Euler–Maclaurin formula with midpoints, with z = (m − ½)/σ and the normal density φ,

        P[k ≥ m] = Φ(−z) − z φ(z) / 24σ² + 7 (z³ − 3z) φ(z) / 5760σ⁴ + …,

    whose next term is below a part in 10¹⁸ for σ ≥ 10⁴ wherever φ is a float.

    Attributes:
        sigma: σ, at least 10⁴.
        shift: s, a whole number of at least 1.
    """

    sigma: Positive
    shift: int

    def above(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """Upper tails of the two laws."""
        first = self._first(loss)
        return self._tail(first - self.shift), self._tail(first)

    def below(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """Lower tails of the two laws."""
        first = self._first(loss)
        return self._tail(self.shift - first), self._tail(-first)

    def _first(self, loss: ArrayLike) -> Floats:
        """Half a step before the first output of a larger loss."""
        with np.errstate(over="ignore"):
            last = np.asarray(loss, dtype=np.float64) / self.shift * self.sigma * self.sigma
        first: Floats = np.floor(last + self.shift / 2) + 0.5
        return first

    def _tail(self, start: Floats) -> Floats:
        from scipy.special import ndtr

        wide = self.sigma * self.sigma
        plain, z = ndtr(-start / self.sigma), np.clip(start / self.sigma, -40.0, 40.0)
        density = np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
        change = z / (24 * wide) - 7 * z * (z * z - 3) / (5760 * wide * wide)
        tail: Floats = plain - change * density
        return tail

    @property
    def _normal(self) -> GaussianPair:
        return GaussianPair(self.shift / self.sigma)

    def renyi(self, orders: ArrayLike) -> Floats:
        """At most α ρ (Canonne, Kamath and Steinke 2020, Theorem 4)."""
        return self._normal.renyi(orders)

    @property
    def pure_epsilon(self) -> float:
        """Infinite: the loss is unbounded."""
        return math.inf

    @property
    def zcdp_rho(self) -> float:
        """s²/2σ², rounded up."""
        return math.nextafter(concentration(self.shift / self.sigma, 0.5), math.inf)

    def upper_quantile(self, tail: float) -> float:
        """Take about that of the normal laws."""
        return self._normal.upper_quantile(tail)

    def lower_quantile(self, tail: float) -> float:
        """Take about that of the normal laws."""
        return self._normal.lower_quantile(tail)
