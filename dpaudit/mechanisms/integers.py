"""Integer noise: the discrete Laplace and Gaussian mechanisms, and thresholds on unknown keys.

A histogram of keys that nobody knows beforehand tells noisy counts above a threshold alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.base import validate
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.base.fields import Positive, at_least
from dpaudit.mechanisms.additive import IntegerNoise
from dpaudit.mechanisms.base import (
    Mechanism,
    Norm,
    changes,
    integer_array,
    integer_sensitivity,
    single_entry,
    sum_over_entries,
)
from dpaudit.mechanisms.pairs import (
    DominatingPair,
    FinitePair,
    Floats,
    approximate_pair,
    costless_pair,
    vast_pair,
)
from dpaudit.mechanisms.pairs.finite import WORK_OF_LOSS, FiniteBound
from dpaudit.mechanisms.pairs.gaussian import DiscreteNormalTable, WideDiscreteNormalPair
from dpaudit.mechanisms.rounding import (
    concentration,
    exceeds_floats,
    exp_up,
    first_float,
    round_up,
    up,
)

_LARGEST_SHIFT, _LARGEST_SCALE = 10**6, 1e15


@dataclass(frozen=True)
class DiscreteLaplace(IntegerNoise):
    """Adds integer noise with mass proportional to exp(−|k|/b).

    The two-sided geometric mechanism of Ghosh, Roughgarden and Sundararajan 2009.

    Attributes:
        scale: scale b of the noise, above 0 and at most 1e15.
    """

    kind: ClassVar[str] = "discrete-laplace"
    norm: ClassVar[Norm] = Norm.L1
    long_shift_dominates: ClassVar[bool] = True
    scale: Positive

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scale > _LARGEST_SCALE:
            raise InputError(f"scale is {self.scale}; discrete-laplace takes at most 1e15.")

    def pair(self, sensitivity: float) -> DominatingPair:
        """The pair of one integer coordinate shifted by the whole sensitivity.

        For a shift s the loss at output k is (|k| − |k − s|)/b, one value for each k in 0…s, with
        geometric tails lumped at both ends. Several coordinates are dominated as for
        :class:`~dpaudit.mechanisms.LaplacePair`.
        """
        shift = integer_sensitivity(sensitivity, self.kind)
        if shift > _LARGEST_SHIFT:
            raise InputError(f"sensitivity is {sensitivity}; discrete-laplace takes at most 1e6.")
        if shift == 0:
            return costless_pair()
        bound = Fraction(shift) / Fraction(self.scale)
        if exceeds_floats(bound):
            return vast_pair(bound)
        ratio = math.exp(-1 / self.scale)
        k = np.arange(shift + 1)
        q = np.exp(-k / self.scale) * (-math.expm1(-1 / self.scale) / (1 + ratio))
        q[0] = 1 / (1 + ratio)
        q[-1] = math.exp(-shift / self.scale) / (1 + ratio)
        losses = (2 * k - shift) / self.scale
        # P is the mirror image of Q: its mass at k is that of Q at s − k.
        return FinitePair(losses, q[::-1].copy(), q, bound=bound)

    def work(self, sensitivity: float) -> float:
        """A loss for each whole number up to the sensitivity."""
        # A law of equal steps is kept on them, which few of them make no smaller.
        return WORK_OF_LOSS * (sensitivity + 8 * min(sensitivity, 10_000))

    @property
    def noise_scale(self) -> float:
        """Scale b."""
        return self.scale

    def log_mass(self, noise: Floats) -> Floats:
        """−|k|/b + ln tanh(1/2b)."""
        with np.errstate(over="ignore"):
            return -np.abs(noise) / self.scale + math.log(math.tanh(0.5 / self.scale))

    def at_least(self, noise: NDArray[Any]) -> Floats:
        """r^n/(1 + r) for n ≥ 1, where r = e^(−1/b)."""
        with np.errstate(over="ignore"):
            tail = np.exp(-np.where(noise > 0, noise, 1 - noise) / self.scale)
        tail = tail / (1 + math.exp(-1 / self.scale))
        return np.where(noise > 0, tail, 1 - tail)

    def mean_size(self) -> float:
        """1/sinh(1/b)."""
        return -2 * math.exp(-1 / self.scale) / math.expm1(-2 / self.scale)


_LARGEST_SIGMA = 1e9
_WIDE = 1e4
"""σ from which on tails have closed forms; a table of all outputs would take seconds."""


@dataclass(frozen=True)
class DiscreteGaussian(IntegerNoise):
    """Adds integer noise with mass proportional to exp(−k²/2σ²) (Canonne, Kamath and Steinke 2020).

    Attributes:
        sigma: parameter σ, about the standard deviation; at most 1e9.
    """

    kind: ClassVar[str] = "discrete-gaussian"
    norm: ClassVar[Norm] = Norm.L2
    sigma: Positive

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sigma > _LARGEST_SIGMA:
            raise InputError(f"sigma is {self.sigma}; discrete-gaussian takes at most 1e9.")

    def pair(self, sensitivity: float) -> DominatingPair:
        """The pair of one integer entry; ρ = Δ²/2σ² (Canonne et al. 2020, Theorem 4).

        At output k the loss of a shift s is (2ks − s²)/2σ². Outputs whose mass is below the
        smallest float under P and under Q are left out, and counted as infinite loss.
        """
        shift = integer_sensitivity(sensitivity, self.kind)
        reach = math.ceil(39 * self.sigma) + 2
        if shift > reach:
            raise UnsupportedError(
                f"sensitivity is {sensitivity}; with sigma {self.sigma} it must be at most {reach}."
            )
        if shift == 0:
            return costless_pair()
        largest = Fraction(2 * reach * shift + shift**2) / (2 * Fraction(self.sigma) ** 2)
        if exceeds_floats(largest):
            return vast_pair()
        if self.sigma >= _WIDE:
            return WideDiscreteNormalPair(self.sigma, shift)
        return _cut_pair(self.sigma, shift, reach)

    def work(self, sensitivity: float) -> float:
        """A loss for each output of any mass; most masses are so small that they are cut off."""
        return 1e9 + (WORK_OF_LOSS / 8 * 78 * self.sigma if self.sigma < _WIDE else 0.0)

    def prepare(self, value: ArrayLike) -> NDArray[Any]:
        """One whole number, as the pair covers no more."""
        return single_entry(super().prepare(value), self.kind)

    @property
    def noise_scale(self) -> float:
        """σ, the scale of the discrete normal law."""
        return self.sigma

    def log_mass(self, noise: Floats) -> Floats:
        """−k²/2σ² less the logarithm of the normaliser."""
        with np.errstate(over="ignore"):
            return -((noise / self.sigma) ** 2) / 2 - log_normaliser(self.sigma)

    def at_least(self, noise: Floats) -> Floats:
        """P[noise ≥ n], by summation; of wide noise that of normal noise beyond n − 1/2.

        The masses are those of the normal law between k − 1/2 and k + 1/2, to a relative error of
        (k²/σ² + 1)/24σ² (the midpoint rule): for σ ≥ 10^4, and |k| ≤ 39 σ, below 10^-6.
        """
        if self.sigma < _WIDE:
            return super().at_least(noise)
        from scipy.special import ndtr

        tail: Floats = ndtr((0.5 - noise) / self.sigma)
        return tail

    def mean_size(self) -> float:
        """The mean of |k|, by summation to 12 σ where that is short."""
        if self.sigma >= _WIDE:
            return self.sigma * math.sqrt(2 / math.pi)
        k = np.arange(1.0, math.ceil(12 * self.sigma) + 2)
        return float(2 * (k * np.exp(self.log_mass(k))).sum())


@lru_cache(maxsize=2)
def _cut_pair(sigma: float, shift: int, reach: int) -> DiscreteNormalTable:
    """The pair on the outputs that floats give a mass; every accountant asks for it."""
    k = np.arange(-reach, shift + reach + 1, dtype=np.float64)
    log_mass = -log_normaliser(sigma)
    q = np.exp(log_mass - (k / sigma) ** 2 / 2)
    p = np.exp(log_mass - ((k - shift) / sigma) ** 2 / 2)
    losses = (2 * k - shift) * shift / (2 * sigma**2)
    rho = concentration(shift / sigma, 0.5)
    return DiscreteNormalTable(losses, p, q, p_infinite=1e-300, rho=rho)


@lru_cache(maxsize=256)
def log_normaliser(sigma: float) -> float:
    """Ln Σ_k exp(−k²/2σ²) over all integers.

    For σ ≥ 1 the Poisson summation formula makes the sum σ√2π (1 + 2 exp(−2π²σ²) + …), whose
    second correction is below the float's precision.
    """
    if sigma >= 1:
        return (
            math.log(sigma)
            + math.log(2 * math.pi) / 2
            + math.log1p(2 * math.exp(-2 * (math.pi * sigma) ** 2))
        )
    if sigma < 0.02:
        return 0.0  # the neighbours of 0 weigh less than e^-1250
    return math.log1p(2 * sum(math.exp(-((k / sigma) ** 2) / 2) for k in range(1, 41)))


_LEAST, _MOST = 1e-3, 1e15


@dataclass(frozen=True)
class StableHistogram(Mechanism):
    """Adds discrete Laplace noise to the count of each key that occurs, and tells those from τ on.

    Korolova, Kenthapadi, Mishra and Ntoulas 2009, *Releasing search queries and clicks privately*;
    Bun, Nissim and Stemmer 2019, *Simultaneous private learning of multiple concepts*.

    The value is the vector of all counts, of whole numbers of at least 0; the release has 0 for
    what is not told, as for each key whose count is 0. So keys that nobody has need not be listed.

    Theorem, for one key. Let r = e^(−1/b), τ be whole and q = r^(τ−1)/(1 + r). At every ε ≥ 0 the
    least δ is (1 − re^ε)/(1 + r) or q, whichever is larger: that of the pair which is infinite with
    probability q, and else randomised response of ε* = ln(e^(1/b) − e^(−(τ−2)/b)), or of 0.

    Proof. Counts k and k − 1 above 0 are told by a function of k or k − 1 plus noise, whose loss is
    1/b from k on and −1/b below: so δ is at most the first term, and is equal to it for k ≥ τ, as
    all that is not told then has one loss. A count of 1 is told with probability q, as the noise is
    τ − 1 or more with that probability, and a count of 0 never; that is q for who leaves, and
    1 − e^ε(1 − q) ≤ q for who joins. In e^ε the first term is a line, which meets q at
    e^ε* = (1 − q(1 + r))/r; the curve of the pair is that line up to there, and q beyond. ∎

    The noise of several keys is independent, so that k of them cost at most k such pairs.

    Attributes:
        scale: scale b of the noise, from 0.001 to 10^15.
        threshold: τ, above 1; as counts are whole, the next whole number.
        key_sensitivity: of how many keys, at most, the counts of neighbours differ, each by at most
            1: the keys that one unit may have, and twice as many where it is replaced.

    >>> towns = StableHistogram.calibrated(epsilon=1.0, delta=1e-6, key_sensitivity=3)
    >>> towns.scale, towns.threshold
    (3.0, 45.0)
    """

    kind: ClassVar[str] = "stable-histogram"
    norm: ClassVar[Norm] = Norm.CHANGE
    tight_in_samples: ClassVar[bool] = False  # a count of many is not the same in each sample
    scale: Positive
    threshold: Positive
    key_sensitivity: Annotated[int, at_least(1, 10**6)] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not _LEAST <= self.scale <= _MOST:
            raise InputError(f"scale is {self.scale:g}; it must be from {_LEAST:g} to {_MOST:g}.")
        if not 1 < self.threshold <= _MOST:
            raise InputError(f"threshold is {self.threshold:g}; it must be in (1, {_MOST:g}].")
        self._set("threshold", float(math.ceil(self.threshold)))

    @classmethod
    def calibrated(cls, *, epsilon: float, delta: float, key_sensitivity: int = 1) -> Self:
        """Noise of scale k/ε for k keys, and with it the least threshold of that δ.

        Raises:
            InputError: if ε is not above 0, δ not in (0, 1), or no scale or threshold is so large.
        """
        each = cls(1.0, 2.0, key_sensitivity)  # checks the keys
        scale = round_up(each.key_sensitivity / Fraction(validate.positive(epsilon=epsilon)))
        most = validate.open_fraction(delta=delta)

        def holds(threshold: float) -> bool:
            return threshold > 1 and cls(scale, threshold, key_sensitivity)._told <= most

        if not holds(_MOST):
            raise InputError(f"delta is {delta:g}; it is too small for scale {scale:g}.")
        return cls(scale, first_float(holds, _MOST), key_sensitivity)

    # -- privacy ---------------------------------------------------------------------------------

    @property
    def _one(self) -> tuple[Fraction, float]:
        """ε* and q of the theorem, rounded up, but ε* to no more than 1/b."""
        above, further = 1 / self.scale, (self.threshold - 2) / self.scale
        behind = -(above + further) - math.log1p(math.exp(-above))
        if above > 1:  # e^(1/b) may be no float
            cost = above + math.log(-math.expm1(-above - further)) + 1e-15 * above
        else:
            grown, less = math.expm1(above), math.exp(-further)
            cost = math.log1p(max(grown - less + 1e-15 * (grown + less), 0.0))
        return min(Fraction(up(cost, 2)), 1 / Fraction(self.scale)), exp_up(behind, -behind)

    @property
    def _told(self) -> float:
        """A bound on the probability that one of as many new keys is told, as accountants add."""
        return min(round_up(self.key_sensitivity * Fraction(self._one[1])), 1.0)

    def pair(self, sensitivity: float) -> DominatingPair:
        """That of the theorem; of several keys one of kε* and the probability that one is told.

        Raises:
            InputError: if the sensitivity, 1 where counts change at all, is not 0 or 1.
        """
        return self._pair(self._told) if changes(sensitivity, self.kind) else costless_pair()

    def pair_and_failure(self, sensitivity: float) -> tuple[DominatingPair, float]:
        """Randomised response, and the probability of infinite loss."""
        changed = changes(sensitivity, self.kind)
        return (self._pair(0.0), self._told) if changed else (costless_pair(), 0.0)

    def _pair(self, failure: float) -> DominatingPair:
        cost = self.key_sensitivity * self._one[0]
        return FiniteBound(**vars(approximate_pair(round_up(cost), failure)) | {"bound": cost})

    def composed_of(self) -> tuple[tuple[Mechanism, float, int], ...]:
        """One use for each key."""
        each = replace(self, key_sensitivity=1)
        return () if self == each else ((each, 1.0, self.key_sensitivity),)

    @property
    def noise(self) -> IntegerNoise:
        """Of each count."""
        return DiscreteLaplace(self.scale)

    @property
    def is_tight(self) -> bool:
        """For one key."""
        return self.key_sensitivity == 1

    def distance(self, one: NDArray[Any], other: NDArray[Any]) -> float:
        """How many counts differ, of as many as may; or by how much one does, if by more than 1."""
        if one.shape != other.shape:
            return math.inf
        moved, keys = np.abs(one - other), self.key_sensitivity
        return max(np.count_nonzero(moved) / keys, float(moved.max(where=moved > 1, initial=0)))

    # -- release ---------------------------------------------------------------------------------

    def prepare(self, value: ArrayLike) -> NDArray[np.int64]:
        """Whole numbers of at least 0."""
        counts = integer_array(value)
        if (counts < 0).any():
            raise InputError("value has an entry below 0; it must have counts alone.")
        return counts

    def shown(self, counts: NDArray[Any], noisy: NDArray[Any]) -> NDArray[np.int64]:
        """Drop noisy counts below the threshold, and of keys that nobody has."""
        return np.where((counts > 0) & (noisy >= self.threshold), noisy, 0)

    # -- law -------------------------------------------------------------------------------------

    def log_density(self, outputs: ArrayLike, value: ArrayLike) -> Floats:
        """The sum over counts of ln P[noise = told − count], or ln P[noise < τ − count]."""
        told, counts = np.asarray(outputs, dtype=np.float64), self.prepare(value)
        noise = self.noise
        near = np.asarray(counts - self.threshold + 1, dtype=np.float64)  # the law is symmetric
        silent = np.log(noise.at_least(near))
        shown = (told >= self.threshold) & (counts > 0)
        masses = noise.log_noise_density(told - counts)
        masses = np.where(shown, masses, -np.inf)
        return sum_over_entries(np.where(told == 0, np.where(counts > 0, silent, 0.0), masses))
