"""Outsourced trust: a curator owns private rows, and a modeller looks for the best of them.

The curator is :class:`~private_bo.outsourced.CertifiedCurator`: rows are scaled by a public box,
published once with noise, and then each output that the modeller asks for leaves with noise too.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.base.fields import Count, OpenProbability, Positive, Probability, at_least
from dpaudit.certificate import Finding
from dpaudit.ledger import Ledger
from dpaudit.plan import PrivacyUnit
from dpaudit.project import Move, RunResult, read_data
from private_bo.gp.types import Array, point_set, points_of
from private_bo.outsourced import CertifiedCurator, Release
from private_bo.outsourced.modeller import AnswerDesk, Belief, Hyperparameters, InputModel
from private_bo.own.agent import scale_answer
from private_bo.own.server import BoxSpace, ReleasedAnswer
from private_bo.own.studies import (
    NUMBERED,
    InterleavedUser,
    OwnStudy,
    interleaved_users,
)

_INITIAL = 10
_WIDTH = 1.0


@dataclass(frozen=True)
class OutsourcedStudy(OwnStudy):
    """The curator publishes noisy rows; the modeller asks for noisy outputs, by row number.

    Neighbours differ in one row, which moves by at most ``protected`` half-diagonals of the box and
    may change its output in any way. Fields as in the base class, where the space is the public box
    of the rows, and ``users`` their number; the data are the rows, (n, d), and the objective is
    called with a row and its number. Rows outside the box are moved to it.

    Attributes:
        delta: δ of the rows.
        queries: how many outputs may be asked for, each of another row.
        protected: how far a row may move, as a share of half the box's diagonal; 2 is anywhere.
        output_share: share of ε that an output costs; the rest is for the rows.
    """

    unit: ClassVar[PrivacyUnit] = PrivacyUnit("row")

    users: Annotated[int, at_least(3)] = 500
    delta: Probability = 1e-5
    queries: Count = 50
    protected: Positive = 0.1
    output_share: OpenProbability = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.space, BoxSpace):
            raise InputError("space is not a BoxSpace; it must be the public box of the rows.")
        if self.queries > self.users:
            raise InputError(
                f"queries is {self.queries}; it must be at most the number of rows, {self.users}."
            )

    @cached_property
    def inner(self) -> CertifiedCurator:
        """The certified curator of rows in the ball of radius 1/protected."""
        outputs = self.epsilon * self.output_share
        return CertifiedCurator(
            epsilon=self.epsilon - outputs, delta=self.delta, dimension=self.space.dimensions,
            columns=self.space.dimensions, norm_bound=1.0 / self.protected, queries=self.queries,
            output_epsilon=outputs, output_bound=0.5,
        )  # fmt: skip

    def findings(self) -> tuple[Finding, ...]:
        """Settings of which nothing can be learnt."""
        return (*super().findings(), *self.inner.obstacles())

    # -- parties ---------------------------------------------------------------------------------

    def publish(self, rows: Any, ledger: Ledger) -> Release:
        """The curator's release of all rows, scaled to the ball; the modeller sees it alone.

        Raises:
            InputError: if the rows are no (users, d) of finite numbers.
        """
        validate.instance(Ledger, ledger=ledger)
        return self.inner.publish(self._scaled(self.check_data(rows)), ledger)

    def desk(self, rows: Any, ledger: Ledger) -> AnswerDesk:
        """The curator's counter: ``ask(row)`` measures a row once and releases its output."""
        records = self.check_data(rows)
        validate.instance(Ledger, ledger=ledger)

        def ask(row: int) -> Any:
            return self.measure(_place(records[row]), row)

        def measure(row: int) -> float:
            own = records[row].answer if isinstance(records[row], _Row) else ask(row)
            return scale_answer(
                own.asked(ask) if isinstance(own, InterleavedUser) else own, self.answers
            )

        return self.inner.desk(len(records), measure, ledger)

    def modeller(self, release: Release, rng: np.random.Generator) -> OutsourcedModeller:
        """The modeller, who holds what was released and nothing else."""
        validate.instance(Release, release=release)
        validate.instance(np.random.Generator, rng=rng)
        outputs = self.inner.output_mechanism
        assert outputs is not None
        noise = 2.0 * outputs.scale**2 + self.answer_deviation**2
        return OutsourcedModeller(release, self.queries, noise, self.answers, rng)

    def _scaled(self, rows: Any) -> Array:
        held = validate.private([_place(row) for row in rows])
        places = points_of(self.space.dimensions, rows=held)
        middle, half = self.space.bounds.mean(axis=1), np.diff(self.space.bounds)[:, 0] / 2
        radius = self.protected * np.sqrt(self.space.dimensions)
        # A norm of exactly the bound may exceed it by rounding.
        return np.asarray((self.space.project(places) - middle) / half / radius * (1 - 1e-12))

    # -- run -------------------------------------------------------------------------------------

    def load(self, source: str, rng: np.random.Generator) -> Sequence[Any]:
        """The rows: of a file, its columns in order; without one, random points of the box."""
        if source == NUMBERED:
            low, high = self.space.bounds.T
            return self.check_data(low + rng.random((self.users, len(low))) * (high - low))
        rows = [list(r.values()) if isinstance(r, dict) else r for r in read_data(source)]
        wide = self.space.dimensions
        for number, row in enumerate(rows, start=1):
            with suppress(InputError):
                if validate.private(row).shape == (wide,):
                    continue
            raise InputError(f"row {number} of {source} must hold {wide} finite numbers.")
        return self.check_data(point_set(rows=validate.private(rows)))

    def search(self, problem: Sequence[Any], ledger: Ledger, rng: np.random.Generator) -> Any:
        """Publish, ask, and be told."""
        modeller = self.modeller(self.publish(problem, ledger), rng)
        desk = self.desk(problem, ledger)
        for _ in range(self.queries):
            row = modeller.ask()
            modeller.tell(row, desk.ask(row))
        return modeller

    def result(self, problem: Any, found: Any) -> RunResult:
        """The number of the recommended row, and all rows with what was released of them."""
        rows = [float(each.group) for each in found.trace]
        released = [each.value for each in found.trace]
        return RunResult(self.summary(found.best()), {"row": rows, "released": released})

    def neighbours(self, data: Any, rng: np.random.Generator) -> Iterator[Move]:
        """One row moved as far as is protected, with another output."""
        for asked in interleaved_users(range(len(data)), self.answers, rng):
            rows = [_Row(*each) for each in zip(data, asked, strict=True)]
            yield Move(rows, "every row asked after others", hops=0)
        half = np.diff(self.space.bounds)[:, 0] / 2
        step = self.protected * np.sqrt(self.space.dimensions) * half * (1 - 1e-9)
        low, high = self.answers
        for value, extreme in ((low, False), (high, False), (high + 1e3 * (high - low), True)):
            place, way = int(rng.integers(len(data))), rng.standard_normal(len(half))
            moved = [*data]
            at = np.asarray(data[place]) + step * way / np.linalg.norm(way)
            moved[place] = _Row(self.space.project(at), value)
            yield Move(moved, f"row {place} moved, with another output", extreme)


@dataclass(frozen=True, eq=False)
class _Row:
    """A neighbour's row, with what it answers, or after whom it is asked."""

    place: Array
    answer: float | InterleavedUser


def _place(record: Any) -> Any:
    return record.place if isinstance(record, _Row) else record


@dataclass(eq=False)
class OutsourcedModeller:
    """GP-UCB on released rows, by ask and tell: several rows may wait, and some may never be told.

    The kernel's parameters are the likeliest for what was released; the rows are read under the
    declared noise, as by :class:`~private_bo.outsourced.Modeller`.

    Attributes:
        release: what the curator published.
        queries: how many rows may be asked for.
        noise: variance of a told output, scaled to [−½, ½].
        answers: (low, high) of an output.
        rng: of the initial rows.
        told: numbers of the rows that were told, in order.
        trace: what was released of them.
    """

    release: Release
    queries: int
    noise: float
    answers: tuple[float, float]
    rng: np.random.Generator
    told: list[int] = field(default_factory=list, init=False)
    trace: list[ReleasedAnswer] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        inputs = InputModel.EXPECTED.read(self.release)
        guess = Hyperparameters(inputs.diameter / 5 or 1.0, 0.0, 0.09, self.noise)
        self._known = Belief(inputs, guess)
        self._asked: list[int] = []
        self._fit_at = _INITIAL

    def ask(self) -> int:
        """The next row; each is asked for once.

        Raises:
            InputError: if all queries have been made.
        """
        if len(self._asked) >= self.queries:
            raise InputError(f"queries is {self.queries}, and all were made; declare more.")
        if len(self._asked) < _INITIAL:
            left = np.setdiff1d(np.arange(self.release.size), self._asked)
            row = int(self.rng.choice(left))
        else:
            scores = self._belief().scores(_WIDTH)
            scores[self._asked] = -np.inf
            row = int(scores.argmax())
        self._asked.append(row)
        return row

    def tell(self, row: int, value: float) -> None:
        """Learn what the curator released of a row, scaled to [−½, ½].

        Raises:
            InputError: if the row was not asked for, or was told, or the value is not finite.
        """
        if row not in self._asked or row in self.told:
            raise InputError(
                f"row is {row!r}; it must be one that was asked for and has no output yet."
            )
        value = validate.finite(value=value)
        found = ReleasedAnswer.of(row, value, self.noise, self.answers)
        self.told.append(row)
        self._known.learn(row, value)
        self.trace.append(found)

    def best(self) -> int:
        """The recommended row: of largest posterior mean among those that were told.

        Raises:
            InputError: if nothing was told.
        """
        if not self.told:
            raise InputError("told is empty; tell at least one output.")
        return self.told[int(self._belief().posterior.mean[self.told].argmax())]

    def _belief(self) -> Belief:
        """Of every row; what waits counts as what is expected."""
        if len(self.told) >= max(2, self._fit_at):
            self._fit_at = 2 * len(self.told)
            self._known = self._known.refitted()
        belief = copy.deepcopy(self._known)
        for row in set(self._asked) - set(self.told):
            belief.posterior.update(row, float(belief.posterior.mean[row]))
        return belief
