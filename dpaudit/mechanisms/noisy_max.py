"""Report noisy max and permute-and-flip: the index of the largest noisy utility."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import UnsupportedError
from dpaudit.mechanisms.base import changes
from dpaudit.mechanisms.choice import Choice, Decay, by_rejection
from dpaudit.mechanisms.exact import ExactSource
from dpaudit.mechanisms.pairs import (
    BoundedRangePair,
    DominatingPair,
    Floats,
    LaplaceBound,
    costless_pair,
)
from dpaudit.mechanisms.quadrature import panels

_FAR = 40.0
"""Noise beyond has a probability of e^-40, below the rounding of those that are computed."""
_MOST_CANDIDATES = 500


class Noise(StrEnum):
    """What is added to utilities, of scale 2Δ/ε, or Δ/ε where they are monotonic."""

    LAPLACE = "laplace"
    EXPONENTIAL = "exponential"
    GUMBEL = "gumbel"


@dataclass(frozen=True)
class _NoisyChoice(Choice):
    """What both share.

    Attributes:
        monotonic: whether one unit moves all utilities in the same direction, if at all, so that
            half the noise will do.
    """

    monotonic: bool = False

    @property
    def span(self) -> int:
        """1 for monotonic utilities, else 2."""
        return 1 if self.monotonic else 2

    def pair(self, sensitivity: float) -> DominatingPair:
        """The Laplace law of ratio ε, which bounds whatever pays ε in small steps.

        It is tε-private for utilities that move by tΔ (Dwork and Roth 2014, Claim 3.9; McKenna and
        Sheldon 2020), and from one vector to another there is a way of small steps:
        :class:`~dpaudit.mechanisms.pairs.LaplaceBound`. Permute-and-flip attains each point of that
        curve on two candidates, whose gap decides as a Laplace noise would. Its losses do not span
        ε alone, so that ρ = ε²/8 is false.

        Raises:
            InputError: if the sensitivity, 1 where the utilities change at all, is not 0 or 1.
        """
        if not changes(sensitivity, self.kind):
            return costless_pair()
        return LaplaceBound(Fraction(self.epsilon))

    def strength(self, sensitivity: float) -> tuple[Hashable, Fraction | float]:
        """ε: the pair is a post-processing of any with a larger one."""
        return (), self.pair(sensitivity).pure_epsilon

    def worst_pairs(self) -> tuple[tuple[list[float], list[float], str], ...]:
        """As of any choice, or one candidate that comes up."""
        high = self.utility_sensitivity
        one_up = ([0.0, 0.0], [0.0, high], "one of two equal candidates that rises")
        return (one_up,) if self.monotonic else super().worst_pairs()


@dataclass(frozen=True)
class PermuteAndFlip(_NoisyChoice):
    """Takes the first candidate, in random order, of a coin of exp(ε (u − max u)/2Δ).

    McKenna and Sheldon 2020. It is report noisy max with exponential noise (Ding et al. 2021, *The
    permute-and-flip mechanism is identical to report-noisy-max with exponential noise*).
    """

    kind: ClassVar[str] = "permute-and-flip"

    def sample(self, values: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        """The largest of utilities with exponential noise, which has just this law."""
        return _largest(self.exponents(values), Noise.EXPONENTIAL, rng)

    def sample_exactly(
        self, values: NDArray[Any], sensitivity: float, source: ExactSource
    ) -> NDArray[Any]:
        """The algorithm itself, with coins of exactly that probability."""
        return self.by_exact_decays(values, _in_order(source), source)

    def log_masses(self, exponents: Floats) -> Floats:
        """By integration over the largest noisy utility.

        Raises:
            UnsupportedError: if there are more than 500 candidates.
        """
        return _log_race(exponents, Noise.EXPONENTIAL)


@dataclass(frozen=True)
class NoisyMax(_NoisyChoice):
    """Chooses the index of the largest utility with noise of scale 2Δ/ε; no noisy value leaves.

    Dwork and Roth 2014, Section 3.3. With exponential noise it is permute-and-flip (Ding et al.
    2021), and with Gumbel noise the exponential mechanism, which is better concentrated.

    Attributes:
        noise: its law.
    """

    kind: ClassVar[str] = "noisy-max"
    noise: Noise = Noise.LAPLACE

    @property
    def is_tight(self) -> bool:
        """Not with Laplace noise, of which the curve is a bound but at its end."""
        return self.noise is not Noise.LAPLACE

    def pair(self, sensitivity: float) -> DominatingPair:
        """That of bounded range with Gumbel noise, else as of permute-and-flip.

        Monotonic or not, the gap of two exponents moves by at most ε.
        """
        if self.noise is Noise.GUMBEL and changes(sensitivity, self.kind):
            return BoundedRangePair(self.epsilon)
        return super().pair(sensitivity)

    def strength(self, sensitivity: float) -> tuple[Hashable, Fraction | float]:
        """ε, for each law of noise."""
        return self.noise, super().strength(sensitivity)[1]

    def sample(self, values: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        """The largest."""
        return _largest(self.exponents(values), self.noise, rng)

    def require_exact(self, sensitivity: float, source: ExactSource) -> None:
        """Refuse Laplace noise, whose largest has no exact sampler yet."""
        super().require_exact(sensitivity, source)
        if self.noise is Noise.LAPLACE:
            raise UnsupportedError(
                "noisy-max with laplace noise has no exact sampler yet; noise 'exponential' and "
                "'gumbel' have one."
            )

    def sample_exactly(
        self, values: NDArray[Any], sensitivity: float, source: ExactSource
    ) -> NDArray[Any]:
        """As permute-and-flip, or as the exponential mechanism."""
        gumbel = self.noise is Noise.GUMBEL
        choose = by_rejection(source) if gumbel else _in_order(source)
        return self.by_exact_decays(values, choose, source)

    def log_masses(self, exponents: Floats) -> Floats:
        """By integration over the largest noisy utility; with Gumbel noise a softmax.

        Raises:
            UnsupportedError: if there are more than 500 candidates.
        """
        return _log_race(exponents, self.noise)


def _in_order(source: ExactSource) -> Callable[[int, Decay], int]:
    """The law of permute-and-flip; the best candidate's coin never fails."""

    def choose(size: int, event: Decay) -> int:
        left = list(range(size))
        while True:
            at = source.below(len(left))
            left[at], left[-1] = left[-1], left[at]
            if event(place := left.pop()):
                return place

    return choose


def _largest(exponents: Floats, noise: Noise, rng: np.random.Generator) -> NDArray[Any]:
    chosen: NDArray[Any] = np.argmax(
        exponents + getattr(rng, noise.value)(size=exponents.shape), axis=-1
    )
    return chosen


def _log_race(exponents: Floats, noise: Noise) -> Floats:
    """Ln P[i is the largest] = ln ∫ f(v − u_i) Π_{j ≠ i} F(v − u_j) dv."""
    if noise is Noise.GUMBEL:
        from scipy.special import log_softmax

        softmax: Floats = log_softmax(exponents)
        return softmax
    if exponents.size > _MOST_CANDIDATES:
        raise UnsupportedError(
            f"value has {exponents.size} utilities; the law of noisy-max is computed for at most "
            f"{_MOST_CANDIDATES}."
        )
    low = 0.0 if noise is Noise.EXPONENTIAL else -_FAR
    v, weight = panels(low, math.log(exponents.size) + _FAR, exponents)
    gaps = v[:, None] - exponents
    share = 1.0 if noise is Noise.EXPONENTIAL else 0.5
    density = share * np.exp(-np.abs(gaps))
    mass = np.where(gaps < 0, density, 1 - density)
    log_all = np.log(mass).sum(axis=1, keepdims=True)
    masses = (weight[:, None] * density * np.exp(log_all - np.log(mass))).sum(axis=0)
    with np.errstate(divide="ignore"):
        log_masses: Floats = np.log(masses / masses.sum())
    return log_masses
