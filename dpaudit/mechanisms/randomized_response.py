"""Randomised response over k answers."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.base import validate
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.base.fields import Rate, at_least
from dpaudit.mechanisms.base import Mechanism, Norm, changes, integer_array, sum_over_entries
from dpaudit.mechanisms.pairs import DominatingPair, FinitePair, Floats, costless_pair
from dpaudit.mechanisms.rounding import up

_MOST_OUTPUTS = 10**6


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
    k: Annotated[int, at_least(2, 2**53)] = 2

    @classmethod
    def calibrated(cls, *, epsilon: float, k: int = 2) -> RandomizedResponse:
        """Find about the least p whose ε, rounded up, does not exceed the wish.

        Raises:
            InputError: if ε is not above 0, or k below 2.
        """
        epsilon = validate.positive(epsilon=epsilon)
        k = validate.integer_at_least(2, k=k)
        p, step = k / (math.expm1(min(epsilon, 700.0)) + k), 2.0**-53
        if epsilon > 700:
            p = max(k * math.exp(-epsilon), 5e-324)
        while cls(p, k).pair(1).pure_epsilon > epsilon:
            p, step = min(math.nextafter(p + step * p, 1.0), 1.0), 2 * step
        return cls(p, k)

    # -- privacy ---------------------------------------------------------------------------------

    def pair(self, sensitivity: float) -> DominatingPair:
        """Two different answers: losses −ε, 0 and ε. A sensitivity of 0 costs nothing.

        Raises:
            InputError: if the sensitivity is neither 0 nor 1.
        """
        if not changes(sensitivity, self.kind) or self.p == 1:
            return costless_pair()
        lie, truth = self.answer_probabilities
        odds = self.k * (1 - self.p) / self.p
        if odds < math.inf:
            epsilon = math.nextafter(math.log1p(odds), math.inf)
        else:  # the 1 beside it is nothing
            epsilon = up(math.log(self.k) + math.log1p(-self.p) - math.log(self.p), 8)
        return FinitePair(
            np.array([-epsilon, 0.0, epsilon]),
            np.array([lie, (self.k - 2) * lie, truth]),
            np.array([truth, (self.k - 2) * lie, lie]),
        )

    @property
    def answer_probabilities(self) -> tuple[float, float]:
        """Probability of one wrong answer, and of the true one."""
        return self.p / self.k, 1 - self.p + self.p / self.k

    def strength(self, sensitivity: float) -> tuple[Hashable, Fraction | float]:
        """−p, for k answers: with more uniform answers it is a post-processing."""
        return (self.k, sensitivity), -self.p

    def implied_sensitivity(self, contribution_factor: float, entries: int = 1) -> float | None:
        """1 for each answer: any may become any other."""
        return float(entries)

    # -- release ---------------------------------------------------------------------------------

    def prepare(self, value: ArrayLike) -> NDArray[Any]:
        """Integers in 0…k−1."""
        answers = integer_array(value)
        if ((answers < 0) | (answers >= self.k)).any():
            raise InputError(f"value has an answer outside 0…{self.k - 1}.")
        return answers

    # -- law -------------------------------------------------------------------------------------

    def log_density(self, outputs: ArrayLike, value: ArrayLike) -> Floats:
        """Sum over entries of the log-probability of truth or lie."""
        outputs = np.asarray(outputs)
        lie, truth = self.answer_probabilities
        log_mass = np.where(outputs == self.prepare(value), math.log(truth), math.log(lie))
        possible = (outputs >= 0) & (outputs < self.k) & (outputs == np.floor(outputs))
        return sum_over_entries(np.where(possible, log_mass, -np.inf))

    def probabilities(self, value: ArrayLike) -> tuple[Fraction, ...]:
        """List all vectors of answers in lexicographic order, each answer independent; exact.

        Raises:
            UnsupportedError: if there are more than a million.
        """
        answers = np.ravel(self.prepare(value)).tolist()
        if self.k ** len(answers) > _MOST_OUTPUTS:
            raise UnsupportedError(
                f"{len(answers)} answers of {self.k} have more than {_MOST_OUTPUTS} outputs; audit "
                "one answer, as they are independent."
            )
        lie = Fraction(self.p) / self.k
        truth = 1 - Fraction(self.p) + lie
        joint = [Fraction(1)]
        for answer in answers:
            row = [truth if output == answer else lie for output in range(self.k)]
            joint = [mass * chance for mass in joint for chance in row]
        return tuple(joint)
