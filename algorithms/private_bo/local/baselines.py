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

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from dpaudit.base import validate
from dpaudit.base.fields import Checked, Count, OpenProbability, Positive, Rate
from dpaudit.project import RunResult
from private_bo.local.policies import (
    Constants,
    Epochs,
    FeatureTruncation,
    MedianOfMeans,
    Outcome,
    Policy,
    RewardTruncation,
    Schedule,
    SubGaussian,
    Users,
    adaptively_truncated_gp_ucb,
    ask_ahead,
    clear_channel,
    median_of_means_gp_ucb,
    run_result,
    truncated_gp_ucb,
)
from private_bo.problems import BanditProblem


@dataclass(frozen=True)
class Baseline(Checked):
    """Base of the non-private algorithms.

    Attributes:
        steps: T, the number of responses at most.
        confidence: δ, the failure probability of the regret bound.
        regularisation: λ.
        width_multiplier: factor on every confidence width; 1 is the published setting.
    """

    policy: ClassVar[Policy[Any]]

    steps: Count = 1000
    confidence: OpenProbability = 0.1
    regularisation: Positive = 1.0
    width_multiplier: Positive = 1.0

    def run(self, problem: BanditProblem, rng: np.random.Generator) -> RunResult:
        """Find the point of largest mean reward.

        Args:
            problem: whose users are asked.
            rng: source of the rewards and of the dictionaries.

        Raises:
            InputError: if ``problem`` is none, a reward is not a finite number, or users run out.
        """
        users = Users(
            validate.instance(BanditProblem, problem=problem), clear_channel, rng, self.plays
        )
        outcome = self.policy.play(users, self.constants(problem), rng)
        return run_result(type(self).__name__, problem, outcome, self._settings())

    def constants(self, problem: BanditProblem) -> Constants:
        """What thresholds and widths follow from: the bounds are those of the problem."""
        return Constants(
            horizon=self.steps,
            B=problem.B,
            R=problem.R,
            v=problem.v,
            c=problem.c,
            confidence=self.confidence,
            regularisation=self.regularisation,
            width_multiplier=self.width_multiplier,
        )

    @property
    def plays(self) -> int:
        """How many users are asked about a point in a row."""
        return 1

    def _settings(self) -> dict[str, float]:
        return {"width multiplier": self.width_multiplier}


@dataclass(frozen=True)
class GPUCB(Baseline):
    """GP-UCB without truncation, for sub-Gaussian noise (Chowdhury & Gopalan 2017).

    Its noise scale is the problem's R, or √c where the noise is unbounded; its regret bound does
    not hold for heavy tails.
    """

    policy: ClassVar[Policy[Any]] = Policy(truncated_gp_ucb, SubGaussian)


def _ask_ahead(users: Users, schedule: Schedule, rng: np.random.Generator) -> Outcome:
    """The learner of the one-bit responses, on rewards whose means lie in ±B."""
    public = schedule.constants
    channel = users.channel
    users.channel = lambda user, reward: channel(user, reward) / public.B
    outcome = ask_ahead(users, public.horizon, public.c / public.B**2)
    return Outcome(outcome.choices, public.B * outcome.mean)


@dataclass(frozen=True)
class LookaheadGP(Baseline):
    """The Bayesian lookahead of :mod:`~private_bo.local.policies`, without truncation or widths.

    Of the fields only ``steps`` has a use. It is no algorithm of the paper: in Figure 2 it stands
    for what is lost where one width multiplier must serve panels whose noise differs from their
    means by factors from 0.1 to 1.7 (√c/B), as MoMA-GP-UCB's does in panel d.
    """

    policy: ClassVar[Policy[Any]] = Policy(_ask_ahead, Schedule)


@dataclass(frozen=True)
class HeavyTailed(Baseline):
    """Base of the algorithms that need no more than a moment of order 1 + α.

    Attributes:
        moment: α in (0, 1].
        dictionary_accuracy: ε̃ in (0, 1) of the Nyström features, where there are any.
    """

    moment: Rate = 1.0
    dictionary_accuracy: OpenProbability = 0.1

    def constants(self, problem: BanditProblem) -> Constants:
        """Those of the base class, with moment and accuracy."""
        public = super().constants(problem)
        return replace(public, moment=self.moment, accuracy=self.dictionary_accuracy)


@dataclass(frozen=True)
class TGPUCB(HeavyTailed):
    """TGP-UCB (Chowdhury & Gopalan 2019): truncates each reward once."""

    policy: ClassVar[Policy[Any]] = Policy(truncated_gp_ucb, RewardTruncation)


@dataclass(frozen=True)
class ATAGPUCB(HeavyTailed):
    """ATA-GP-UCB (Chowdhury & Gopalan 2019): truncates the history by feature, every round."""

    policy: ClassVar[Policy[Any]] = Policy(adaptively_truncated_gp_ucb, FeatureTruncation)


@dataclass(frozen=True)
class MoMAGPUCB(Epochs, HeavyTailed):
    """MoMA-GP-UCB, Algorithm 3 of Zhou & Tan 2021, with the parameters of Theorem 4.

    Attributes:
        plays_per_epoch: k, or None for the theorem's ⌈24 ln(4eT/δ)⌉.
    """

    policy: ClassVar[Policy[Any]] = Policy(median_of_means_gp_ucb, MedianOfMeans)

    plays_per_epoch: Count | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.epochs  # at least one

    def _settings(self) -> dict[str, float]:
        return {"plays per epoch": self.plays} | super()._settings()
