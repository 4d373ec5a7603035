"""What all studies of a problem of one's own share: public configuration, users and a run."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpaudit import validate
from dpaudit.certificate import Claim
from dpaudit.errors import InputError
from dpaudit.fields import Checked, Count, Interval, NonNegative, Positive, Rate
from dpaudit.ledger import Ledger
from dpaudit.plan import PrivacyUnit
from dpaudit.project import AuditPair, Move, RunResult, Subject, read_data
from private_bo.gp import Kernel, SquaredExponential
from private_bo.gp.types import Array
from private_bo.own.features import LandmarkFeatures
from private_bo.own.server import Question, Server
from private_bo.own.spaces import BoxSpace, Named, Space, named

__all__ = ["NUMBERED", "Fixed", "Study", "clipped", "replaced", "space_of"]

NUMBERED = "numbered"
"""The data where none are named: user 0, user 1, …"""
_FAR = 1e3


@dataclass(frozen=True)
class Fixed:
    """A user who answers the same wherever asked, for rehearsals.

    Attributes:
        value: the answer.
    """

    value: float


def space_of(**given: Any) -> Space:
    """The value as a space.

    Raises:
        InputError: if it is none.
    """
    ((name, value),) = given.items()
    if not isinstance(value, Space):
        raise InputError(f"{name} is {validate.shown(value)}; it must be a BoxSpace or PointSpace.")
    return value


def _kernels(**given: Any) -> tuple[Kernel, ...]:
    ((name, value),) = given.items()
    found = (value,) if isinstance(value, Kernel) else tuple(value)
    if not found or not all(isinstance(each, Kernel) for each in found):
        raise InputError(f"{name} is {validate.shown(value)}; it must hold kernels, at least one.")
    return found


def clipped(answer: Any, span: tuple[float, float]) -> float:
    """A private answer within the public range, scaled to [−½, ½].

    Raises:
        InputError: if it is not one finite number; the sentence does not show it.
    """
    own = validate.private(answer)
    if own.ndim != 0:
        raise InputError(f"answer has shape {own.shape}; it must be one number.")
    low, high = span
    return (min(high, max(low, float(own))) - low) / (high - low) - 0.5


def replaced(
    people: Sequence[Any], span: tuple[float, float], rng: np.random.Generator
) -> Iterator[Move]:
    """One user replaced by another, or by one who answers far beyond the range."""
    low, high = span
    far = _FAR * (high - low)
    last = len(people) - 1
    one, two, three = (int(place) for place in rng.integers(len(people), size=3))
    tries: tuple[tuple[int, Any, str, bool], ...] = (
        (0, Fixed(high), "answers the top of the range everywhere", False),
        (last, Fixed(low), "answers the bottom of the range everywhere", False),
        (one, people[two], "is another of the users", False),
        (two, Fixed(high + far), "answers far above the range", True),
        (three, Fixed(low - far), "answers far below the range", True),
    )
    for place, other, what, extreme in tries:
        moved = [*people]
        moved[place] = other
        yield Move(moved, f"user {place + 1} {what}", extreme)


@dataclass(frozen=True)
class Study(Checked, Subject):
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
        exploration: factor on the deviation of a Thompson draw.

    Raises:
        InputError: if a field is out of its range.
    """

    default_data: ClassVar[str] = NUMBERED
    source: ClassVar[str] = "calibrated for it"

    space: Annotated[Space, space_of] = field(default_factory=BoxSpace)
    objective: Annotated[Named | None, named] = None
    users: Count = 500
    epsilon: Positive = 1.0
    answers: Interval = (0.0, 1.0)
    kernels: Annotated[tuple[Kernel, ...], _kernels] = (SquaredExponential(0.25),)
    features: Count = 40
    deviation: Positive = 0.3
    answer_deviation: NonNegative = 0.1
    exploration: NonNegative = 0.5
    constant: Rate = 0.3

    unit: ClassVar[PrivacyUnit] = PrivacyUnit("user")

    def claim(self) -> Claim:
        """(ε, 0) for every user."""
        return Claim(self.epsilon, 0.0, self.source)

    def not_covered(self) -> tuple[str, ...]:
        """What the claim leaves out."""
        return (
            "That a user was asked, and whether and when an answer came, is not hidden.",
            "What a user is asked follows from earlier releases alone, and is public.",
            "A user who answers in another study too is protected in each of them alone.",
            "That an objective follows from the point and the user's own record is assumed.",
        )

    # -- parties ---------------------------------------------------------------------------------

    @property
    def group_size(self) -> int:
        """How many users are asked about each point."""
        return 1

    def maps(self) -> tuple[LandmarkFeatures, ...]:
        """Features of each kernel."""
        return tuple(
            LandmarkFeatures(self.space, kernel, self.features, self.constant)
            for kernel in self.kernels
        )

    def server(self, rng: np.random.Generator) -> Server:
        """A server without any data; ``rng`` draws what has no privacy role."""
        return Server(
            self.maps(), self.answers, self.users, self.group_size, self.deviation,
            self.exploration, rng,
        )  # fmt: skip

    def measure(self, question: Question | Array, record: Any) -> Any:
        """What a user answers, by the objective: private.

        Raises:
            InputError: if there is no objective.
        """
        if isinstance(record, Fixed):
            return record.value
        if self.objective is None:
            raise InputError("objective is None; give a function of a point and a user's record.")
        point = question.point if isinstance(question, Question) else question
        return self.objective(point, record)

    # -- run -------------------------------------------------------------------------------------

    def load(self, source: str, rng: np.random.Generator) -> Sequence[Any]:
        """One record a user: of a data file (CSV, JSON, …), or where none is named a number.

        Raises:
            InputError: if the file cannot be read or has another number of records.
        """
        return self.people(range(self.users) if source == NUMBERED else read_data(source))

    def people(self, records: Iterable[Any]) -> Sequence[Any]:
        """The records, if there are as many as users.

        Raises:
            InputError: if not.
        """
        if isinstance(records, str | bytes) or not isinstance(records, Iterable):
            raise InputError(f"data is a {type(records).__name__}; it must be a list of records.")
        found = list(records)
        if len(found) != self.users:
            raise InputError(f"data has {len(found)} records; users is {self.users}, so set it so.")
        return found

    def neighbours(self, data: Any, rng: np.random.Generator) -> Iterator[Move]:
        """One user replaced, by users within the range and far beyond."""
        return replaced(data, self.answers, rng)

    @abstractmethod
    def play(
        self, people: Sequence[Any], ledger: Ledger, rng: np.random.Generator
    ) -> Server:
        """Ask every user once; what they answer leaves only through the ledger."""

    def run(self, data: Any, ledger: Ledger, rng: np.random.Generator) -> RunResult:
        """Ask every user once, and recommend a point.

        Args:
            data: a record a user.
            ledger: a ledger of :meth:`plan`.
            rng: of what has no privacy role.

        Raises:
            InputError: if there is another number of records, or an answer is no finite number.
        """
        server = self.play(self.people(data), ledger, rng)
        return self.shown(server.best(), server.trace)

    def shown(self, point: Array, trace: Sequence[tuple[Array, Any]]) -> RunResult:
        """The recommended point and all releases: what everybody may see."""
        curves = {f"x{place + 1}": [float(x[place]) for x, _ in trace] for place in range(len(point))}
        series = {"released": [each.value for _, each in trace]} | curves
        summary = {"algorithm": type(self).__name__, "recommended": point.tolist()}
        return RunResult(summary | {"points asked": len(trace)}, series)

    # -- audit -----------------------------------------------------------------------------------

    @property
    @abstractmethod
    def mechanism(self) -> Any:
        """What an answer, or a sum of them, passes."""

    def audit_pairs(self) -> tuple[AuditPair, ...]:
        """Two users at the ends of the range."""
        return (AuditPair(self.answers[0], self.answers[1], "the ends of the range"),)

    def encoded(self, answer: float) -> float:
        """What the mechanism is given for one answer, scaled to [−½, ½]."""
        return answer

    def audit_release(self, data: Any, size: int, rng: np.random.Generator) -> NDArray[Any]:
        """What is released of one user's answer, ``size`` times; other users contribute nothing.

        Raises:
            InputError: if ``data`` is no number.
        """
        value = self.encoded(clipped(data, self.answers))
        return np.asarray(self.mechanism.release_many(value, size, rng))

