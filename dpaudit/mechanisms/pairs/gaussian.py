"""Pairs of two normal laws of the same variance, and of two discrete ones.

Normal noise of every kind returns the first. δ(ε) has a bound on its own rounding error wherever
floats reach, so that both ends of an accountant's interval are valid.
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
from dpaudit.base.fields import Positive
from dpaudit.mechanisms.pairs.base import DominatingPair, Floats
from dpaudit.mechanisms.pairs.finite import FinitePair
from dpaudit.mechanisms.rounding import concentration, first_float, least_epsilon, round_up, up

_UNIT = 2.0**-53
_SHORT, _LONG = (
    [(float(node) / 2, float(weight) / 2) for node, weight in zip(*rule, strict=True)]
    for rule in map(np.polynomial.legendre.leggauss, (3, 8))
)
_SPLIT = 2.0**27 + 1
_VANISHED = 39.2
"""The tail beyond it is below all floats."""


def normal_curve(mu: float, epsilon: float) -> tuple[float, float]:
    """δ(ε) of N(μ, 1) against N(0, 1), for ε of at least 0, and what it may be off by.

    Balle and Wang 2018, Theorem 8: with a = ε/μ − μ/2 and b = a + μ, δ = Φ(−a) − e^ε Φ(−b). As
    e^ε φ(b) = φ(a), this is φ(a) (m(a) − m(b)) with the Mills ratio m(x) = Φ(−x)/φ(x), or
    1 − φ(a) (m(−a) + m(b)): nothing overflows. Where the two ratios are close, their difference is
    the integral of −m'. What is left are the roundings of a, whose square scales φ(a), and some
    units in the last place of each factor.

    Args:
        mu: μ, above 0 and finite.
        epsilon: ε.
    """
    a, b = _arguments(mu, epsilon)
    if a > _VANISHED:
        return 0.0, 5e-324
    if a < -_VANISHED:
        return 1.0, 2 * _UNIT
    density = math.exp(-a * a / 2) / math.sqrt(2 * math.pi)
    relative = (4 * a * a + 256) * _UNIT
    if a < -1:
        rest = density * (_mills(-a) + _mills(b))
        return 1 - rest, rest * relative + 2 * _UNIT
    first, second = _mills(a), _mills(b)
    fall = first - second
    if second > 0.9 * first:
        rule = _SHORT if second > 0.99 * first else _LONG
        fall = mu * math.fsum(weight * _slope(a + mu * (0.5 + node)) for node, weight in rule)
    tail = density * fall
    return tail, tail * relative + 2e-323


def _arguments(mu: float, epsilon: float) -> tuple[float, float]:
    """(a, b), each to three units in its last place, also where ε/μ and μ/2 nearly cancel.

    The remainder of the division is exact: the product of the quotient and μ is split into two
    floats (Dekker 1971, *A floating-point technique for extending the available precision*).
    """
    quotient = epsilon / mu
    if quotient == math.inf:
        return math.inf, math.inf
    (ahead, whole), (divisor, power) = math.frexp(quotient), math.frexp(mu)
    product, high, top = ahead * divisor, _upper_half(ahead), _upper_half(divisor)
    low, end = ahead - high, divisor - top
    lost = ((high * top - product) + high * end + low * top) + low * end
    remainder = (math.ldexp(epsilon, -whole - power) - product) - lost
    return (quotient - mu / 2) + math.ldexp(remainder / divisor, whole), quotient + mu / 2


def _upper_half(value: float) -> float:
    """The upper half of the digits."""
    scaled = value * _SPLIT
    return scaled - (scaled - value)


def _mills(x: float) -> float:
    """Φ(−x)/φ(x)."""
    from scipy.special import erfcx

    return math.sqrt(math.pi / 2) * float(erfcx(x / math.sqrt(2.0)))


def _slope(x: float) -> float:
    """−m'(x) = 1 − x m(x), by the continued fraction of Laplace beyond 4, where that cancels."""
    ratio = _mills(x)
    if x <= 4:
        return 1 - x * ratio
    fraction = (x + math.sqrt(x * x + 4 * 33)) / 2  # of its own period
    for term in range(32, 1, -1):
        fraction = x + term / fraction
    return ratio / fraction


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
            f"epsilon is {epsilon} and delta is {delta}; the noise would be too large for a "
            "float, so one of them must be larger."
        )
    return first_float(lambda sigma: sigma > 0 and pair(sigma).mu <= shift, largest)


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
