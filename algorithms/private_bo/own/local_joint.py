"""Local joint trust: every user chooses among options that only that user knows.

The parties are those of Dubey 2021, Algorithm 3, over features of a space of one's own; reports may
come in any order, and some never. A user sends noisy statistics, so that neither the options nor
the choice nor the answer is seen; that takes far more noise than an answer to a public question.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any

import numpy as np

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.base.fields import OpenProbability
from dpaudit.ledger import Ledger
from dpaudit.project import RunResult
from private_bo.gp.types import Array
from private_bo.joint import Client, Estimate, LocalJointGPUCB, LocalServer, Parameters, Report
from private_bo.own.agent import scale_answer
from private_bo.own.server import Space
from private_bo.own.studies import ConstantUser, InterleavedUser, OwnStudy
from private_bo.redacted_errors import NamedFunction, RedactedFunction, as_named

_FEATURES = 15


@dataclass(frozen=True)
class LocalJointStudy(OwnStudy):
    """Users choose among options of their own and send noisy statistics. Fields as in the base.

    The first kernel is used, with 15 features at most: the noise grows with their number.

    Attributes:
        delta: δ.
        options: the points (n, d) among which a user may choose, called with the user's record;
            None for all of the space. Private, as the record is.
    """

    delta: OpenProbability = 1e-5
    options: Annotated[NamedFunction | None, as_named] = None

    @cached_property
    def inner(self) -> LocalJointGPUCB:
        """The published algorithm for answers in [−½, ½], with the least certified noise."""
        return LocalJointGPUCB(
            epsilon=self.epsilon, delta=self.delta, steps=self.users, reward_range=(-0.5, 0.5),
            feature_map=replace(self.maps[0], features=min(self.features, _FEATURES)),
            estimate=Estimate.SHRUNK, width_multiplier=self.exploration,
            noise_variance=max(self.answer_deviation**2, 1e-6), prior_variance=self.deviation**2,
        )  # fmt: skip

    def server(self, rng: np.random.Generator) -> LocalJointServer:  # type: ignore[override]
        """A server without any data; it draws nothing."""
        return LocalJointServer(self.inner.server(), self.space)

    def device(self, user: str, ledger: Ledger) -> Client:
        """A user's device: ``answer(parameters, options, play)`` chooses, plays and reports.

        ``play(place)`` is the answer about an option, scaled to [−½, ½].
        """
        return self.inner.client(validate.text(user=user), validate.instance(Ledger, ledger=ledger))

    def search(self, problem: Sequence[Any], ledger: Ledger, rng: np.random.Generator) -> Any:
        """Ask one user after the other."""
        server = self.server(rng)
        for number, record in enumerate(problem, start=1):
            options = self.space.candidates
            if self.options is not None and not isinstance(record, ConstantUser):
                own = record.record if isinstance(record, InterleavedUser) else record
                options = validate.private(self.options(own)).astype(np.float64)
            device = self.device(f"user {number}", ledger)
            server.tell(device.answer(server.ask(), options, _Played(self, record, options)))
        return server

    def result(self, problem: Any, found: Any) -> RunResult:
        """The recommended point; reports are long vectors and are not shown."""
        return RunResult(self.summary(found.best().tolist()))


@dataclass(eq=False)
class _Played(RedactedFunction):
    """A user's answer about an option, of whose errors the study's own sentence is told."""

    study: LocalJointStudy
    record: Any
    options: Array

    def __call__(self, place: int) -> float:
        return scale_answer(
            self.study.measure(self.options[place], self.record), self.study.answers
        )


@dataclass(eq=False)
class LocalJointServer:
    """Sends parameters and adds up reports, in whatever order they come.

    Attributes:
        server: of Algorithm 3, which takes them in order.
        space: where may be chosen.
    """

    server: LocalServer
    space: Space
    _waiting: set[int] = field(default_factory=set, init=False, repr=False)
    _asked: int = field(default=0, init=False, repr=False)

    def ask(self) -> Parameters:
        """What the next user's device chooses by; earlier ones may not have reported.

        Raises:
            InputError: if all users have been asked.
        """
        if self._asked >= self.server.steps:
            raise InputError(f"users is {self._asked}, and all have been asked; declare more.")
        self._waiting.add(self._asked)
        self._asked += 1
        return replace(self.server.parameters(), turn=self._asked - 1)

    def tell(self, report: Report) -> None:
        """Count a report.

        Raises:
            InputError: if it answers nothing that waits, or is malformed.
        """
        if validate.instance(Report, report=report).turn not in self._waiting:
            raise InputError(f"turn is {report.turn!r}; it must be of a question that waits.")
        self.server.receive(replace(report, turn=self.server.rounds))
        self._waiting.discard(report.turn)

    def best(self) -> Array:
        """The recommended point: of largest mean, (d,)."""
        chooser = self.server.server
        chooser.observe(self.server.sums())
        return self.space.climb(chooser.mean, chooser.mean(self.space.candidates))
