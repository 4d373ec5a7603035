"""The staircase mechanism: the pure noise of least size."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.base.errors import InputError
from dpaudit.base.fields import OpenProbability, Positive
from dpaudit.mechanisms.additive import AdditiveNoise
from dpaudit.mechanisms.base import Norm, checked_sensitivity, single_entry
from dpaudit.mechanisms.pairs import DominatingPair, FinitePair, Floats, costless_pair


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
                f"sensitivity is {sensitivity}; staircase noise of that width takes at most "
                f"{self.width}."
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

    def log_noise_density(self, noise: Floats) -> Floats:
        """Of the inner part of the first step, less ε for each level."""
        step, inner = self.steps
        level = np.floor(np.abs(noise) / self.width + 1 - step)
        first = math.log(-math.expm1(-self.epsilon)) + math.log(inner) - math.log(step)
        return first - math.log(2 * self.width) - self.epsilon * level
