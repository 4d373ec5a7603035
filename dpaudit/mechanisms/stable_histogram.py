"""Counts of keys that nobody knows beforehand: noisy ones above a threshold alone are told."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.base.fields import Positive, at_least
from dpaudit.mechanisms.base import Mechanism, Norm, changes, integer_array, sum_over_entries
from dpaudit.mechanisms.discrete_laplace import DiscreteLaplace
from dpaudit.mechanisms.inversion import first_float
from dpaudit.mechanisms.pairs import DominatingPair, Floats, approximate_pair, costless_pair
from dpaudit.mechanisms.pairs.finite import FiniteBound
from dpaudit.mechanisms.rounding import exp_up, round_up, up

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
            raise InputError(f"delta is {delta:g}; no threshold is so large for scale {scale:g}.")
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
        noise = DiscreteLaplace(self.scale)
        silent = np.log(noise.at_least(counts - self.threshold + 1))  # as the law is symmetric
        shown = (told >= self.threshold) & (counts > 0)
        masses = noise.log_noise_density(told - counts)
        masses = np.where(shown, masses, -np.inf)
        return sum_over_entries(np.where(told == 0, np.where(counts > 0, silent, 0.0), masses))
