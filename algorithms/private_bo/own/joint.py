"""Joint trust: a trusted privatiser adds up the answers of a group, and the server sees the sums.

Users are asked in groups about one point. Whom the server asks follows from releases alone, so a
user moves nothing but the one sum of the own group; groups are disjoint, so their costs do not add
up. One Laplace noise for a whole group takes the place of one for each user, or of a tree over all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any
from weakref import WeakKeyDictionary

import numpy as np

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.base.fields import at_least
from dpaudit.ledger import Ledger
from dpaudit.mechanisms import Laplace
from dpaudit.plan import Group, Invocation, Plan, ReplaceOne, TrustModel
from private_bo.own.server import Question, Released, Server
from private_bo.own.studies import AnsweringStudy, clipped

_MOST_GROUPS = 10_000


@dataclass(frozen=True)
class JointStudy(AnsweringStudy):
    """Each group's noisy sum is all that leaves the privatiser; ε-private for every user.

    Attributes:
        group: how many users are asked about a point; None for 8/ε, at most a tenth of all.
    """

    group: Annotated[int, at_least(1)] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.groups > _MOST_GROUPS:
            raise InputError(
                f"group is {self.group_size}, which makes {self.groups} groups; at most "
                f"{_MOST_GROUPS} are possible, so make it larger."
            )

    @property
    def group_size(self) -> int:
        """How many users are asked about each point."""
        if self.group is not None:
            return min(self.group, self.users)
        return max(1, min(math.ceil(8.0 / self.epsilon), self.users // 10))

    @property
    def groups(self) -> int:
        """How many points are asked about."""
        return -(-self.users // self.group_size)

    @cached_property
    def mechanism(self) -> Laplace:
        """The noise of a group's sum of answers scaled to [−½, ½]."""
        return Laplace.calibrated(epsilon=self.epsilon, sensitivity=1.0)

    def plan(self) -> Plan:
        """One release for each of the disjoint groups."""
        return Plan.of(
            *(
                Invocation(
                    self.mechanism, 1.0, self.unit, ReplaceOne(), TrustModel.JOINT,
                    group=Group(place_of(group)), at=place_of(group),
                )
                for group in range(self.groups)
            )
        )  # fmt: skip

    def privatiser(self, ledger: Ledger) -> Privatiser:
        """The only party that sees answers."""
        return Privatiser(self, ledger)

    def play(self, people: Sequence[Any], ledger: Ledger, rng: np.random.Generator) -> Server:
        """Ask group after group."""
        server, privatiser = self.server(rng), self.privatiser(ledger)
        for number, record in enumerate(people, start=1):
            question = server.ask()
            answer = self.measure(question.point, record)
            if released := privatiser.collect(question, f"user {number}", answer):
                server.tell(released)
        return server


_ANSWERED: WeakKeyDictionary[Ledger, set[str]] = WeakKeyDictionary()
"""Who has answered, of all privatisers of a ledger: nobody is in two groups."""


@dataclass(eq=False)
class Privatiser:
    """Adds up what a group answers, and releases one noisy sum of it.

    A user who never answers counts as one at the middle of the range, so that the release does not
    tell who answered.

    Attributes:
        study: public configuration.
        ledger: the door.
    """

    study: JointStudy
    ledger: Ledger

    def __post_init__(self) -> None:
        validate.instance(Ledger, ledger=self.ledger)
        self._answers: dict[int, dict[int, float]] = {}
        self._users = _ANSWERED.setdefault(self.ledger, set())
        self._closed: set[int] = set()

    def collect(self, question: Question, user: str, value: Any) -> Released | None:
        """Take a user's answer; the last one of a group makes its release.

        Raises:
            InputError: if the user has answered, the question has been answered, its group is
                released, or the answer is no finite number. Nothing is counted or released then.
        """
        validate.text(user=user)
        group = self._open(validate.instance(Question, question=question).group)
        if question.number >= self.study.users or question.number // self.study.group_size != group:
            raise InputError(
                f"number is {question.number}, which is not of group {group}; give the question "
                "as it was asked."
            )
        answers = self._answers.setdefault(group, {})
        if question.number in answers or user in self._users:
            raise InputError(
                f"question {question.number} or {user!r:.60} has been answered; each answers once."
            )
        answers[question.number] = clipped(value, self.study.answers)
        self._users.add(user)
        return self.close(group) if len(answers) == self._size(group) else None

    def close(self, group: int) -> Released:
        """Release a group's sum though not all of it have answered; later answers are refused.

        Raises:
            InputError: if there is no such group, or it has been released.
        """
        number, size = self._open(group), self._size(group)
        study, (low, high) = self.study, self.study.answers
        total = math.fsum(self._answers.pop(number, {}).values())
        self._closed.add(number)
        noisy = float(self.ledger.release(study.mechanism, total, at=place_of(number)))
        spread = 2.0 * study.mechanism.scale**2 / size**2 + study.answer_deviation**2 / size
        value = low + (noisy / size + 0.5) * (high - low)
        return Released(number, value, spread * (high - low) ** 2)

    def _open(self, group: int) -> int:
        group = validate.integer_at_least(0, self.study.groups - 1, group=group)
        if group in self._closed:
            raise InputError(f"group is {group}, which has been released; answers are too late.")
        return group

    def _size(self, group: int) -> int:
        return min(self.study.group_size, self.study.users - group * self.study.group_size)


def place_of(group: int) -> str:
    """Label of a group's release."""
    return f"group {group}"
