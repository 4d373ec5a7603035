"""An answer as one of a few levels, by chance, and the level through randomised response.

An answer in [−½, ½] lies between two of k evenly spaced levels, and becomes one of them with the
probabilities that keep its mean. The number of the level passes randomised response, so that what
leaves is ε-locally private for every answer, and no proof rests on the coin. Two levels are the bit
of Duchi, Jordan and Wainwright (2018, Section 4.2.1). From ε = 1.1 on, more levels have a smaller
variance: at ε = 2 three of them 0.25, where a bit has 0.43 and Laplace noise 0.5; at ε = 5 seven of
them 0.021, where Laplace noise has 0.08.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpaudit.base.errors import InputError
from dpaudit.mechanisms import RandomizedResponse
from private_bo.gp.types import Array

_MOST = 32


@dataclass(frozen=True)
class Levels:
    """How an answer leaves, and what is read of it.

    Attributes:
        law: of k answers, or of k + 1 with ``silent``.
        silent: whether answer 0 stands for no answer, and level j for j + 1.

    >>> levels = Levels.best(5.0)
    >>> levels.count, round(levels.variance, 3), levels.number(0.5, 0.3)
    (7, 0.021, 6)
    """

    law: RandomizedResponse
    silent: bool = False

    @classmethod
    def best(cls, epsilon: float, *, silent: bool = False) -> Levels:
        """The ε-private ones of least variance.

        Raises:
            InputError: if ε is so small that all responses are coins.
        """
        found = [
            cls(RandomizedResponse.calibrated(epsilon=epsilon, k=k + silent), silent)
            for k in range(2, _MOST)
        ]
        if found[0].law.p == 1.0:
            raise InputError(
                f"epsilon is {epsilon!r}, so small that all responses would be fair coin tosses; "
                "it must be larger."
            )
        return min((each for each in found if each.law.p < 1.0), key=lambda each: each.variance)

    @property
    def count(self) -> int:
        """k, the number of levels."""
        return self.law.k - self.silent

    @property
    def values(self) -> Array:
        """The answers that the levels stand for, (k,)."""
        return np.linspace(-0.5, 0.5, self.count)

    def thresholds(self, coin: float) -> list[float]:
        """Above how many of these an answer lies is its level, for a uniform coin in [0, 1)."""
        steps = self.count - 1
        return [(place + coin) / steps - 0.5 for place in range(steps)]

    def number(self, scaled: float, coin: float) -> int:
        """What stands for an answer in [−½, ½]."""
        return self.silent + sum(scaled > each for each in self.thresholds(coin))

    def value(self, number: int) -> float:
        """The answer that a released number stands for, without bias; 0 for none."""
        place = int(number) - self.silent
        return 0.0 if place < 0 else float(self.values[place]) / (1.0 - self.law.p)

    @property
    def lie(self) -> float:
        """The variance of what is read where there is no answer: of lies alone."""
        spread = float(np.square(self.values).sum()) / self.law.k
        return self.law.p * spread / (1.0 - self.law.p) ** 2

    @property
    def variance(self) -> float:
        """Of what is read of an answer in [−½, ½], at most: of rounding and of lies."""
        p, low, high = self.law.p, self.values[:-1], self.values[1:]
        worst = np.clip((low + high) / 2 / (1.0 - p), low, high)
        rounding = (worst - low) * (high - worst)
        return float(((rounding + p * worst**2) / (1.0 - p)).max()) + self.lie
