"""People who all answer the same, and short runs of the locally private algorithms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpaudit.ledger import Ledger
from dpaudit.project import Subject
from private_bo.gp import FiniteDomain, Matern
from private_bo.local import LDPATAGPUCB, LDPTGPUCB, LDPMoMAGPUCB
from private_bo.problems import BanditProblem, Response, RewardSource

ALGORITHMS = (LDPATAGPUCB, LDPTGPUCB, LDPMoMAGPUCB)
SHORT = {LDPMoMAGPUCB: {"plays_per_epoch": 3}}
DOMAIN = FiniteDomain.grid(4)
F = np.array([0.1, 0.9, -0.5, 0.3])


@dataclass(eq=False)
class Crowd(RewardSource):
    """People who all answer ``value``, or the mean where it is None."""

    value: object = None
    name: str | None = None
    asked: int = 0

    def respond(self, index: int, rng: np.random.Generator) -> Response:
        self.asked += 1
        value = float(F[index]) if self.value is None else self.value
        return Response(self.name or f"user {self.asked}", value)  # type: ignore[arg-type]


def problem(**crowd: object) -> BanditProblem:
    source = Crowd(**crowd)  # type: ignore[arg-type]
    return BanditProblem(
        "crowd", DOMAIN, Matern(0.3, 2.5), F, 1.0, 1.0, 2.0, 1.0, True, rewards=source
    )


def make(kind: type, **settings: object) -> Subject:
    return kind(**{"steps": 12, **SHORT.get(kind, {}), **settings})


def ledger_of(subject: Subject, seed: int = 0) -> Ledger:
    return Ledger(subject.plan(), rng=np.random.default_rng(seed))


def run(subject: Subject, data: BanditProblem, seed: int = 0) -> list[float]:
    with ledger_of(subject, seed) as ledger:
        result = subject.run(data, ledger, np.random.default_rng(seed))
    return list(result.for_owner.series["cumulative regret"])
