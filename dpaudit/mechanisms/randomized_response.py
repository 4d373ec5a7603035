"""Randomised response over k answers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit import validate
from dpaudit.errors import InputError
from dpaudit.fields import Rate, at_least
from dpaudit.mechanisms.base import (
    Mechanism,
    Norm,
    checked_sensitivity,
    integer_array,
    sum_over_entries,
)
from dpaudit.mechanisms.pairs import DominatingPair, FinitePair, Floats

__all__ = ["RandomizedResponse"]


@dataclass(frozen=True)
class RandomizedResponse(Mechanism):
    """With probability p a uniform answer out of k, otherwise the truth (Warner 1965).

    The truth is thus released with probability 1 − p + p/k, and ε = ln(1 + k(1 − p)/p).

    Attributes:
        p: probability of the uniform answer, in (0, 1].
        k: number of answers, at least 2; answers are the integers 0…k−1.
    """

    kind: ClassVar[str] = "randomized-response"
    norm: ClassVar[Norm] = Norm.CHANGE
    p: Rate
    k: Annotated[int, at_least(2)] = 2

    @classmethod
    def calibrated(cls, *, epsilon: float, k: int = 2) -> RandomizedResponse:
        """The least p for ε, rounded up."""
        epsilon = validate.positive(epsilon=epsilon)
        k = validate.integer_at_least(2, k=k)
        p = k / (math.expm1(epsilon) + k)
        while float(cls(p, k).pair(1).pure_epsilon) > epsilon:
            p = math.nextafter(p, 1)
        return cls(p, k)

    def pair(self, sensitivity: float) -> DominatingPair:
        """Two different answers: losses −ε, 0 and ε. A sensitivity of 0 costs nothing.

        Raises:
            InputError: if the sensitivity is neither 0 nor 1.
        """
        changed = checked_sensitivity(sensitivity)
        if changed not in (0.0, 1.0):
            raise InputError(f"sensitivity is {sensitivity}; randomized-response takes 0 or 1.")
        lie, truth = self.p / self.k, 1 - self.p + self.p / self.k
        if changed == 0 or self.p == 1:
            return FinitePair(np.zeros(1), np.ones(1), np.ones(1))
        epsilon = math.nextafter(math.log1p(self.k * (1 - self.p) / self.p), math.inf)
        return FinitePair(
            np.array([-epsilon, 0.0, epsilon]),
            np.array([lie, (self.k - 2) * lie, truth]),
            np.array([truth, (self.k - 2) * lie, lie]),
        )

    def implied_sensitivity(self, contribution_factor: float, entries: int = 1) -> float | None:
        """1 for each answer: any may become any other."""
        return float(entries)

    def _prepare(self, value: ArrayLike) -> NDArray[Any]:
        answers = integer_array(value)
        if ((answers < 0) | (answers >= self.k)).any():
            raise InputError(f"value has an answer outside 0…{self.k - 1}.")
        return answers

    def _sample(self, values: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        lies = rng.random(values.shape) < self.p
        return np.where(lies, rng.integers(self.k, size=values.shape), values)

    def log_density(self, outputs: ArrayLike, value: ArrayLike) -> Floats:
        """Sum over entries of the log-probability of truth or lie."""
        outputs = np.asarray(outputs)
        lie, truth = self.p / self.k, 1 - self.p + self.p / self.k
        log_mass = np.where(outputs == self._prepare(value), math.log(truth), math.log(lie))
        possible = (outputs >= 0) & (outputs < self.k) & (outputs == np.floor(outputs))
        return sum_over_entries(np.where(possible, log_mass, -np.inf))
