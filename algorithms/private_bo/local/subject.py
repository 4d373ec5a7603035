"""What the three algorithms of the paper have in common: Laplace noise, and constants."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpaudit.base.errors import InputError
from dpaudit.base.fields import Count, NonNegative, OpenProbability, Positive
from dpaudit.certificate import Finding, Severity
from dpaudit.ledger import Ledger
from dpaudit.mechanisms import Laplace
from private_bo.local.algorithm import Algorithm
from private_bo.local.answers import LocalAnswers, one_number
from private_bo.local.schedules import Constants
from private_bo.local.users import Channel, Outcome, Users


@dataclass(frozen=True)
class LocallyPrivate(LocalAnswers):
    """Base of the algorithms whose users add Laplace noise to their own reward.

    The mechanism is Curator 1 of Zhou & Tan 2021 with the clip that its claim needs:
    ``clip(y, ±(B+R)) + Laplace(2(B+R)/ε)``, which is ε-locally private for every real input,
    whatever the law of the noise. Section 4.5 of the paper does without the clip, for unbounded
    noise, and its (ε, δ) is then an average over the noise; that variant is not offered.

    Rewards are neither scaled nor centred: B, R and the rewards are in the same units. Where B + R
    is too small for the data, rewards are clipped, which costs accuracy and never privacy.

    Attributes:
        epsilon: ε of one response.
        reward_bound: B, bound of the mean reward.
        noise_bound: R, bound of the deviation of a reward from its mean.
        steps: T, the number of responses at most.
        confidence: δ, the failure probability of the regret bound (no privacy parameter).
        dictionary_accuracy: ε̃ in (0, 1) of the Nyström features (no privacy parameter).
        regularisation: λ.
        answers_per_user: how often one user may answer; c answers cost cε.
        width_multiplier: factor on every confidence width β; 1 is the theorem's.
        bounds_are_public: whether B and R were chosen without looking at the rewards.

    Raises:
        InputError: if a field is out of its range.
    """

    bounds: ClassVar[tuple[str, str]] = ("The reward bound B and the noise bound R", "B and R")
    algorithm: ClassVar[Algorithm[Any]]

    epsilon: Positive = 1.0
    reward_bound: Positive = 1.0
    noise_bound: NonNegative = 1.0
    steps: Count = 1000
    confidence: OpenProbability = 0.1
    dictionary_accuracy: OpenProbability = 0.1
    regularisation: Positive = 1.0
    answers_per_user: Count = 1
    width_multiplier: Positive = 1.0
    bounds_are_public: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 < (scale := 2.0 * self.clip_bound / self.epsilon) < math.inf:
            raise InputError(
                f"epsilon is {self.epsilon!r}, so that the noise scale 2(B+R)/ε is {scale}; it "
                "must be a finite number above 0."
            )

    # -- privacy ---------------------------------------------------------------------------------

    @property
    def clip_bound(self) -> float:
        """B + R, the largest magnitude of a reward that is not clipped."""
        return self.reward_bound + self.noise_bound

    @property
    def range(self) -> tuple[float, float]:
        """±(B + R)."""
        return -self.clip_bound, self.clip_bound

    @property
    def sensitivity(self) -> float:
        """2(B + R)."""
        return 2.0 * self.clip_bound

    @property
    def mechanism(self) -> Laplace:
        """The local randomiser that every reward passes."""
        bound = self.clip_bound
        return Laplace.calibrated(
            epsilon=self.epsilon, sensitivity=2.0 * bound, clip=(-bound, bound)
        )

    def findings(self) -> tuple[Finding, ...]:
        """Data-dependent bounds, and settings for which the regret theorem does not speak."""
        findings = list(super().findings())
        if departures := self._departures():
            findings.append(
                Finding(
                    "off-theorem",
                    Severity.NOTE,
                    f"The regret bound is not the paper's: {', '.join(departures)}. Privacy is "
                    "not affected.",
                    "Keep the defaults where the regret bound matters.",
                )
            )
        if reasons := self._obstacles():
            findings.append(
                Finding(
                    "cannot-learn",
                    Severity.NOTE,
                    f"This setting cannot learn: {', and '.join(reasons)}. Privacy is not "
                    "affected.",
                    "Lower width_multiplier and plays_per_epoch, or see LDPOneBitGP, which has "
                    "neither.",
                )
            )
        return tuple(findings)

    def _obstacles(self) -> list[str]:
        """Why the run learns nothing, whatever the rewards: the theorems' settings do at usual T.

        The last width is at least that of one feature, or of a gain of 1 nat.
        """
        rounds = self.responses // self.plays
        reasons = ["all users are asked about one point, in a single epoch"]
        width = self.algorithm.schedule(self.constants).width(rounds, 1)
        least = width / math.sqrt(1.0 + rounds / self.regularisation)
        if least > 2.0 * self.reward_bound:
            reasons.append(
                f"its confidence intervals have half widths of at least {least:.3g} after "
                f"{rounds} rounds, and means differ by {2.0 * self.reward_bound:g} at most"
            )
        return reasons[0 if rounds == 1 else 1 :]

    def _departures(self) -> list[str]:
        """Settings that differ from the theorem's."""
        factor = self.width_multiplier
        return [] if factor == 1.0 else [f"widths are {factor:g} times the theorem's"]

    @property
    def constants(self) -> Constants:
        """What thresholds and widths follow from, with v and c as in Theorem 2 and Corollary 1."""
        B, R, scale = self.reward_bound, self.noise_bound, self.mechanism.scale
        return Constants(
            horizon=self.steps,
            B=B,
            R=R,
            v=B**2 + R**2 + 2.0 * scale**2,
            c=R**2 + 2.0 * scale**2,
            confidence=self.confidence,
            regularisation=self.regularisation,
            width_multiplier=self.width_multiplier,
            laplace_scale=scale,
            accuracy=self.dictionary_accuracy,
        )

    def _settings(self) -> dict[str, float]:
        """What a reader of the result must know of the configuration."""
        return {"width multiplier": self.width_multiplier}

    def play(self, users: Users, rng: np.random.Generator) -> Outcome:
        """The algorithm, on responses that have left their users.

        Args:
            users: whom to ask, over :meth:`channel`.
            rng: source of the dictionaries.
        """
        return self.algorithm.play(users, self.constants, rng)

    def channel(self, ledger: Ledger, rng: np.random.Generator | None = None) -> Channel:
        """CTL(ε), Curator 1: the learner sees what the ledger releases."""
        return lambda user, reward: self.release(ledger, user, one_number(user, reward))
