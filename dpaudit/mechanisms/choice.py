"""Private choices of one of many candidates: what they share."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit import validate
from dpaudit.errors import InputError
from dpaudit.fields import Positive
from dpaudit.mechanisms.base import Mechanism, Norm
from dpaudit.mechanisms.exact import ExactSource, decays
from dpaudit.mechanisms.pairs import Floats
from dpaudit.mechanisms.rounding import as_float
from dpaudit.mechanisms.tails import Tails, choice_tails

_LARGEST = float(np.finfo(np.float64).max)
Decay = Callable[[int], bool]


@dataclass(frozen=True)
class Choice(Mechanism):
    """Chooses an index by utilities; a subclass says by which law, and what it costs.

    The private value is the vector of utilities, one for each candidate; the release is an index.

    Attributes:
        epsilon: the pure ε of one choice.
        utility_sensitivity: Δ, the most by which any one utility differs between neighbours.
    """

    norm: ClassVar[Norm] = Norm.CHANGE
    epsilon: Positive
    utility_sensitivity: Positive = 1.0

    @abstractmethod
    def log_masses(self, exponents: Floats) -> Floats:
        """Ln of the probability of each index, given all exponents, shape (k,)."""

    @property
    def span(self) -> int:
        """By how many Δ two utilities may move apart: 2, but 1 where all move in one direction."""
        return 2

    def worst_pairs(self) -> tuple[tuple[list[float], list[float], str], ...]:
        """Two candidates whose utilities change places."""
        high = self.utility_sensitivity
        return (([high, 0.0], [0.0, high], "two candidates that change places"),)

    def distance(self, one: NDArray[Any], other: NDArray[Any]) -> float:
        """How far the utilities move, in units of Δ: 1 where they move as much as they may."""
        return largest_move(one, other, self.utility_sensitivity, monotonic=self.span == 1)

    # -- release ---------------------------------------------------------------------------------

    def prepare(self, value: ArrayLike) -> NDArray[Any]:
        """A vector of utilities."""
        utilities = validate.real_array(value=value)
        if utilities.ndim != 1 or utilities.size == 0:
            raise InputError("value must be a vector of utilities, one for each candidate.")
        return utilities

    def exponents(self, utilities: Floats) -> Floats:
        """ε (u − max u)/2Δ, at most 0, or twice that where all move in one direction.

        A gap beyond floats is as good as the largest float.
        """
        with np.errstate(over="ignore"):
            gaps = np.maximum(utilities - utilities.max(axis=-1, keepdims=True), -_LARGEST)
            exponents: Floats = np.maximum(gaps * self._factor, -_LARGEST)
        return exponents

    @property
    def _factor(self) -> float:
        """ε/2Δ, within what floats hold."""
        return as_float(Fraction(self.epsilon) / (self.span * Fraction(self.utility_sensitivity)))

    def by_exact_decays(
        self, values: NDArray[Any], choose: Callable[[int, Decay], int], source: ExactSource
    ) -> NDArray[Any]:
        """Choices made with events of probability exp(−γ_i), where −γ_i is the exponent of i.

        Exactly, of the utilities, ε and Δ as the rational numbers that the floats are.

        Args:
            values: utilities, the last axis that of the candidates.
            choose: makes one choice, given their number and the event of each.
            source: of uniform integers.
        """
        rows = values.reshape(-1, values.shape[-1])
        chosen = [choose(row.size, self._decays(row, source)) for row in rows]
        return np.array(chosen, dtype=np.int64).reshape(values.shape[:-1])

    def _decays(self, utilities: NDArray[Any], source: ExactSource) -> Decay:
        epsilon, epsilon_scale = self.epsilon.as_integer_ratio()
        delta, delta_scale = self.utility_sensitivity.as_integer_ratio()
        above, below = epsilon * delta_scale, self.span * epsilon_scale * delta
        best, scale = float(utilities.max()).as_integer_ratio()

        def event(place: int) -> bool:
            own, own_scale = float(utilities[place]).as_integer_ratio()
            gap = best * own_scale - own * scale
            return decays(above * gap, below * scale * own_scale, source)

        return event

    # -- law -------------------------------------------------------------------------------------

    def log_density(self, outputs: ArrayLike, value: ArrayLike) -> Floats:
        """Ln of the probability of each index."""
        chosen, log_mass = np.asarray(outputs), self._of_value(value)
        possible = (chosen >= 0) & (chosen < log_mass.size) & (chosen == np.floor(chosen))
        index = np.where(possible, chosen, 0).astype(np.int64)
        density: Floats = np.where(possible, log_mass[index], -np.inf)
        return density

    def tails(self, released: ArrayLike, value: NDArray[Any], rng: np.random.Generator) -> Tails:
        """One choice."""
        masses = np.exp(self._of_value(value))
        return choice_tails(masses[None], np.ravel(released).astype(np.int64), rng)

    def probabilities(self, value: ArrayLike) -> tuple[float, ...]:
        """The probability of each index, given the utilities."""
        return tuple(np.exp(self._of_value(value)).tolist())

    def _of_value(self, value: ArrayLike) -> Floats:
        return self.log_masses(self.exponents(self.prepare(value)))


def largest_move(one: NDArray[Any], other: NDArray[Any], unit: float, *, monotonic: bool) -> float:
    """The largest change of an entry, in ``unit``; infinite between vectors of different shape.

    Args:
        one: a vector.
        other: another.
        unit: the most by which an entry may change.
        monotonic: whether all change in one direction. Half the noise is made for what a rise and a
            fall are together, which is the change of one entry where there is but one direction.
    """
    if one.shape != other.shape:
        return math.inf
    moved = one.astype(np.float64) - other
    rise, fall = float(moved.max(initial=0.0)), float(-moved.min(initial=0.0))
    return (rise + fall if monotonic else max(rise, fall)) / unit


def by_rejection(source: ExactSource) -> Callable[[int, Decay], int]:
    """The law of the exponential mechanism.

    A candidate is drawn uniformly and taken with probability exp(−γ); else another one is drawn.
    One trial ends with candidate i with probability exp(−γ_i)/k, and trials are independent, so
    that i is taken with probability exp(−γ_i)/Σ_j exp(−γ_j). As the best candidate is always taken
    when it is drawn, at most k trials are expected: k, where it dominates all others.
    """

    def choose(size: int, event: Decay) -> int:
        while not event(place := source.below(size)):
            pass
        return place

    return choose
