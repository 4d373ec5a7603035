"""What all studies of a problem of one's own share: public configuration, users and a run.

Where the objective is a function of one's own, users are asked one after another, and what they
answer is scaled into a public range before any mechanism sees it. A trust model adds how an answer
travels, in a module beside this one.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.base import validate
from dpaudit.base.errors import InputError, PublicError
from dpaudit.base.fields import Count, Interval, NonNegative, Rate
from dpaudit.base.finding_table import FindingTable
from dpaudit.certificate import Finding
from dpaudit.plan import Invocation
from dpaudit.project import AuditPair, Move, RunResult, Subject, read_data
from private_bo.base import Study
from private_bo.gp import Kernel, SquaredExponential
from private_bo.gp.types import Array, Bounded, between
from private_bo.own.server import BoxSpace, LandmarkFeatures, Server, Space
from private_bo.redacted_errors import NamedFunction, as_named

_FINDINGS = FindingTable(__name__)
NUMBERED = "numbered"
"""The data where none are named: user 0, user 1, …"""
_FAR = 1e3
_LARGEST = 1e100
"""Of answers, and of their range one over it at least: squares of these are numbers."""


@dataclass(frozen=True)
class ConstantUser:
    """A user who answers the same wherever asked, for rehearsals.

    Attributes:
        value: the answer.
    """

    value: float


@dataclass(frozen=True)
class InterleavedUser:
    """A user who is asked after others and once more, for rehearsals: that must change nothing.

    Attributes:
        record: the user's own.
        others: whose answers are asked for in between.
        otherwise: the answer where it does change something, as far from the right one as can be.
    """

    record: Any
    others: tuple[Any, ...]
    otherwise: float

    def asked(self, ask: Callable[[Any], Any]) -> Any:
        """The answer, if it is the same whoever was asked before."""
        found = [(ask(each), ask(self.record))[1] for each in (*self.others, self.record)]
        return found[0] if len({*map(repr, found)}) == 1 else self.otherwise


def interleaved_users(
    records: Sequence[Any], span: tuple[float, float], rng: np.random.Generator
) -> Iterator[list[InterleavedUser]]:
    """All users, each asked after two others; by either end of the range if that shows."""
    size = len(records)
    ways = [int(each) for each in rng.permutation(np.arange(1, size))[:2]]
    for end in span if ways else ():
        yield [
            InterleavedUser(each, tuple(records[(place + way) % size] for way in ways), end)
            for place, each in enumerate(records)
        ]


def as_records(**given: Any) -> list[Any]:
    """The records as a list; the sentence shows none of them."""
    ((name, value),) = given.items()
    table = isinstance(value, Mapping) or hasattr(value, "columns")  # whose names would be taken
    if table or isinstance(value, str | bytes) or not isinstance(value, Iterable):
        hint = ", one for each user, such as frame.to_dict('records')" if table else ""
        raise InputError(f"{name} is a {type(value).__name__}; it must be a list of records{hint}.")
    return list(value)


def _space(**given: Any) -> Space:
    ((name, value),) = given.items()
    if not isinstance(value, Space):
        raise InputError(f"{name} is {validate.shown(value)}; it must be a BoxSpace or PointSpace.")
    return value


def _kernels(**given: Any) -> tuple[Kernel, ...]:
    ((name, value),) = given.items()
    found = tuple(value) if isinstance(value, list | tuple) else (value,)
    if not found or not all(isinstance(each, Kernel) for each in found):
        raise InputError(f"{name} is {validate.shown(value)}; it must hold kernels, at least one.")
    return found


@dataclass(frozen=True)
class OwnStudy(Study):
    """Base: public configuration of a search for the point that an unknown objective likes best.

    Attributes:
        space: where may be asked.
        objective: what a user answers, called with a point (d,) and the user's record; None where
            answers come from elsewhere, by ask and tell. It runs with the user, not the server.
        users: how many users there are; each answers once.
        epsilon: of one user.
        answers: (low, high), the public range of an answer; what is outside is clipped.
        kernels: of points in the unit cube, to which the space is scaled; among several, the
            releases choose.
        features: how many at most stand for a kernel.
        deviation: prior deviation of the objective, in units of the range.
        answer_deviation: public guess of an answer's deviation from the objective, likewise.
        exploration: least factor on the deviation of a Thompson draw; it falls from 1 evenly.
        constant: prior share of a common level of the objective.
        default_data: file of the users' records; without one users are numbers.
    """

    space: Annotated[Space, _space] = field(default_factory=BoxSpace)
    objective: Annotated[NamedFunction | None, as_named] = None
    users: Count = 500
    epsilon: Bounded = 1.0
    answers: Interval = (0.0, 1.0)
    kernels: Annotated[tuple[Kernel, ...], _kernels] = (SquaredExponential(0.25),)
    features: Count = 40
    deviation: Bounded = 0.3
    answer_deviation: Annotated[float, between(0.0, 1e6)] = 0.1
    exploration: NonNegative = 0.4
    constant: Rate = 0.3
    default_data: str = NUMBERED  # type: ignore[misc]

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high = self.answers
        if max(-low, high) > _LARGEST or high - low < 1 / _LARGEST:
            raise InputError(
                f"answers is {self.answers}; both must be within ±{_LARGEST:g}, and at least "
                f"{1 / _LARGEST:g} apart."
            )

    @property
    @abstractmethod
    def inner(self) -> Subject:
        """The published algorithm whose mechanism and plan it has."""

    def invocations(self) -> Iterable[Invocation]:
        """Those of the published algorithm."""
        return self.inner.plan().invocations

    def findings(self) -> tuple[Finding, ...]:
        """What becomes of answers outside of the range, where nobody stated one."""
        usual = self.answers == OwnStudy.answers
        return (*super().findings(), *([_FINDINGS("usual-range")] if usual else []))

    def not_covered(self) -> tuple[str, ...]:
        """What the claim leaves out."""
        return (
            f"It is not hidden that a {self.unit} was asked, nor whether and when an answer came.",
            f"A {self.unit} who is also in another study is protected in each of them separately.",
            "It is assumed that an objective depends only on the point and the user's own record.",
        )

    # -- parties ---------------------------------------------------------------------------------

    @property
    def names(self) -> tuple[str, ...]:
        """By what the ledger knows the users, in the order in which they are asked."""
        return tuple(f"user {number + 1}" for number in range(self.users))

    @property
    def group_size(self) -> int:
        """How many users are asked about each point."""
        return 1

    @cached_property
    def maps(self) -> tuple[LandmarkFeatures, ...]:
        """Features of each kernel."""
        return tuple(
            LandmarkFeatures(self.space, kernel, self.features, self.constant)
            for kernel in self.kernels
        )

    def server(self, rng: np.random.Generator) -> Server:
        """A server without any data; ``rng`` draws what has no privacy role."""
        validate.instance(np.random.Generator, rng=rng)
        return Server(
            self.maps, self.answers, self.users, self.group_size, self.deviation,
            self.exploration, rng,
        )  # fmt: skip

    def measure(self, point: Array, record: Any) -> Any:
        """What a user answers, by the objective: private.

        Raises:
            InputError: if there is no objective, or it raises; the sentence tells nothing of data.
        """
        if isinstance(record, ConstantUser):
            return record.value
        if isinstance(record, InterleavedUser):
            return record.asked(lambda each: self.measure(point, each))
        if self.objective is None:
            raise InputError("objective is None; give a function of a point and a user's record.")
        return self.objective(point, record)

    # -- run -------------------------------------------------------------------------------------

    def load(self, source: str, rng: np.random.Generator) -> Sequence[Any]:
        """One record a user: of a data file (CSV, JSON, …), or where none is named a number."""
        return self.check_data(range(self.users) if source == NUMBERED else read_data(source))

    def check_data(self, data: Any) -> Sequence[Any]:
        """The records, if there are as many as users.

        Raises:
            PublicError: if not. All neighbours have as many units, so their number is public.
            InputError: if they are no list.
        """
        found = as_records(data=data)
        if len(found) != self.users:
            raise PublicError(
                f"data has {len(found)} records, but users is {self.users}; set users so, or give "
                "other data."
            )
        return found

    def neighbours(self, data: Any, rng: np.random.Generator) -> Iterator[Move]:
        """One user replaced by another, by one at the top of the range, or by one far beyond it.

        Before, all users as they are, each asked after others: nothing may differ then, which shows
        what an objective keeps of one for the next.
        """
        for asked in interleaved_users(data, self.answers, rng):
            yield Move(asked, "every user asked after others", hops=0)
        low, high = self.answers
        far, last = _FAR * (high - low), len(data) - 1
        one, two, three, four = (int(place) for place in rng.integers(len(data), size=4))
        for place, other, what, extreme in (
            (0, data[self._differing_place(data, 0, one)], "is another of the users", False),
            (last, data[self._differing_place(data, last, two)], "is another of the users", False),
            (two, ConstantUser(high), "answers the top of the range everywhere", False),
            (three, ConstantUser(high + far), "answers far above the range", True),
            (four, ConstantUser(low - far), "answers far below the range", True),
        ):
            moved = [*data[:place], other, *data[place + 1 :]]
            yield Move(moved, f"user {place + 1} {what}", extreme)

    @staticmethod
    def _differing_place(data: Sequence[Any], place: int, begin: int) -> int:
        """The first place from one on whose record differs from that of another."""
        order = (*range(begin, len(data)), *range(begin))
        return next((each for each in order if repr(data[each]) != repr(data[place])), begin)

    def result(self, problem: Any, found: Any) -> RunResult:
        """The recommended point and all releases: what everybody may see."""
        trace = found.trace
        axes = range(self.space.dimensions)
        curves = {f"x{axis + 1}": [float(point[axis]) for point, _ in trace] for axis in axes}
        released = [each.value for _, each in trace]
        return RunResult(self.summary(found.best().tolist()), {"released": released} | curves)

    def summary(self, recommended: Any) -> dict[str, Any]:
        """What ran, and what it recommends."""
        return {"algorithm": type(self).__name__, "recommended": recommended}

    # -- audit -----------------------------------------------------------------------------------

    def audit_pairs(self) -> tuple[AuditPair, ...]:
        """As the published algorithm's."""
        return self.inner.audit_pairs()

    def audit_release(self, data: Any, size: int, rng: np.random.Generator) -> NDArray[Any]:
        """As the published algorithm's."""
        return self.inner.audit_release(data, size, rng)
