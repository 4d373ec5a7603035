"""Counts of keys that nobody knows beforehand, with Gaussian noise: for many keys of a unit."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.base.fields import at_least
from dpaudit.mechanisms.base import changes
from dpaudit.mechanisms.integers import DiscreteGaussian, StableHistogram, log_normaliser
from dpaudit.mechanisms.pairs import DominatingPair, FinitePair, Floats, costless_pair, vast_pair
from dpaudit.mechanisms.pairs.finite import FiniteBound, profile_masses
from dpaudit.mechanisms.rounding import concentration, exp_up, first_float, round_up, up

_LEAST, _MOST, _MOST_COUNT, _MOST_THRESHOLD = 0.1, 9999.0, 100, 10.0**15


@dataclass(frozen=True)
class GaussianHistogram(StableHistogram):
    """As a stable histogram, with discrete Gaussian noise, and several units of count for each key.

    Theorem. Let neighbours have counts that differ in k keys at most, by c at most, and q be
    P[noise ≥ τ − c]. Of n keys that only P has each is told with probability q at most, and of m
    that only Q has. With g(n) = (1 − q)^n and R and S the laws of all other keys, P(A) is at most
    1 − g(n) + g(n) R(A) and Q(A) at least g(m) S(A), on what tells none of those of Q. So

        P(A) − t Q(A) ≤ 1 − g(l) + g(l) (R(A) − t S(A)),  l = max(n, m) ≤ k,

    as g(n) R − t g(m) S is g(m)(R − t S) + (g(n) − g(m)) R. R and S come of counts that differ by c
    in k keys: k uses of discrete Gaussian noise, and as often an event of probability q. ∎

    Attributes:
        scale: σ of the noise, from 0.1 to 9999.
        threshold: τ, above ``count_sensitivity``; as counts are whole, the next whole number.
        key_sensitivity: k, of how many keys, at most, the counts of neighbours differ.
        count_sensitivity: c, by how much each of them does, at most 100.

    >>> words = GaussianHistogram.calibrated(epsilon=1.0, delta=1e-6, key_sensitivity=100)
    >>> round(words.scale, 1), words.threshold
    (46.7, 270.0)
    """

    kind: ClassVar[str] = "gaussian-histogram"
    is_tight = False
    count_sensitivity: Annotated[int, at_least(1, _MOST_COUNT)] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not _LEAST <= self.scale <= _MOST:
            raise InputError(f"scale is {self.scale:g}; it must be from {_LEAST:g} to {_MOST:g}.")
        if self.threshold <= self.count_sensitivity:
            raise InputError(
                f"threshold is {self.threshold:g}; it must be above count_sensitivity, "
                f"{self.count_sensitivity}."
            )

    @classmethod
    def calibrated(
        cls, *, epsilon: float, delta: float, key_sensitivity: int = 1, count_sensitivity: int = 1
    ) -> Self:
        """Noise whose ρ has ε at half of δ, and with it the least threshold of the other half.

        Raises:
            InputError: if ε is not above 0, δ not in (0, 1), or no noise or threshold is so large.
        """
        wide = cls(_MOST, _MOST_THRESHOLD, key_sensitivity, count_sensitivity)  # checks the numbers
        epsilon, half = validate.positive(epsilon=epsilon), validate.open_fraction(delta=delta) / 2

        def enough(scale: float) -> bool:
            if scale < _LEAST:
                return False
            return float(_delta(replace(wide, scale=scale)._rho, np.array([epsilon]))[0]) <= half

        if not enough(_MOST):
            raise InputError(
                f"epsilon is {epsilon:g} and delta {delta:g}; no scale up to {_MOST:g} is enough."
            )
        noise = replace(wide, scale=first_float(enough, _MOST))
        least = float(count_sensitivity)

        def holds(threshold: float) -> bool:
            return threshold > least and replace(noise, threshold=threshold)._told <= half

        return replace(noise, threshold=first_float(holds, _MOST_THRESHOLD))

    # -- privacy ---------------------------------------------------------------------------------

    @property
    def noise(self) -> DiscreteGaussian:
        """Of each count."""
        return DiscreteGaussian(self.scale)

    @property
    def _rho(self) -> float:
        """Of all keys."""
        root = self.count_sensitivity / self.scale
        return up(concentration(root, 0.5) * self.key_sensitivity, 2)

    @property
    def _told(self) -> float:
        """At most the probability that one of as many new keys is told, as accountants add."""
        far = self.threshold - self.count_sensitivity
        each = _tail(self.scale, far)
        return min(round_up(self.key_sensitivity * Fraction(each)), 1.0)

    def pair(self, sensitivity: float) -> DominatingPair:
        """Of one key the noise and the failure, of several what ρ and the failure dominate.

        Raises:
            InputError: if the sensitivity, 1 where counts change at all, is not 0 or 1.
        """
        if not changes(sensitivity, self.kind):
            return costless_pair()
        if self.key_sensitivity > 1:
            return _of_rho(self._rho, self._told)
        alone, told = self.noise.pair(float(self.count_sensitivity)), self._told
        if not isinstance(alone, FinitePair) or alone.p_infinite + told >= 1:
            return vast_pair()
        infinite = up(alone.p_infinite + told)
        return FiniteBound(alone.losses, alone.p * (1 - told), alone.q * (1 - told), infinite)

    def pair_and_failure(self, sensitivity: float) -> tuple[DominatingPair, float]:
        """The noise alone, and the probability that a key is told by its presence."""
        if not changes(sensitivity, self.kind):
            return costless_pair(), 0.0
        if self.key_sensitivity > 1:
            return _of_rho(self._rho, 0.0), self._told
        return self.noise.pair(float(self.count_sensitivity)), self._told

    def work(self, sensitivity: float) -> float:
        """That of the noise."""
        return self.noise.work(sensitivity)

    def distance(self, one: NDArray[Any], other: NDArray[Any]) -> float:
        """As its base, with counts that may differ by more."""
        if one.shape != other.shape:
            return math.inf
        moved, keys, most = np.abs(one - other), self.key_sensitivity, self.count_sensitivity
        further = float(moved.max(where=moved > most, initial=0)) / most
        return max(np.count_nonzero(moved) / keys, further)


def _tail(sigma: float, least: float) -> float:
    """P[noise ≥ n] for n ≥ 1, rounded up: the mass at n, times what follows per mass at n."""
    steps = np.arange(math.ceil(40 * sigma) + 2.0)
    with np.errstate(under="ignore"):
        follows = np.exp(-(steps * (steps + 2 * least)) / (2 * sigma * sigma)).sum()
    size = (least / sigma) ** 2 / 2
    return exp_up(math.log(follows) + 1e-12 - size - log_normaliser(sigma), size + 20)


def _delta(rho: float, epsilons: Floats) -> Floats:
    """At most δ(ε) of ρ-zCDP, for ε > ρ: e^((α−1)(αρ−ε)) (1 − 1/α)^α/(α − 1), some α > 1.

    Canonne, Kamath and Steinke 2020, Proposition 12.
    """
    shares = np.geomspace(0.3, 3.0, 60)
    less = np.maximum((epsilons[:, None] / rho - 1) / 2 * shares, 1e-9)  # α − 1
    log = less * ((1 + less) * rho - epsilons[:, None]) - np.log(less)
    log += (1 + less) * np.log(less / (1 + less))
    found: Floats = np.exp(np.minimum(log.min(axis=1) + 1e-9, 0.0))
    return found


@lru_cache(maxsize=64)
def _of_rho(rho: float, failure: float) -> FinitePair:
    """The law that dominates what is private at each of some points, and fails with δ.

    At ε = 0 the total variation is at most √(ρ/2) (Pinsker).
    """
    epsilons = rho + np.linspace(0.1, 9.0, 90) * math.sqrt(2 * rho)
    at_zero = min(math.sqrt(rho / 2) * (1 + 1e-9) + failure, 1.0)
    deltas = np.minimum(_delta(rho, epsilons) + failure, 1.0)
    return FiniteBound(*profile_masses(epsilons, deltas, at_zero))
