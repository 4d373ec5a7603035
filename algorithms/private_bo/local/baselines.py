"""The non-private comparators: GP-UCB, and three algorithms for heavy-tailed rewards.

They share the code of the locally private algorithms; the learner sees rewards in the clear, and
the bounds B, v and c are those of the problem. ATA- and TGP-GP-UCB are of Chowdhury & Gopalan
2019, with the parameters of their experiments; MoMA-GP-UCB is Algorithm 3 of Zhou & Tan 2021.

>>> from private_bo.problems import neighbourhood_prices
>>> result = GPUCB(steps=50).run(neighbourhood_prices(), np.random.default_rng(0))
>>> result.summary["responses"]
50
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from dpaudit import validate
from dpaudit.errors import InputError
from dpaudit.project import RunResult
from private_bo.local.ata import adaptively_truncated_gp_ucb
from private_bo.local.heavy_tails import FeatureTruncation, RewardTruncation, SubGaussian
from private_bo.local.moma import median_of_means_gp_ucb
from private_bo.local.results import run_result
from private_bo.local.schedules import MedianOfMeans, epochs_of, theorem_plays_per_epoch
from private_bo.local.tgp import truncated_gp_ucb
from private_bo.local.users import Outcome, Users, in_the_clear
from private_bo.problems import BanditProblem
from private_bo.threads import single_threaded

__all__ = ["ATAGPUCB", "GPUCB", "TGPUCB", "MoMAGPUCB"]


@dataclass(frozen=True)
class Baseline(ABC):
    """Base of the non-private algorithms.

    Attributes:
        steps: T, the number of responses at most.
        confidence: δ, the failure probability of the regret bound.
        regularisation: λ.
        width_multiplier: factor on every confidence width; 1 is the published setting.

    Raises:
        InputError: if a field is out of its range.
    """

    steps: int = 1000
    confidence: float = 0.1
    regularisation: float = 1.0
    width_multiplier: float = 1.0

    def __post_init__(self) -> None:
        self._set("steps", validate.integer_at_least(1, steps=self.steps))
        self._set("confidence", validate.open_fraction(confidence=self.confidence))
        for name in ("regularisation", "width_multiplier"):
            self._set(name, validate.positive(**{name: getattr(self, name)}))

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def run(self, problem: BanditProblem, rng: np.random.Generator) -> RunResult:
        """Find the point of largest mean reward.

        Args:
            problem: whose users are asked.
            rng: source of the rewards and of the dictionaries.

        Raises:
            InputError: if ``problem`` is none, a reward is no finite number, or users run out.
        """
        if not isinstance(problem, BanditProblem):
            raise InputError(f"problem is a {type(problem).__name__}; it must be a BanditProblem.")
        with single_threaded():
            outcome = self._play(Users(problem, in_the_clear, rng, self._plays), rng)
        return run_result(type(self).__name__, problem, outcome, self._settings())

    @property
    def _plays(self) -> int:
        return 1

    def _settings(self) -> dict[str, float]:
        return {"width multiplier": self.width_multiplier}

    @abstractmethod
    def _play(self, users: Users, rng: np.random.Generator) -> Outcome:
        """The algorithm."""


@dataclass(frozen=True)
class GPUCB(Baseline):
    """GP-UCB without truncation, for sub-Gaussian noise (Chowdhury & Gopalan 2017).

    Its noise scale is the problem's R, or √c where the noise is unbounded; its regret bound does
    not hold for heavy tails.
    """

    def _play(self, users: Users, rng: np.random.Generator) -> Outcome:
        problem = users.problem
        schedule = SubGaussian(
            B=problem.B,
            deviation=problem.R if math.isfinite(problem.R) else math.sqrt(problem.c),
            confidence=self.confidence,
            regularisation=self.regularisation,
            width_multiplier=self.width_multiplier,
        )
        return truncated_gp_ucb(
            users, schedule, steps=self.steps, regularisation=self.regularisation
        )


@dataclass(frozen=True)
class HeavyTailed(Baseline):
    """Base of the algorithms that need no more than a moment of order 1 + α.

    Attributes:
        moment: α in (0, 1].
        dictionary_accuracy: ε̃ in (0, 1) of the Nyström features, where there are any.
    """

    moment: float = 1.0
    dictionary_accuracy: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("moment", validate.fraction(moment=self.moment))
        accuracy = validate.open_fraction(dictionary_accuracy=self.dictionary_accuracy)
        self._set("dictionary_accuracy", accuracy)


@dataclass(frozen=True)
class TGPUCB(HeavyTailed):
    """TGP-UCB (Chowdhury & Gopalan 2019): truncates each reward once."""

    def _play(self, users: Users, rng: np.random.Generator) -> Outcome:
        schedule = RewardTruncation(
            B=users.problem.B,
            v=users.problem.v,
            moment=self.moment,
            regularisation=self.regularisation,
            width_multiplier=self.width_multiplier,
        )
        return truncated_gp_ucb(
            users, schedule, steps=self.steps, regularisation=self.regularisation
        )


@dataclass(frozen=True)
class ATAGPUCB(HeavyTailed):
    """ATA-GP-UCB (Chowdhury & Gopalan 2019): truncates the history by feature, every round."""

    def _play(self, users: Users, rng: np.random.Generator) -> Outcome:
        schedule = FeatureTruncation(
            B=users.problem.B,
            v=users.problem.v,
            moment=self.moment,
            horizon=self.steps,
            accuracy=self.dictionary_accuracy,
            regularisation=self.regularisation,
            width_multiplier=self.width_multiplier,
        )
        return adaptively_truncated_gp_ucb(
            users, schedule, steps=self.steps, regularisation=self.regularisation, rng=rng
        )


@dataclass(frozen=True)
class MoMAGPUCB(HeavyTailed):
    """MoMA-GP-UCB, Algorithm 3 of Zhou & Tan 2021, with the parameters of Theorem 4.

    Attributes:
        plays_per_epoch: k, or None for the theorem's ⌈24 ln(4eT/δ)⌉.
    """

    plays_per_epoch: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.plays_per_epoch is not None:
            plays = validate.integer_at_least(1, plays_per_epoch=self.plays_per_epoch)
            self._set("plays_per_epoch", plays)
        epochs_of(self.steps, self.plays)

    @property
    def plays(self) -> int:
        """k, as given or as the theorem has it."""
        if self.plays_per_epoch is not None:
            return self.plays_per_epoch
        return theorem_plays_per_epoch(self.steps, self.confidence)

    @property
    def _plays(self) -> int:
        return self.plays

    def _settings(self) -> dict[str, float]:
        return {"plays per epoch": self.plays} | super()._settings()

    def _play(self, users: Users, rng: np.random.Generator) -> Outcome:
        schedule = MedianOfMeans(
            B=users.problem.B,
            c=users.problem.c,
            moment=self.moment,
            horizon=self.steps,
            confidence=self.confidence,
            accuracy=self.dictionary_accuracy,
            regularisation=self.regularisation,
            width_multiplier=self.width_multiplier,
        )
        return median_of_means_gp_ucb(
            users,
            schedule,
            epochs=epochs_of(self.steps, self.plays),
            regularisation=self.regularisation,
            rng=rng,
        )
