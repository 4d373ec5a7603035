"""The parties of Algorithms 1 and 2 of Dubey 2021: a server, and a privatiser with the raw data.

Line numbers count every printed line of an algorithm, as in :mod:`private_bo.joint.central`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

import numpy as np

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.ledger import Ledger
from dpaudit.mechanisms import ContinualGaussian
from private_bo.gp import FeatureMap
from private_bo.gp.types import Array
from private_bo.joint.statistics import Belief, Learner, Statistics, Sums

_ROUNDING = 1e-9


class OutOfRange(StrEnum):
    """What happens to a reward outside the declared range."""

    CLIP = "clip"
    REFUSE = "refuse"


@dataclass(eq=False)
class RewardGate:
    """Keeps rewards within the public range.

    Attributes:
        reward_range: (low, high).
        rule: clip or refuse.
        clipped: how many were clipped: private, since it depends on the data without noise.
    """

    reward_range: tuple[float, float]
    rule: OutOfRange
    clipped: int = 0

    def __call__(self, reward: object) -> float:
        """The reward, within the range.

        Raises:
            InputError: if it is not a finite number, or outside and outsiders are refused.
        """
        number = math.nan
        with suppress(InputError):  # whose words hold the value
            number = validate.finite(reward=reward)
        if math.isnan(number):
            raise InputError("reward is not a finite number.")
        low, high = self.reward_range
        if low <= number <= high:
            return number
        if self.rule is OutOfRange.REFUSE:
            raise InputError(
                f"reward is outside the declared range [{low:g}, {high:g}]; it must be within, or "
                "set out_of_range to clip."
            )
        self.clipped += 1
        return min(high, max(low, number))


def unit_features(phi: Array, size: int) -> Array:
    """Features of one point, checked: the sensitivity rests on ‖φ‖ <= 1.

    Raises:
        InputError: if the shape is not (m,), or the norm is above 1 by more than rounding.
    """
    array = validate.real_array(features=phi)
    if array.shape != (size,):
        raise InputError(f"features has shape {array.shape}; it must be ({size},).")
    norm = float(np.linalg.norm(array))
    if norm > 1 + _ROUNDING:
        raise InputError(f"features has norm {norm:.6g}; it must be at most 1.")
    # The norm itself is rounded, so what is near 1 is brought clearly to or below it.
    return array / norm * (1 - 1e-15) if norm > 1 - 1e-14 else array


@dataclass(frozen=True)
class Period:
    """Consecutive rounds that share one stream of noise.

    Attributes:
        start: rounds before it.
        mechanism: of its stream; None of its users are in another one.
        at: label of its invocation.
    """

    start: int
    mechanism: ContinualGaussian
    at: str

    @property
    def steps(self) -> int:
        """How many rounds it has."""
        return self.mechanism.factorization.steps

    @cached_property
    def deviations(self) -> Array:
        """Of the noise of its sums, round by round, along every unit vector, (steps,)."""
        return self.mechanism.error() * (math.sqrt(2) if self.mechanism.symmetric else 1.0)


@dataclass(eq=False)
class JointPrivatiser:
    """Algorithm 2: counts users, and shows noisy sums. It alone holds raw data.

    Attributes:
        statistics: what a user contributes.
        periods: streams of noise, one after the other.
        ledger: where the streams are charged.
        gate: keeps rewards in range.
        rounds: how many users are counted.
    """

    statistics: Statistics
    periods: Sequence[Period]
    ledger: Ledger
    gate: RewardGate
    rounds: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._finished = np.zeros(self.statistics.shape)
        self._finished_variance = 0.0
        self._current = np.zeros(self.statistics.shape)
        self._period = -1
        self._end = 0

    def sums(self) -> Sums | None:
        """The current parameters, private by themselves (Remark 1); None before the first user.

        Lines 3 to 5: what is on the path to the current node has been added up already.
        """
        if self.rounds == 0:
            return None
        deviation = math.sqrt(self._finished_variance + self._variance(self.rounds))
        return self.statistics.decode(self._finished + self._current, self.rounds, deviation)

    def update(self, phi: Array, reward: object) -> None:
        """Count one more user and draw the noise of the next parameters (lines 6 to 9).

        Args:
            phi: features of the arm that was played, (m,).
            reward: what the user answered.

        Raises:
            InputError: if the features or the reward are wrong, or all declared rounds are over.
                Nothing is counted or drawn then.
        """
        features = unit_features(phi, self.statistics.size)
        number = self.gate(reward)  # line 7
        if self.rounds == self._end:
            self._next_period()
        contribution = self.statistics.encode(features, number)
        self._current = self._stream.add(contribution)  # lines 8 and 9
        self.rounds += 1

    def close(self) -> None:
        """Open the streams that no user came for, so that the ledger holds all that was declared.

        They are over disjoint users and release nothing.
        """
        for period in self.periods[self._period + 1 :]:
            self.ledger.stream(period.mechanism, self.statistics.shape, at=period.at)

    def _next_period(self) -> None:
        """Start a new tree (line 1); the sums of the last one are kept as they are."""
        if self._period + 1 == len(self.periods):
            raise InputError(
                f"steps is {self._end} and all rounds have been played; declare more beforehand."
            )
        if self._period >= 0:
            self._finished = self._finished + self._current
            self._finished_variance += self._variance(self.rounds)
        self._period += 1
        period = self.periods[self._period]
        self._stream = self.ledger.stream(period.mechanism, self.statistics.shape, at=period.at)
        self._end = period.start + period.steps

    def _variance(self, rounds: int) -> float:
        """Of the current period's noise, per unit of norm."""
        period = self.periods[self._period]
        return float(period.deviations[rounds - period.start - 1] ** 2)


@dataclass(eq=False)
class JointServer:
    """The server of Algorithm 1: chooses arms from parameters that are private already.

    Attributes:
        feature_map: Φ.
        learner: from parameters to a belief.
        refresh: by which share the number of rounds grows until V is factorised again.
        parameters: those behind the current choices (Remark 1); None at first.
        belief: what follows from them.
    """

    feature_map: FeatureMap
    learner: Learner
    refresh: float
    parameters: Sums | None = field(default=None, init=False)
    belief: Belief = field(init=False)

    def __post_init__(self) -> None:
        self.belief = self.learner.belief(None)
        self._due = 1

    def due(self, rounds: int) -> bool:
        """Whether parameters of that many rounds would be used."""
        return rounds >= self._due

    def observe(self, sums: Sums | None) -> None:
        """Take Σ̃ and ũ, and compute V, θ and β from them (lines 6 to 8).

        They serve until the next ones are due.
        """
        if sums is None:
            return
        self.parameters = sums
        self.belief = self.learner.belief(sums)
        self._due = max(sums.rounds + 1, math.ceil(sums.rounds * (1 + self.refresh)))

    def choose(self, decision_set: Array) -> tuple[int, Array]:
        """The arm of largest mean plus width, the first of equals, and its features (line 9).

        Args:
            decision_set: (n, d).

        Raises:
            InputError: if it is empty, of another dimension, or not finite.
        """
        arms = np.asarray(decision_set)
        if arms.ndim != 2 or len(arms) == 0:
            raise InputError("decision_set must have shape (n, d), with at least one arm.")
        features = self.feature_map(arms)
        arm = int(self.belief.scores(features).argmax())
        return arm, features[arm]
