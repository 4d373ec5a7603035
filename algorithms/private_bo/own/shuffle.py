"""Users answer public questions in batches, through a trusted shuffler.

What leaves is how many bits of a batch are a one at each of its points. All of a batch hide each
other, and whose bit is about which point nobody is told (:mod:`~private_bo.shuffles`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.base.fields import Count, OpenProbability, at_least
from dpaudit.certificate import Finding
from dpaudit.ledger import Ledger
from dpaudit.mechanisms import Shuffled
from dpaudit.project import AuditPair
from private_bo.own.agent import scale_answer
from private_bo.own.answers import AnsweringStudy
from private_bo.own.server import ReleasedAnswer, Server
from private_bo.shuffles import ShuffledBatches, means_of, place_of


@dataclass(frozen=True)
class ShuffleStudy(ShuffledBatches, AnsweringStudy):
    """Users answer in batches, each with one bit about one of the batch's points.

    Attributes:
        delta: δ of one user.
        batch: how many users there are in the first batch, and in later ones at least; None for a
            number that follows from users, ε and δ. A batch of 1 is what local trust does.
        points: how many points a batch is asked about, at most.
    """

    delta: OpenProbability = 1e-5
    batch: Count | None = None
    points: Annotated[int, at_least(1)] = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_batches()

    @property
    def people(self) -> int:
        """The users."""
        return self.users

    @property
    def mechanism(self) -> Shuffled:
        """What the first batch releases."""
        return self.batches[0]

    def findings(self) -> tuple[Finding, ...]:
        """Those of the base class, whom the users trust, and batches that are few."""
        return (*super().findings(), *self.batch_findings())

    @property
    def information(self) -> float:
        """Of all answers about one point: the inverse of the variance of their mean, scaled."""
        return 4.0 * self.bit_information

    @cached_property
    def first_groups(self) -> list[int]:
        """The number of the first point of each batch."""
        return [0, *accumulate(bits.questions or 1 for bits in self.batches)]

    def server(self, rng: np.random.Generator) -> BatchServer:
        """A server without any data; ``rng`` draws what has no privacy role."""
        validate.instance(np.random.Generator, rng=rng)
        points = np.concatenate(
            [
                bits.asked + first
                for bits, first in zip(self.batches, self.first_groups, strict=False)
            ]
        )
        return BatchServer(
            self.maps, self.answers, self.users, 1, self.deviation, self.exploration, rng,
            tuple(points.tolist()),
        )  # fmt: skip

    def shuffler(self, ledger: Ledger, rng: np.random.Generator) -> Shuffler:
        """The only party that sees answers; ``rng`` makes coins of them."""
        return Shuffler(self, ledger, rng)

    def search(self, problem: Sequence[Any], ledger: Ledger, rng: np.random.Generator) -> Server:
        """Ask batch after batch."""
        draws, coins = rng.spawn(2)
        server, shuffler = self.server(draws), self.shuffler(ledger, coins)
        people = zip(self.names, problem, strict=True)
        for bits in self.batches:
            questions = [server.ask() for _ in range(bits.reports)]
            points = {question.group: question.point for question in questions}.values()
            for _, (user, record) in zip(questions, people, strict=False):
                shuffler.collect(user, [self.measure(point, record) for point in points])
            for released in shuffler.release():
                server.tell(released)
        return server

    # -- audit -----------------------------------------------------------------------------------

    def audit_pairs(self) -> tuple[AuditPair, ...]:
        """Two bits of one user."""
        return (AuditPair(0, 1, "two bits"),)

    def audit_release(self, data: Any, size: int, rng: np.random.Generator) -> NDArray[Any]:
        """How many reports of the first batch are a one, where all others have a zero."""
        return self.ones(np.full(size, self.mechanism.local.prepare(data)), rng)


@dataclass(eq=False)
class BatchServer(Server):
    """A server whose batches are asked about several points.

    Attributes:
        points: the number of the point of each question.
    """

    points: tuple[int, ...] = ()

    def begins(self) -> bool:
        """Whether the next question is about another point than the one before."""
        return self.points[self._asked] == len(self._points)


@dataclass(eq=False)
class Shuffler:
    """Draws in secret who of a batch is asked about which of its points, and releases counts.

    In one process the ledger does so, of users who all answer about all points.

    Attributes:
        study: public configuration.
        ledger: the door.
        rng: of coins with an answer's bias.
    """

    study: ShuffleStudy
    ledger: Ledger
    rng: np.random.Generator

    def __post_init__(self) -> None:
        validate.instance(Ledger, ledger=self.ledger)
        validate.instance(np.random.Generator, rng=self.rng)
        self._users: set[str] = set()
        self._bits: list[list[int]] = []
        self._batch = 0

    def collect(self, user: str, answers: Sequence[Any]) -> None:
        """Take a user's answers about all points of the batch, in their order.

        Raises:
            InputError: if the user has answered, the batch is complete, there are more answers or
                less than points, or one is no finite number. Nothing is counted then.
        """
        validate.text(user=user)
        bits, low_high = self._law(), self.study.answers
        if user in self._users or len(self._bits) == bits.reports:
            raise InputError(
                f"{user!r:.60} has answered, or the batch is complete; each of {bits.reports} "
                "users answers once."
            )
        if len(answers) != (bits.questions or 1):
            raise InputError(
                f"answers has {len(answers)} entries; it must have one for each of the "
                f"{bits.questions or 1} points of the batch."
            )
        shares = [scale_answer(answer, low_high) + 0.5 for answer in answers]
        self._bits.append([int(self.rng.random() < share) for share in shares])
        self._users.add(user)

    def release(self) -> list[ReleasedAnswer]:
        """The counts of the batch; who has not answered counts as one at the middle of the range.

        Raises:
            InputError: if all batches have been released.
        """
        bits, (low, high) = self._law(), self.study.answers
        missing = bits.reports - len(self._bits), bits.questions or 1
        value = [*self._bits, *self.rng.integers(2, size=missing).tolist()]
        number, self._batch, self._bits = self._batch, self._batch + 1, []
        reports = self.ledger.release(bits, value, at=place_of(number))
        wide = (high - low) / 2
        return [
            ReleasedAnswer(group, low + (mean + 1) * wide, variance * wide**2)
            for group, (mean, variance) in enumerate(
                means_of(bits, np.asarray(reports)), start=self.study.first_groups[number]
            )
        ]

    def _law(self) -> Shuffled:
        if self._batch == len(self.study.batches):
            raise InputError("batch is complete, and so are all others; declare more users.")
        return self.study.batches[self._batch]
