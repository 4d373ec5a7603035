"""Bayesian optimisation under local differential privacy (Zhou & Tan 2021).

Every user adds Laplace noise to the own reward before it leaves, and the learner works with what
arrives. The three algorithms differ in how they bear the noise's tails; their privacy is the same.

>>> import numpy as np
>>> from dpaudit.ledger import Ledger
>>> subject = LDPMoMAGPUCB(epsilon=1.0, steps=60, plays_per_epoch=6)
>>> rng = np.random.default_rng(0)
>>> problem = subject.load("taipei", rng)
>>> with Ledger(subject.plan(), rng=rng) as ledger:
...     result = subject.run(problem, ledger, rng)
>>> len(ledger), result.summary["responses"], str(subject.claim())
(60, 60, 'ε = 1, δ = 0')
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from dpaudit.base.fields import Count
from private_bo.local.algorithm import Algorithm, Epochs
from private_bo.local.ata import adaptively_truncated_gp_ucb
from private_bo.local.moma import median_of_means_gp_ucb
from private_bo.local.schedules import (
    Constants,
    LaplaceFeatureTruncation,
    LaplaceTruncation,
    MedianOfMeans,
    MomentOrder,
    theorem_plays_per_epoch,
)
from private_bo.local.subject import LocallyPrivate
from private_bo.local.tgp import truncated_gp_ucb


@dataclass(frozen=True)
class LDPATAGPUCB(LocallyPrivate):
    """LDP-ATA-GP-UCB, Algorithm 1: truncates the whole history anew in every round, by feature.

    Fields as in the base class; the parameters are those of Theorem 2.
    """

    source: ClassVar[str] = "Zhou & Tan 2021, Lemma 1 and Algorithm 1"
    algorithm: ClassVar[Algorithm[Any]] = Algorithm(
        adaptively_truncated_gp_ucb, LaplaceFeatureTruncation
    )


@dataclass(frozen=True)
class LDPTGPUCB(LocallyPrivate):
    """LDP-TGP-UCB, Algorithm 2: truncates each response once, at a threshold of order ln t.

    Fields as in the base class (``dictionary_accuracy`` has no use, the posterior is exact); the
    parameters are those of Theorem 3.
    """

    source: ClassVar[str] = "Zhou & Tan 2021, Lemma 1 and Algorithm 2"
    algorithm: ClassVar[Algorithm[Any]] = Algorithm(truncated_gp_ucb, LaplaceTruncation)


@dataclass(frozen=True)
class LDPMoMAGPUCB(Epochs, LocallyPrivate):
    """LDP-MoMA-GP-UCB, Algorithm 3: asks k users about each point and takes a median of k fits.

    Fields as in the base class, and two more; the parameters are those of Corollary 1. Only
    N = ⌊T/k⌋ whole epochs are played, so that kN users answer.

    Attributes:
        plays_per_epoch: k, or None for the theorem's ⌈24 ln(4eT/δ)⌉, which leaves few epochs at
            usual T (3 at T = 1000).
        moment: α in (0, 1], the order 1 + α of the noise moment that the widths rest on.
    """

    source: ClassVar[str] = "Zhou & Tan 2021, Lemma 1 and Algorithm 3"
    algorithm: ClassVar[Algorithm[Any]] = Algorithm(median_of_means_gp_ucb, MedianOfMeans)

    plays_per_epoch: Count | None = None
    moment: MomentOrder = 1.0

    @property
    def responses(self) -> int:
        """The kN rewards of whole epochs."""
        return self.plays * self.epochs

    @property
    def constants(self) -> Constants:
        """Those of the base class, with the order of the moment."""
        return replace(super().constants, moment=self.moment)

    def _departures(self) -> list[str]:
        theorem = theorem_plays_per_epoch(self.steps, self.confidence)
        plays = [] if self.plays == theorem else [f"k is {self.plays}, not {theorem}"]
        return plays + super()._departures()

    def _settings(self) -> dict[str, float]:
        return {"plays per epoch": self.plays, "epochs": self.epochs} | super()._settings()
