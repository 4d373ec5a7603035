"""Two normal laws of the same variance.

Normal noise of every kind returns this pair. δ(ε) has a bound on its own rounding error, so that
both ends of an accountant's interval are valid.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.mechanisms.inversion import first_float, least_epsilon
from dpaudit.mechanisms.pairs.base import DominatingPair, Floats
from dpaudit.mechanisms.pairs.normal_curve import normal_curve
from dpaudit.mechanisms.rounding import concentration, round_up, up

_LEAST_SHIFT, _LARGEST_SHIFT = 1e-300, 1e155


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
        """Closed form (Balle and Wang 2018, Theorem 8)."""
        asked = np.asarray(epsilon, dtype=np.float64)
        found = [math.fsum(self.delta_ends(one)) / 2 for one in asked.ravel().tolist()]
        return np.array(found, dtype=np.float64).reshape(asked.shape)

    def delta_ends(self, epsilon: float) -> tuple[float, float]:
        """δ(ε) less and plus a bound on its rounding error, for any real ε."""
        trivial = max(-math.expm1(min(epsilon, 0.0)), 0.0)
        if self.mu == 0:
            return trivial, trivial
        if self.mu == math.inf:
            return 1.0, 1.0
        value, error = normal_curve(self.mu, abs(epsilon))
        if epsilon < 0:  # of symmetric pairs: δ(−ε) = 1 − e^−ε + e^−ε δ(ε)
            value = trivial + math.exp(epsilon) * value
            error += 2.0**-50 * value
        return max(value - error, 0.0), min(value + error, 1.0)

    def least_epsilon(self, delta: float) -> float:
        """The least ε ≥ 0 at δ in [0, 1), rounded up; infinite where no float holds it."""
        if self.mu == 0:
            return 0.0
        # μ²/2 + μ √(2 ln 1/δ), from the Gaussian tail of the loss, is large enough.
        reach = math.sqrt(-2 * math.log(delta)) if delta > 0 else math.inf
        high = self.mu * (self.mu / 2 + reach) * (1 + 1e-12) + 1e-320
        if not high < math.inf:
            return math.inf
        return least_epsilon(lambda epsilon: self.delta_ends(epsilon)[1], delta, high)

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
        """μ²/2 plus normal quantiles; infinity where no float holds the square."""
        mean = self.mu * self.mu / 2
        return mean + self.mu * _normal_reach(tail) if mean < math.inf else mean

    def lower_quantile(self, tail: float) -> float:
        """μ²/2 less normal quantiles; infinity where no float holds the square."""
        mean = self.mu * self.mu / 2
        return mean - self.mu * _normal_reach(tail) if mean < math.inf else mean


def _normal_reach(tail: float) -> float:
    from scipy.special import ndtri

    return -float(ndtri(max(tail, 1e-300)))


def normal_pair(distance: Fraction | float, deviation: Fraction | float) -> GaussianPair:
    """The pair of two normal laws so far apart; μ, the quotient, is rounded to the nearest float.

    Where the quotient underflows, a float above it stands for it.
    """
    if not distance:
        return GaussianPair(0.0)
    if isinstance(distance, float) and isinstance(deviation, float):
        return GaussianPair(max(distance / deviation, _LEAST_SHIFT))
    return GaussianPair(max(round_up(Fraction(distance) / Fraction(deviation)), _LEAST_SHIFT))


def least_deviation(
    pair: Callable[[float], GaussianPair], *, epsilon: float, delta: float
) -> float:
    """The least float σ for which the pair is (ε, δ)-private, as accountants round it.

    They take μ for one unit in its last place more than it is, and the upper end of ε at δ.

    Args:
        pair: of each σ; μ falls with it.
        epsilon: ε of at least 0.
        delta: δ in (0, 1).

    Raises:
        InputError: if there is none.
    """
    epsilon = validate.non_negative(epsilon=epsilon)
    delta = validate.open_fraction(delta=delta)

    def exceeds(shift: float) -> bool:
        return math.fsum(normal_curve(max(shift, _LEAST_SHIFT), epsilon)) > delta

    shift, step = first_float(exceeds, _LARGEST_SHIFT), 2.0**-52
    while shift >= _LEAST_SHIFT and GaussianPair(up(shift)).least_epsilon(delta) > epsilon:
        shift, step = shift * (1 - step), 2 * step
    largest = sys.float_info.max
    if shift < _LEAST_SHIFT or pair(largest).mu > shift:
        raise InputError(
            f"epsilon is {epsilon} and delta is {delta}; no noise that floats hold meets both, so "
            "one of them must be larger."
        )
    return first_float(lambda sigma: sigma > 0 and pair(sigma).mu <= shift, largest)
