"""Local trust: every user's own device adds the noise, and the server sees noisy answers alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpaudit.base import validate
from dpaudit.ledger import Ledger
from dpaudit.mechanisms import Laplace, RandomizedResponse
from dpaudit.plan import Invocation, Plan, ReplaceOne, TrustModel
from dpaudit.project import AuditPair
from private_bo.own.server import Question, Released, Server
from private_bo.own.studies import AnsweringStudy, clipped

_AT = "answer"


@dataclass(frozen=True)
class LocalStudy(AnsweringStudy):
    """Every user answers once, through the own device; ε-locally private. Fields as in the base.

    An answer leaves as one bit, by randomised response on a coin with the answer's bias (Duchi,
    Jordan & Wainwright 2018), or with Laplace noise where that has the smaller variance: above
    ε of about 2.3. The server knows the point and the law of the noise, and works with both.

    >>> from contextlib import closing
    >>> study = LocalStudy(users=2, epsilon=8.0)
    >>> server, rng = study.server(np.random.default_rng(0)), np.random.default_rng(1)
    >>> with closing(Ledger(study.plan(), rng=rng)) as ledger:
    ...     first, second = server.ask(), server.ask()
    ...     server.tell(study.device("bob", ledger, rng).answer(second, 0.9))  # ann never answers
    >>> len(server.trace), server.best().shape
    (1, (2,))
    """

    @cached_property
    def mechanism(self) -> Laplace | RandomizedResponse:
        """The local randomiser of smaller variance: of a bit, or of an answer in [−½, ½]."""
        bit = RandomizedResponse.calibrated(epsilon=self.epsilon)
        if 0.25 / (1.0 - bit.p) ** 2 < 2.0 / self.epsilon**2 + self.answer_deviation**2:
            return bit
        return Laplace.calibrated(epsilon=self.epsilon, sensitivity=1.0, clip=(-0.5, 0.5))

    def plan(self) -> Plan:
        """Each user's answer, released by the user's own device."""
        return Plan.of(
            Invocation(
                self.mechanism, 1.0, self.unit, ReplaceOne(), TrustModel.LOCAL, total=self.users,
                at=_AT,
            )
        )  # fmt: skip

    def audit_pairs(self) -> tuple[AuditPair, ...]:
        """As in the base class, or two bits."""
        pair = AuditPair(0, 1, "two bits")
        return (pair,) if isinstance(self.mechanism, RandomizedResponse) else super().audit_pairs()

    def device(self, user: str, ledger: Ledger, rng: np.random.Generator) -> Device:
        """A user's device; ``rng`` makes coins of answers, which privacy does not rest on."""
        return Device(self, user, ledger, rng)

    def play(self, people: Sequence[Any], ledger: Ledger, rng: np.random.Generator) -> Server:
        """Ask one user after the other."""
        draws, coins = rng.spawn(2)
        server = self.server(draws)
        for number, record in enumerate(people, start=1):
            question = server.ask()
            device = self.device(f"user {number}", ledger, coins)
            server.tell(device.answer(question, self.measure(question.point, record)))
        return server


@dataclass(frozen=True, eq=False)
class Device:
    """A user's own device: it alone sees the answer before it is private.

    Attributes:
        study: public configuration.
        user: charged in the ledger.
        ledger: the door.
        rng: of coins with an answer's bias.
    """

    study: LocalStudy
    user: str
    ledger: Ledger
    rng: np.random.Generator

    def __post_init__(self) -> None:
        validate.instance(Ledger, ledger=self.ledger)
        validate.instance(np.random.Generator, rng=self.rng)

    def answer(self, question: Question, value: Any) -> Released:
        """Clip the user's answer and release it.

        Raises:
            InputError: if the answer is no finite number, or there is no question; nothing is
                released then.
            PlanMismatchError: if this user has answered before.
        """
        study = self.study
        validate.instance(Question, question=question)
        scaled, mechanism = clipped(value, study.answers), study.mechanism
        low, high = study.answers
        if isinstance(mechanism, RandomizedResponse):
            coin = int(self.rng.random() < scaled + 0.5)
            bit = float(self.ledger.release(mechanism, coin, unit=self.user, at=_AT))
            share = 1.0 - mechanism.p
            unbiased, variance = (bit - 0.5) / share, 0.25 / share**2
        else:
            unbiased = float(self.ledger.release(mechanism, scaled, unit=self.user, at=_AT))
            variance = 2.0 * mechanism.scale**2 + study.answer_deviation**2
        return Released(
            question.group, low + (unbiased + 0.5) * (high - low), variance * (high - low) ** 2
        )
