"""Mechanisms that add noise to numbers: Laplace, Gaussian, staircase, and their variants.

All extend one class, which says what they share. Noise of all entries must be independent and of
one law, whatever the value is.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Hashable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.base import validate
from dpaudit.base.by_class import by_class
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.base.fields import Interval, NonNegative, OpenProbability, Positive
from dpaudit.mechanisms.base import (
    Mechanism,
    Norm,
    Tails,
    changes,
    checked_sensitivity,
    integer_array,
    single_entry,
    sum_over_entries,
)
from dpaudit.mechanisms.pairs import (
    DominatingPair,
    FinitePair,
    Floats,
    GaussianPair,
    LaplaceBound,
    LaplacePair,
    TruncatedLaplacePair,
    costless_pair,
    least_deviation,
    normal_pair,
    vast_pair,
)
from dpaudit.mechanisms.rounding import first_float, round_up, up

_MOST_MASSES, _RARE = 10**6, 1e-9


@dataclass(frozen=True)
class AdditiveNoise(Mechanism):
    """Adds independent noise of one law to every entry of the value.

    Where units are sampled under zero-out, the value is to be their sum, or a function of it.

    A subclass says how noise is drawn (:meth:`noise`) and what its law is
    (:meth:`log_noise_density`, and :meth:`noise_tails` if it is to be tested).
    """

    numpy_law: ClassVar[str] = ""
    """The method of ``numpy.random.Generator`` that draws this noise with ``scale``, if any."""
    long_shift_dominates: ClassVar[bool] = False
    """Whether one long shift costs at least as much as several of the same total length."""
    zeroed_is_absent: ClassVar[bool] = True

    @by_class("dpaudit.ledger.samplers.floats")
    def noise(self, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[Any]:
        """Independent draws of the noise of one entry."""
        raise UnsupportedError(f"{self.kind} has no sampler.")

    @classmethod
    def _samplers(cls) -> tuple[Any, ...]:
        return (*super()._samplers(), AdditiveNoise.noise)

    @abstractmethod
    def log_noise_density(self, noise: Floats) -> Floats:
        """Log-density (or log-mass) of the noise of one entry, of any shape."""

    @by_class("dpaudit.auditing.noise.tails")
    def noise_tails(self, noise: Floats, rng: np.random.Generator) -> Tails:
        """The noise of entries, of any shape, as the declared law sees it.

        Raises:
            UnsupportedError: if the mechanism declares no law that could be tested.
        """
        raise UnsupportedError(f"{self.kind} declares no law of noise that could be tested.")

    def accuracy(self, confidence: float = 0.95, entries: int = 1) -> float:
        """The least t with P(|noise| ≤ t) of at least the confidence, for all entries at once.

        It is a whole number for integer noise, and else rounded up. It speaks of the noise alone,
        and not of what a clip or a bound cuts off.

        Args:
            confidence: in (0, 1).
            entries: of the value, each of which gets noise of its own.

        Raises:
            InputError: if an argument is none of these.
            UnsupportedError: if the mechanism does not say how far its noise reaches.

        >>> Laplace(10.0).accuracy(0.95), Gaussian(10.0).accuracy(0.95)
        (29.95732273553..., 19.59963984540...)
        """
        confidence = validate.open_fraction(confidence=confidence)
        entries = validate.integer_at_least(1, entries=entries)
        return self._reach(-math.expm1(math.log(confidence) / entries))

    def _reach(self, miss: float) -> float:
        """The least t with P(|noise| > t) of at most ``miss``, for one entry."""
        raise UnsupportedError(f"{self.kind} does not say how far its noise reaches.")

    def log_density(self, outputs: ArrayLike, value: ArrayLike) -> Floats:
        """Sum over entries of the log-density of the noise."""
        noise = np.asarray(outputs, dtype=np.float64) - self.prepare(value)
        return sum_over_entries(self.log_noise_density(noise))


@dataclass(frozen=True)
class IntegerNoise(AdditiveNoise):
    """Adds integer noise, symmetric about 0, to integers; a subclass also says the mean of |k|."""

    @abstractmethod
    def log_mass(self, noise: Floats) -> Floats:
        """Log-mass of integers, of any shape."""

    @abstractmethod
    def mean_size(self) -> float:
        """The mean of |k|."""

    def at_least(self, noise: Floats) -> Floats:
        """P[noise ≥ n] for whole numbers, of any shape; by summation, of at most a million masses.

        Raises:
            UnsupportedError: if noise of more than a million is no rarity.
        """
        last = int(min(np.abs(noise).max(initial=0.0) + 1, _MOST_MASSES))
        masses = np.exp(self.log_mass(np.arange(last, dtype=np.float64)))
        beyond = max(0.5 - masses[0] / 2 - float(masses[1:].sum()), 0.0)
        if last == _MOST_MASSES and beyond > _RARE:
            raise UnsupportedError(f"{self.kind} has noise too wide for a test of its law.")
        tails = np.append(masses, beyond)[::-1].cumsum()[::-1]  # P[noise ≥ n] for n = 0…last
        n = np.where(noise > 0, noise, 1 - noise)
        tail = tails[np.minimum(n, last).astype(np.int64)]
        return np.where(noise > 0, tail, 1 - tail)

    def _reach(self, miss: float) -> float:
        """By bisection of P[noise ≥ n], which is the same below 0."""

        def holds(reach: int) -> bool:
            return 2 * float(self.at_least(np.array([reach + 1.0]))[0]) <= miss * (1 - 1e-12)

        high = 1
        while not holds(high):
            high *= 2
        return float(bisect_left(range(high), True, key=holds))

    def prepare(self, value: ArrayLike) -> NDArray[Any]:
        """Whole numbers within ±2^53."""
        return integer_array(value)

    def log_noise_density(self, noise: Floats) -> Floats:
        """The log-mass, minus infinity between the integers."""
        return np.where(noise == np.floor(noise), self.log_mass(noise), -np.inf)


_SMALLEST_SHIFT, _LARGEST_SHIFT = 2.0**-16, 10.0
_MOST_ENTRIES = 2**14


@dataclass(frozen=True)
class Gaussian(AdditiveNoise):
    """Adds independent normal noise to every entry.

    Attributes:
        sigma: standard deviation of the noise.
        clip_norm: optional L2 norm to which the value is scaled down before noise is added; it
            belongs to the mechanism.

    >>> round(Gaussian.calibrated(epsilon=1, delta=1e-5, sensitivity=1).sigma, 4)
    3.7306
    """

    kind: ClassVar[str] = "gaussian"
    norm: ClassVar[Norm] = Norm.L2
    real_valued: ClassVar[bool] = True
    numpy_law: ClassVar[str] = "normal"
    long_shift_dominates: ClassVar[bool] = True
    sigma: Positive
    clip_norm: Positive | None = None

    @classmethod
    def calibrated(
        cls, *, epsilon: float, delta: float, sensitivity: float, clip_norm: float | None = None
    ) -> Gaussian:
        """The least σ for (ε, δ): the analytic mechanism (Balle and Wang 2018, Algorithm 1).

        Solved on the exact δ(ε) of the mechanism and rounded up, for every ε ≥ 0.

        Raises:
            InputError: if ε is below 0, δ outside (0, 1), or the sensitivity not above 0; or if no
                float is so large a σ.
        """
        sensitivity = validate.positive(sensitivity=sensitivity)
        sigma = least_deviation(
            lambda sigma: normal_pair(sensitivity, sigma), epsilon=epsilon, delta=delta
        )
        return cls(sigma, clip_norm)

    # -- privacy ---------------------------------------------------------------------------------

    def pair(self, sensitivity: float) -> GaussianPair:
        """N(Δ/σ, 1) against N(0, 1): the noise is isotropic, so only the L2 distance counts."""
        return normal_pair(checked_sensitivity(sensitivity), self.sigma)

    def strength(self, sensitivity: float) -> tuple[Hashable, Fraction | float]:
        """μ: a normal pair is a post-processing of any with a larger one."""
        return (), self.pair(sensitivity).mu

    def implied_sensitivity(self, contribution_factor: float, entries: int = 1) -> float | None:
        """The clip norm, doubled where one value may replace another."""
        return None if self.clip_norm is None else self.clip_norm * contribution_factor

    # -- release ---------------------------------------------------------------------------------

    def prepare(self, value: ArrayLike) -> NDArray[Any]:
        """Finite numbers, scaled down to the clip norm."""
        array = validate.real_view(value=value)
        if self.clip_norm is None:
            return array
        norm = float(np.linalg.norm(array))
        return array * (self.clip_norm / norm) if norm > self.clip_norm else array

    # -- law -------------------------------------------------------------------------------------

    @property
    def noise_scale(self) -> float:
        """σ, the standard deviation."""
        return self.sigma

    def _reach(self, miss: float) -> float:
        """−σ Φ⁻¹(miss/2)."""
        from scipy.special import ndtri

        return up(-self.sigma * float(ndtri(miss / 2)), 8)

    def log_noise_density(self, noise: Floats) -> Floats:
        """−n²/2σ² − ln σ√2π."""
        z = noise / self.sigma
        return -z * z / 2 - math.log(self.sigma * math.sqrt(2 * math.pi))


@dataclass(frozen=True)
class Laplace(AdditiveNoise):
    """Adds independent Laplace noise to every entry (Dwork, McSherry, Nissim and Smith 2006).

    Attributes:
        scale: scale b of the noise; ε is the L1 sensitivity over b.
        clip: optional interval (lower, upper) into which every entry is clipped before noise is
            added. It belongs to the mechanism: without it a value outside the assumed range breaks
            the claim.

    >>> Laplace.calibrated(epsilon=0.3, sensitivity=4).pair(4).pure_epsilon <= 0.3
    True
    """

    kind: ClassVar[str] = "laplace"
    norm: ClassVar[Norm] = Norm.L1
    real_valued: ClassVar[bool] = True
    numpy_law: ClassVar[str] = "laplace"
    long_shift_dominates: ClassVar[bool] = True
    scale: Positive
    clip: Interval | None = None

    @classmethod
    def calibrated(
        cls, *, epsilon: float, sensitivity: float, clip: tuple[float, float] | None = None
    ) -> Laplace:
        """The least scale whose ε does not exceed the wish, in exact arithmetic.

        Raises:
            InputError: if ε or the sensitivity is not above 0, or no float is so large a scale.
        """
        return cls(least_scale(Fraction(validate.positive(sensitivity=sensitivity)), epsilon), clip)

    # -- privacy ---------------------------------------------------------------------------------

    def pair(self, sensitivity: float) -> LaplacePair:
        """A Laplace pair whose ε is the exact quotient of sensitivity and scale."""
        return LaplacePair(Fraction(checked_sensitivity(sensitivity)) / Fraction(self.scale))

    def strength(self, sensitivity: float) -> tuple[Hashable, Fraction | float]:
        """ε: a Laplace pair is a post-processing of any with a larger one."""
        return (), self.pair(sensitivity).ratio

    def implied_sensitivity(self, contribution_factor: float, entries: int = 1) -> float | None:
        """Width of the clip where one value may replace another, else the way from 0, clipped."""
        if self.clip is None:
            return None
        lower, upper = map(Fraction, self.clip)
        zero = min(max(lower, Fraction(0)), upper)
        width = upper - lower if contribution_factor == 2 else max(upper - zero, zero - lower)
        return round_up(width * entries)

    # -- release ---------------------------------------------------------------------------------

    def prepare(self, value: ArrayLike) -> NDArray[Any]:
        """Finite numbers, clipped."""
        array: NDArray[Any] = validate.real_view(value=value)
        return array if self.clip is None else np.clip(array, *self.clip)

    # -- law -------------------------------------------------------------------------------------

    @property
    def noise_scale(self) -> float:
        """Scale b."""
        return self.scale

    def _reach(self, miss: float) -> float:
        """B ln(1/miss)."""
        return up(-self.scale * math.log(miss), 4)

    def log_noise_density(self, noise: Floats) -> Floats:
        """−|n|/b − ln 2b."""
        return -np.abs(noise) / self.scale - math.log(2 * self.scale)


def least_scale(distance: Fraction, epsilon: float) -> float:
    """The least float that is not below distance/ε.

    Raises:
        InputError: if there is none, or ε is not above 0.
    """
    scale = round_up(distance / Fraction(validate.positive(epsilon=epsilon)))
    if scale == math.inf:
        raise InputError(
            f"epsilon is {epsilon}; it must be larger, because the scale would exceed all floats."
        )
    return scale


_SHORTEST = 2.0**-30


@dataclass(frozen=True)
class TruncatedLaplace(AdditiveNoise):
    """Adds noise of density ∝ e^(−|x|/b) on [−B, B] to one number.

    Geng, Ding, Guo and Kumar 2020, *Tight analysis of privacy and utility tradeoff in approximate
    differential privacy*. Neighbours s apart are told for certain with a δ that no ε removes.

    Attributes:
        scale: b, with which ε is s/b.
        bound: B, the largest size of the noise; neighbours further than 2B apart are told always.

    >>> noise = TruncatedLaplace.calibrated(epsilon=1.0, delta=1e-6, sensitivity=1.0)
    >>> round(noise.bound, 3), float(noise.pair(1.0).delta(1.0)) <= 1e-6
    (13.664, True)
    """

    kind: ClassVar[str] = "truncated-laplace"
    norm: ClassVar[Norm] = Norm.L1
    real_valued: ClassVar[bool] = True
    scale: Positive
    bound: Positive

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.bound / self.scale >= _SHORTEST:
            raise InputError(
                f"bound is {self.bound}; it must be at least scale/2^30, {self.scale * _SHORTEST}."
            )

    @classmethod
    def calibrated(cls, *, epsilon: float, delta: float, sensitivity: float) -> TruncatedLaplace:
        """The least scale of that ε, and with it the least bound of that δ.

        (e^ε − 1)/(2(e^(B/b) − 1)) = δ (Geng et al. 2020, Theorem 1).

        Raises:
            InputError: if ε or the sensitivity is not above 0, δ is not between 0 and 1/2, or no
                float is so large a scale or bound.
        """
        if not validate.open_fraction(delta=delta) < 0.5:
            raise InputError(f"delta is {delta}; it must be below 1/2.")
        shift = validate.positive(sensitivity=sensitivity)
        scale = least_scale(Fraction(shift), epsilon)
        e = float(min(Fraction(shift) / Fraction(scale), Fraction(10) ** 300))
        end = e + math.log1p(-math.expm1(-e) * (0.5 / delta - 1))

        def holds(bound: float) -> bool:
            enough = bound > shift and bound / scale >= _SHORTEST
            return enough and cls(scale, bound).pair_and_failure(shift)[1] <= delta

        bound = first_float(holds, max(scale * end, shift) * (1 + 1e-9))
        if bound / scale < _SHORTEST:
            raise InputError(f"epsilon is {epsilon:g}; it is too small for this delta.")
        return cls(scale, bound)

    # -- privacy ---------------------------------------------------------------------------------

    def pair(self, sensitivity: float) -> DominatingPair:
        """The law of that shift itself; as the density is log-concave, a longer one dominates."""
        shift, scale = Fraction(checked_sensitivity(sensitivity)), Fraction(self.scale)
        if not shift:
            return costless_pair()
        if shift >= 2 * Fraction(self.bound):
            return vast_pair()
        return TruncatedLaplacePair(shift / scale, Fraction(self.bound) / scale)

    def pair_and_failure(self, sensitivity: float) -> tuple[DominatingPair, float]:
        """A Laplace pair, and the probability p of infinite loss, for shifts up to the bound.

        What is left of P and Q is dominated: with t = e^(x/2), a = e^(−e/2) and w = e^(−u) it has
        δ(x) = (2(1 − ta) − w(1/a² − t²))/(2 − w(1 + 1/a²)). That is at most 1 − ta, the curve of
        Laplace noise, if (1 − ta)(1 + ta) ≥ (1 − ta)(1 + a²), which holds for −e ≤ x ≤ e.
        """
        pair = self.pair(sensitivity)
        if not isinstance(pair, TruncatedLaplacePair) or pair.ratio > pair.end:
            return pair, 0.0
        return LaplacePair(pair.ratio), pair.infinite

    # -- release ---------------------------------------------------------------------------------

    def prepare(self, value: ArrayLike) -> NDArray[Any]:
        """One finite number."""
        return single_entry(super().prepare(value), self.kind)

    # -- law -------------------------------------------------------------------------------------

    @property
    def noise_scale(self) -> float:
        """Scale b."""
        return self.scale

    def _reach(self, miss: float) -> float:
        """−b ln(miss (1 − e^(−B/b)) + e^(−B/b)), which is at most the bound B."""
        end = math.exp(-self.bound / self.scale)
        return min(up(-self.scale * math.log(miss * (1 - end) + end), 8), self.bound)

    def log_noise_density(self, noise: Floats) -> Floats:
        """−|n|/b − ln 2b(1 − e^(−B/b)) within the bound."""
        whole = math.log(2 * self.scale) + math.log(-math.expm1(-self.bound / self.scale))
        size = np.abs(noise)
        return np.where(size <= self.bound, -size / self.scale - whole, -np.inf)


@dataclass(frozen=True)
class Staircase(AdditiveNoise):
    """Adds noise whose density falls by e^ε at γΔ, at Δ + γΔ, and so on to either side.

    Geng and Viswanath 2014, *The optimal mechanism in differential privacy*.

    Attributes:
        epsilon: ε, pure, of neighbours at most ``width`` apart, however near.
        width: Δ, the length of a step.
        share: γ, in (0, 1); if not given 1/(1 + e^(ε/2)), with which |noise| has the least mean.
    """

    kind: ClassVar[str] = "staircase"
    norm: ClassVar[Norm] = Norm.L1
    real_valued: ClassVar[bool] = True
    epsilon: Positive
    width: Positive = 1.0
    share: OpenProbability | None = None

    @property
    def steps(self) -> tuple[float, float]:
        """γ, and the probability of the inner of the two parts that every Δ has."""
        low = math.exp(-self.epsilon / 2)
        if self.share is None:
            return max(low / (1 + low), 5e-324), 1 / (1 + low)
        return self.share, self.share / (self.share + (1 - self.share) * low * low)

    def pair(self, sensitivity: float) -> DominatingPair:
        """Losses −ε, 0 and ε: within Δ the density has at most one step, and at 0 none.

        As it is symmetric and falls with |x|, half the distance s of two neighbours parts where
        one of them is the likelier, so that their total variation is P[|noise| < s/2]. It is also
        (1 − e^−ε) P[loss = ε], which hence grows with s: a longer shift dominates.

        Raises:
            InputError: if the sensitivity is above the width.
        """
        if checked_sensitivity(sensitivity) > self.width:
            raise InputError(
                f"sensitivity is {sensitivity}; this staircase noise takes at most {self.width}."
            )
        if sensitivity == 0:
            return costless_pair()
        (step, inner), half = self.steps, max(sensitivity / self.width / 2, 5e-324)
        within = 1.0 if half >= step else half / step
        top = inner * within + (1 - inner) * max(half - step, 0.0) / (1 - step)
        least = top * math.exp(-self.epsilon)
        masses = np.array([least, max(1 - top - least, 0.0), top])
        losses = np.array([-self.epsilon, 0.0, self.epsilon])
        return FinitePair(losses, masses, masses[::-1], bound=Fraction(self.epsilon))

    def prepare(self, value: ArrayLike) -> NDArray[Any]:
        """One finite number."""
        return single_entry(super().prepare(value), self.kind)

    def _reach(self, miss: float) -> float:
        """The tail e^(−ελ) of level λ, and within a level the share of its two steps."""
        (step, inner), level = self.steps, math.floor(-math.log(miss) / self.epsilon)
        passed = (1 - miss * math.exp(self.epsilon * level)) / -math.expm1(-self.epsilon)
        outer = step + (1 - step) * (passed - inner) / (1 - inner) if inner < 1 else step
        within = step * passed / inner if passed <= inner else outer
        return up((level + min(max(within, 0.0), 1.0)) * self.width, 16)

    def log_noise_density(self, noise: Floats) -> Floats:
        """Of the inner part of the first step, less ε for each level."""
        step, inner = self.steps
        level = np.floor(np.abs(noise) / self.width + 1 - step)
        first = math.log(-math.expm1(-self.epsilon)) + math.log(inner) - math.log(step)
        return first - math.log(2 * self.width) - self.epsilon * level


_MOST_PARTS = 500
"""Of more distinct coordinates no product of laws is computed."""


@dataclass(frozen=True)
class VectorNoise(AdditiveNoise):
    """Noise on vectors from a box, of which every coordinate may move at once.

    Noise is independent, and longer shifts dominate shorter ones, coordinate by coordinate. So two
    opposite corners cost the most: as much as one mechanism for each coordinate.

    Attributes:
        scales: of the noise of each coordinate, above 0: b of Laplace noise, σ of normal noise.
        sensitivities: Δ_i, the most by which each coordinate differs between neighbours.
    """

    is_tight = False  # its parts are, which alone count where nothing is sampled
    norm: ClassVar[Norm] = Norm.CHANGE
    real_valued: ClassVar[bool] = True
    of_one: ClassVar[type[Laplace] | type[Gaussian]]
    scales: tuple[Positive, ...]
    sensitivities: tuple[NonNegative, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not len(self.scales) == len(self.sensitivities) > 0:
            raise InputError(
                f"sensitivities has {len(self.sensitivities)} entries and scales "
                f"{len(self.scales)}; give one of each for every coordinate."
            )

    @property
    def _ratios(self) -> list[Fraction]:
        """Δ_i over the scale."""
        both = zip(self.sensitivities, self.scales, strict=True)
        return [Fraction(moved) / Fraction(scale) for moved, scale in both]

    def pair(self, sensitivity: float) -> DominatingPair:
        """The pair of one long shift, of Laplace noise an upper bound, of which samples need one.

        Raises:
            InputError: if the sensitivity, 1 where the vector changes at all, is not 0 or 1.
        """
        if not changes(sensitivity, self.kind):
            return costless_pair()
        if self.of_one is Laplace:
            return LaplaceBound(sum(self._ratios, Fraction(0)))
        return normal_pair(up(math.hypot(*map(round_up, self._ratios)), 2), 1.0)

    def composed_of(self) -> tuple[tuple[Mechanism, float, int], ...]:
        """One mechanism for each coordinate that moves, equal ones together."""
        ratios, both = self._ratios, zip(self.scales, self.sensitivities, strict=True)
        alike = {ratio: each for ratio, each in zip(ratios, both, strict=True) if ratio}
        if len(alike) > _MOST_PARTS:
            return ()
        return tuple((self.of_one(b), moved, ratios.count(at)) for at, (b, moved) in alike.items())

    def for_group(self, size: int) -> Self:
        """A box so many times as wide."""
        wide = (round_up(Fraction(each) * size) for each in self.sensitivities)
        return replace(self, sensitivities=tuple(wide))

    def distance(self, one: NDArray[Any], other: NDArray[Any]) -> float:
        """Measure by how much of its sensitivity a coordinate moves, at most."""
        if one.shape != other.shape:
            return math.inf
        moved = np.abs(one.astype(np.float64) - other)
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.where(moved > 0, moved / self.sensitivities, 0.0).max())

    def prepare(self, value: ArrayLike) -> NDArray[Any]:
        """A vector of as many entries as there are scales."""
        vector = super().prepare(value)
        if vector.shape != (len(self.scales),):
            raise InputError(
                f"value must be a vector of {len(self.scales)} entries, as scales has."
            )
        return vector

    def _reach(self, miss: float) -> float:
        """That of the entry with the largest scale."""
        return self.of_one(1.0).accuracy(1 - miss) * float(max(self.scales))

    def log_noise_density(self, noise: Floats) -> Floats:
        """Take that of the standard law, in units of the scales."""
        standard: Floats = self.of_one(1.0).log_noise_density(noise / self.scales)
        return standard - np.log(self.scales)


@dataclass(frozen=True)
class LaplaceVector(VectorNoise):
    """Adds Laplace noise of its own scale to each coordinate, of which each may move by its own Δ.

    ε is Σ Δ_i/b_i.
    """

    kind: ClassVar[str] = "laplace-vector"
    of_one = Laplace


@dataclass(frozen=True)
class GaussianVector(VectorNoise):
    """Adds normal noise of its own σ to each coordinate, of which each may move by its own Δ.

    In units of σ noise is the same in all directions, so that μ² = Σ (Δ_i/σ_i)².
    """

    kind: ClassVar[str] = "gaussian-vector"
    of_one = Gaussian
