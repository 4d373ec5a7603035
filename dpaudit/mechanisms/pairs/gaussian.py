"""Two normal laws of the same variance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from dpaudit import validate
from dpaudit.mechanisms.pairs.base import DominatingPair, Floats
from dpaudit.mechanisms.rounding import concentration

__all__ = ["GaussianPair"]


def _shift(**field: Any) -> float:
    """A number of at least 0, or infinity where the noise is below all floats."""
    (value,) = field.values()
    return math.inf if value == math.inf else validate.non_negative(**field)


@dataclass(frozen=True)
class GaussianPair(DominatingPair):
    """N(μ, 1) against N(0, 1); L is N(μ²/2, μ²) under P (Balle and Wang 2018, Lemma 3).

    Attributes:
        mu: the shift in standard deviations, at least 0.
    """

    mu: Annotated[float, _shift]

    def above(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """Normal upper tails."""
        from scipy.special import ndtr

        if not 0 < self.mu < math.inf:
            return self._degenerate(loss, above=True)
        z = self._standard(loss)
        return ndtr(self.mu / 2 - z), ndtr(-self.mu / 2 - z)

    def below(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """Normal lower tails."""
        from scipy.special import ndtr

        if not 0 < self.mu < math.inf:
            return self._degenerate(loss, above=False)
        z = self._standard(loss)
        return ndtr(z - self.mu / 2), ndtr(z + self.mu / 2)

    def _standard(self, loss: ArrayLike) -> Floats:
        with np.errstate(over="ignore"):
            standard: Floats = np.asarray(loss, dtype=np.float64) / self.mu
        return standard

    def _degenerate(self, loss: ArrayLike, *, above: bool) -> tuple[Floats, Floats]:
        """Tails of a loss that is always 0, or always infinite, with its sign."""
        loss = np.asarray(loss, dtype=np.float64)
        if self.mu == 0:
            tail = np.where((loss < 0) == above, 1.0, 0.0)
            return tail, tail
        return np.full(loss.shape, float(above)), np.full(loss.shape, float(not above))

    def delta(self, epsilon: ArrayLike) -> Floats:
        """Closed form (Balle and Wang 2018, Theorem 8), by scaled tails so that nothing cancels.

        With a = ε/μ − μ/2 and b = ε/μ + μ/2, δ = φ(a) (m(a) − m(b)), where m = Φ(−x)/φ(x) is the
        Mills ratio; the two terms then share one scale.
        """
        from scipy.special import erfcx, ndtr

        epsilon = np.asarray(epsilon, dtype=np.float64)
        if self.mu == 0:
            trivial: Floats = np.maximum(-np.expm1(epsilon), 0.0)
            return trivial
        root = math.sqrt(2.0)
        with np.errstate(over="ignore", invalid="ignore"):
            a = epsilon / self.mu - self.mu / 2
            b = epsilon / self.mu + self.mu / 2
            safe = np.maximum(a, -5.0)
            mills = erfcx(safe / root) - erfcx(np.maximum(b, safe) / root)
            tail = np.exp(-safe * safe / 2) / 2 * mills
            bulk = ndtr(-a) - np.exp(epsilon) * ndtr(-b)
        curve: Floats = np.clip(np.where(a > -5.0, tail, bulk), 0.0, 1.0)
        return curve

    def renyi(self, orders: ArrayLike) -> Floats:
        """α μ²/2 (Mironov 2017, Corollary 3)."""
        with np.errstate(over="ignore"):
            curve: Floats = np.asarray(orders, dtype=np.float64) * (self.mu * self.mu / 2)
        return curve

    @property
    def pure_epsilon(self) -> Fraction | float:
        """Infinite: the Gaussian loss is unbounded."""
        return math.inf if self.mu > 0 else Fraction(0)

    @property
    def zcdp_rho(self) -> float:
        """μ²/2 (Bun and Steinke 2016, Proposition 1.6)."""
        return concentration(self.mu, 0.5)

    @property
    def gaussian_mu(self) -> float | None:
        """μ itself."""
        return self.mu

    def upper_quantile(self, tail: float) -> float:
        """μ²/2 plus normal quantiles."""
        return self.mu * self.mu / 2 + self.mu * _normal_reach(tail)

    def lower_quantile(self, tail: float) -> float:
        """μ²/2 less normal quantiles."""
        return self.mu * self.mu / 2 - self.mu * _normal_reach(tail)


def _normal_reach(tail: float) -> float:
    from scipy.special import ndtri

    return -float(ndtri(max(tail, 1e-300)))
