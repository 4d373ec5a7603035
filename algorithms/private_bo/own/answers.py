"""Users answer public questions: through their own devices, or to a trusted privatiser.

Under *local* trust every user's own device adds the noise, and the server sees noisy answers alone.
Under *joint* trust a trusted privatiser adds up the answers of a group, and the server sees the
sums: users are asked in groups about one point. Whom the server asks follows from releases alone,
so a user moves nothing but the one sum of the own group; groups are disjoint, so their costs do not
add up. One Laplace noise for a whole group takes the place of one for each user, or of a tree over
all.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.base.fields import at_least
from dpaudit.base.finding_table import FindingTable
from dpaudit.certificate import Finding
from dpaudit.ledger import Ledger
from dpaudit.mechanisms import Laplace, RandomizedResponse
from dpaudit.plan import Group, Invocation, TrustModel
from dpaudit.project import AuditPair, Subject
from private_bo.levels import Levels
from private_bo.own.agent import scale_answer
from private_bo.own.server import Question, ReleasedAnswer, Server
from private_bo.own.studies import OwnStudy


@dataclass(frozen=True)
class AnsweringStudy(OwnStudy):
    """Base of studies in which a user sends one answer."""

    @property
    def inner(self) -> Subject:
        """Itself: no published algorithm stands behind it."""
        return self

    @property
    @abstractmethod
    def mechanism(self) -> Any:
        """What an answer scaled to [−½, ½], or a sum of them, passes."""

    @property
    @abstractmethod
    def information(self) -> float:
        """Of all answers about one point: the inverse of the variance of their mean, scaled."""

    def findings(self) -> tuple[Finding, ...]:
        """A note where there is too little to learn from; from public numbers alone."""
        known = 1.0 / math.sqrt(self.information)
        if known < self.deviation:
            return super().findings()
        about = {"users": self.users, "known": f"{known:.3g}", "prior": f"{self.deviation:g}"}
        return (*super().findings(), _FINDINGS("cannot-learn", **about))

    def audit_pairs(self) -> tuple[AuditPair, ...]:
        """The ends of what the mechanism is given for one user."""
        return (AuditPair(-0.5, 0.5, "the ends of the range"),)

    def audit_release(self, data: Any, size: int, rng: np.random.Generator) -> NDArray[Any]:
        """What is released of one user's scaled answer; other users contribute nothing."""
        return np.asarray(self.mechanism.release_many(data, size, rng))


_FINDINGS = FindingTable(__name__)
AT = "answer"
"""Label of the releases of users."""


@dataclass(frozen=True)
class LocalStudy(AnsweringStudy):
    """Every user answers once, through the own device; ε-locally private. Fields as in the base.

    An answer leaves as one of a few levels, by randomised response: as one bit at small ε, and as
    more where that has the smaller variance (:mod:`~private_bo.levels`). The server knows the point
    and the law of the noise, and works with both.

    >>> from contextlib import closing
    >>> study = LocalStudy(users=2, epsilon=8.0)
    >>> server, rng = study.server(np.random.default_rng(0)), np.random.default_rng(1)
    >>> with closing(Ledger(study.plan(), rng=rng)) as ledger:
    ...     first, second = server.ask(), server.ask()
    ...     server.tell(study.device("bob", ledger, rng).answer(second, 0.9))  # ann never answers
    >>> len(server.trace), server.best().shape
    (1, (2,))
    """

    trust: ClassVar[TrustModel] = TrustModel.LOCAL

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.levels

    @cached_property
    def levels(self) -> Levels:
        """How an answer leaves."""
        return Levels.best(self.epsilon)

    @property
    def mechanism(self) -> RandomizedResponse:
        """The local randomiser of a level."""
        return self.levels.law

    @property
    def variance(self) -> float:
        """Of a released answer about the objective, at most, scaled; a bit has all of it."""
        own = self.answer_deviation**2 if self.levels.count > 2 else 0.0
        return self.levels.variance + own

    @property
    def information(self) -> float:
        """Of all answers about one point: the inverse of the variance of their mean, scaled."""
        return self.users / self.variance

    def invocations(self) -> Iterator[Invocation]:
        """Each user's answer, released by the user's own device."""
        yield self.invocation(self.mechanism, 1.0, total=self.users, at=AT)

    def audit_pairs(self) -> tuple[AuditPair, ...]:
        """Two levels."""
        return (AuditPair(0, 1, "two levels"),)

    def read(self, question: Question, level: int) -> ReleasedAnswer:
        """What a released level says of the point of a question."""
        value = self.levels.value(level)
        return ReleasedAnswer.of(question.group, value, self.variance, self.answers)

    def device(self, user: str, ledger: Any, rng: np.random.Generator) -> Device:
        """A user's device; ``rng`` makes coins of answers, which privacy does not rest on."""
        return Device(self, user, ledger, rng)

    def search(self, problem: Iterable[Any], ledger: Any, rng: np.random.Generator) -> Server:
        """Ask one user after the other."""
        draws, coins = rng.spawn(2)
        server = self.server(draws)
        for user, record in zip(self.names, problem, strict=True):
            server.tell(self.ask(server.ask(), self.device(user, ledger, coins), record))
        return server

    def ask(self, question: Any, device: Any, record: Any) -> Any:
        """What the device of a user with that record sends."""
        return device.answer(question, self.measure(question.point, record))


@dataclass(eq=False)
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
        validate.text(user=self.user)
        validate.instance(Ledger, ledger=self.ledger)
        validate.instance(np.random.Generator, rng=self.rng)

    def answer(self, question: Question, value: Any) -> ReleasedAnswer:
        """Clip the user's answer and release it.

        Raises:
            InputError: if the answer is not a finite number, or there is no question; nothing is
                released then.
            PlanMismatchError: if this user has answered before.
        """
        study = self.study
        validate.instance(Question, question=question)
        return study.read(question, self.release(self.level(value, self.rng.random())))

    def level(self, value: Any, coin: float) -> Any:
        """The level of an answer."""
        return self.study.levels.number(scale_answer(value, self.study.answers), coin)

    def release(self, own: Any) -> int:
        """One release at the ledger's door."""
        return int(self.ledger.release(self.study.mechanism, own, unit=self.user, at=AT))


_MOST_GROUPS = 10_000
_LARGE = 3
"""Times the usual group: of 500 users at ε = 1, 34 % regret with groups of 8 are 43 with 25."""


@dataclass(frozen=True)
class JointStudy(AnsweringStudy):
    """Each group's noisy sum is all that leaves the privatiser; ε-private for every user.

    Attributes:
        group: how many users are asked about a point; None for 8/ε, at most a tenth of all.
    """

    trust: ClassVar[TrustModel] = TrustModel.JOINT

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
        return self.usual_group

    @property
    def usual_group(self) -> int:
        """8/ε, at most a tenth of all users: of more the noise of a sum matters little."""
        return max(1, min(math.ceil(8.0 / self.epsilon), self.users // 10))

    @property
    def information(self) -> float:
        """Of all answers about one point: the inverse of the variance of their mean, scaled."""
        sizes = (len(self.members(group)) for group in (0, self.groups - 1))
        whole, last = (1.0 / self._variance(size) for size in sizes)
        return (self.groups - 1) * whole + last

    def findings(self) -> tuple[Finding, ...]:
        """Those of the base class, and a group that is larger than noise asks for."""
        found = super().findings()
        if self.group_size > _LARGE * self.usual_group:
            about = {"group": self.group_size, "points": self.groups, "usual": self.usual_group}
            found += (_FINDINGS("large-group", **about),)
        return found

    @property
    def groups(self) -> int:
        """How many points are asked about."""
        return -(-self.users // self.group_size)

    @cached_property
    def mechanism(self) -> Laplace:
        """The noise of a group's sum of answers scaled to [−½, ½]."""
        return Laplace.calibrated(epsilon=self.epsilon, sensitivity=1.0)

    def invocations(self) -> Iterator[Invocation]:
        """One release for each of the disjoint groups."""
        for place in map(place_of, range(self.groups)):
            yield self.invocation(self.mechanism, 1.0, group=Group(place), at=place)

    def members(self, group: int) -> tuple[str, ...]:
        """Names of the users who are asked about the point of a group."""
        first = group * self.group_size
        return self.names[first : first + self.group_size]

    def released(self, group: int, noisy: float) -> ReleasedAnswer:
        """What a group's noisy sum says of its point."""
        size = len(self.members(group))
        return ReleasedAnswer.of(group, noisy / size, self._variance(size), self.answers)

    def _variance(self, size: int) -> float:
        """Of the noisy mean of so many users about the objective, scaled."""
        return 2.0 * self.mechanism.scale**2 / size**2 + self.answer_deviation**2 / size

    def privatiser(self, ledger: Ledger) -> Privatiser:
        """The only party that sees answers."""
        return Privatiser(self, ledger)

    def search(self, problem: Sequence[Any], ledger: Ledger, rng: np.random.Generator) -> Server:
        """Ask group after group."""
        server, privatiser = self.server(rng), self.privatiser(ledger)
        for number, record in enumerate(problem, start=1):
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
        ledger: the door; a new one, or one whose releases privatisers of this process made.

    Raises:
        InputError: if nobody knows who answered for the ledger's releases.
    """

    study: JointStudy
    ledger: Ledger

    def __post_init__(self) -> None:
        validate.instance(Ledger, ledger=self.ledger)
        self._answers: dict[int, dict[int, float]] = {}
        if len(self.ledger) and self.ledger not in _ANSWERED:
            # As of a resumed run: whoever answered there would be charged once for two groups.
            raise InputError(
                f"ledger has {len(self.ledger)} releases of other privatisers, which alone know "
                "who answered; begin a new ledger, and ask users who have not answered."
            )
        self._users = _ANSWERED.setdefault(self.ledger, set())
        self._closed: set[int] = set()

    def collect(self, question: Question, user: str, value: Any) -> ReleasedAnswer | None:
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
        answers[question.number] = scale_answer(value, self.study.answers)
        self._users.add(user)
        return self.close(group) if len(answers) == len(self.study.members(group)) else None

    def close(self, group: int) -> ReleasedAnswer:
        """Release a group's sum though not all of it have answered; later answers are refused.

        Raises:
            InputError: if there is no such group, or it has been released.
        """
        number, study = self._open(group), self.study
        total = math.fsum(self._answers.pop(number, {}).values())
        self._closed.add(number)
        noisy = float(self.ledger.release(study.mechanism, total, at=place_of(number)))
        return study.released(number, noisy)

    def _open(self, group: int) -> int:
        group = validate.integer_at_least(0, self.study.groups - 1, group=group)
        if group in self._closed:
            raise InputError(
                f"group is {group}, which has been released; it takes no more answers."
            )
        return group


def place_of(group: int) -> str:
    """Label of a group's release."""
    return f"group {group}"
