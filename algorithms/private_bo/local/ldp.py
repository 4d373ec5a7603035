"""Bayesian optimisation under local differential privacy (Zhou & Tan 2021).

Every user adds Laplace noise to the own reward before it leaves, and the learner works with what
arrives. The three algorithms differ in how they bear the noise's tails; their privacy is the same.

>>> from dpaudit.ledger import Ledger
>>> algorithm = LDPMoMAGPUCB(epsilon=1.0, steps=60, plays_per_epoch=6)
>>> rng = np.random.default_rng(0)
>>> problem = algorithm.load("taipei", rng)
>>> with Ledger(algorithm.plan(), rng=rng) as ledger:
...     result = algorithm.run(problem, ledger, rng)
>>> len(ledger), result.summary["responses"], str(algorithm.claim())
(60, 60, 'ε = 1, δ = 0')
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpaudit import validate
from private_bo.local.ata import adaptively_truncated_gp_ucb
from private_bo.local.moma import median_of_means_gp_ucb
from private_bo.local.schedules import (
    LaplaceFeatureTruncation,
    LaplaceTruncation,
    MedianOfMeans,
    epochs_of,
    theorem_plays_per_epoch,
)
from private_bo.local.subject import LocallyPrivate
from private_bo.local.tgp import truncated_gp_ucb
from private_bo.local.users import Outcome, Users

__all__ = ["LDPATAGPUCB", "LDPTGPUCB", "LDPMoMAGPUCB"]


@dataclass(frozen=True)
class LDPATAGPUCB(LocallyPrivate):
    """LDP-ATA-GP-UCB, Algorithm 1: truncates the whole history anew in every round, by feature.

    Fields as in the base class; the parameters are those of Theorem 2.
    """

    paper_place: ClassVar[str] = "Algorithm 1"

    def _play(self, users: Users, rng: np.random.Generator) -> Outcome:
        schedule = LaplaceFeatureTruncation(
            B=self.reward_bound,
            R=self.noise_bound,
            laplace_scale=self.mechanism.scale,
            horizon=self.steps,
            confidence=self.confidence,
            accuracy=self.dictionary_accuracy,
            regularisation=self.regularisation,
            width_multiplier=self.width_multiplier,
        )
        return adaptively_truncated_gp_ucb(
            users, schedule, steps=self.steps, regularisation=self.regularisation, rng=rng
        )


@dataclass(frozen=True)
class LDPTGPUCB(LocallyPrivate):
    """LDP-TGP-UCB, Algorithm 2: truncates each response once, at a threshold of order ln t.

    Fields as in the base class (``dictionary_accuracy`` has no use, the posterior is exact); the
    parameters are those of Theorem 3.
    """

    paper_place: ClassVar[str] = "Algorithm 2"

    def _play(self, users: Users, rng: np.random.Generator) -> Outcome:
        schedule = LaplaceTruncation(
            B=self.reward_bound,
            R=self.noise_bound,
            laplace_scale=self.mechanism.scale,
            confidence=self.confidence,
            regularisation=self.regularisation,
            width_multiplier=self.width_multiplier,
        )
        return truncated_gp_ucb(
            users, schedule, steps=self.steps, regularisation=self.regularisation
        )


@dataclass(frozen=True)
class LDPMoMAGPUCB(LocallyPrivate):
    """LDP-MoMA-GP-UCB, Algorithm 3: asks k users about each point and takes a median of k fits.

    Fields as in the base class, and two more; the parameters are those of Corollary 1. Only
    N = ⌊T/k⌋ whole epochs are played, so that kN users answer.

    Attributes:
        plays_per_epoch: k, or None for the theorem's ⌈24 ln(4eT/δ)⌉, which leaves few epochs at
            usual T (3 at T = 1000).
        moment: α in (0, 1], the order 1 + α of the noise moment that the widths rest on.
    """

    paper_place: ClassVar[str] = "Algorithm 3"

    plays_per_epoch: int | None = None
    moment: float = 1.0

    def __post_init__(self) -> None:
        if self.plays_per_epoch is not None:
            plays = validate.integer_at_least(1, plays_per_epoch=self.plays_per_epoch)
            self._set("plays_per_epoch", plays)
        self._set("moment", validate.fraction(moment=self.moment))
        super().__post_init__()

    @property
    def plays(self) -> int:
        """k, as given or as the theorem has it."""
        if self.plays_per_epoch is not None:
            return self.plays_per_epoch
        return theorem_plays_per_epoch(self.steps, self.confidence)

    @property
    def epochs(self) -> int:
        """N = ⌊T/k⌋."""
        return epochs_of(self.steps, self.plays)

    @property
    def responses(self) -> int:
        """The kN rewards of whole epochs."""
        return self.plays * self.epochs

    @property
    def _plays(self) -> int:
        return self.plays

    def _departures(self) -> list[str]:
        theorem = theorem_plays_per_epoch(self.steps, self.confidence)
        plays = [] if self.plays == theorem else [f"k is {self.plays}, not {theorem}"]
        return plays + super()._departures()

    def _settings(self) -> dict[str, float]:
        return {"plays per epoch": self.plays, "epochs": self.epochs} | super()._settings()

    def _play(self, users: Users, rng: np.random.Generator) -> Outcome:
        schedule = MedianOfMeans(
            B=self.reward_bound,
            c=self.noise_bound**2 + 2.0 * self.mechanism.scale**2,
            moment=self.moment,
            horizon=self.steps,
            confidence=self.confidence,
            accuracy=self.dictionary_accuracy,
            regularisation=self.regularisation,
            width_multiplier=self.width_multiplier,
        )
        return median_of_means_gp_ucb(
            users, schedule, epochs=self.epochs, regularisation=self.regularisation, rng=rng
        )
