"""Local joint trust: every user chooses among options that only that user knows.

The parties are those of Dubey 2021, Algorithm 3, over features of a space of one's own; reports may
come in any order, and some never. A user sends noisy statistics, so that neither the options nor
the choice nor the answer is seen; that takes far more noise than an answer to a public question.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any

import numpy as np

from dpaudit import validate
from dpaudit.certificate import Claim
from dpaudit.errors import InputError
from dpaudit.fields import OpenProbability
from dpaudit.ledger import Ledger
from dpaudit.plan import Plan
from dpaudit.project import AuditPair, RunResult
from private_bo.gp.types import Array
from private_bo.joint import Client, Estimate, LocalJointGPUCB, LocalServer, Parameters, Report
from private_bo.own.spaces import Named, Space, named
from private_bo.own.study import Fixed, Study

__all__ = ["LocalJointServer", "LocalJointStudy"]

_FEATURES = 15


@dataclass(frozen=True)
class LocalJointStudy(Study):
    """Users choose among options of their own and send noisy statistics. Fields as in the base.

    One kernel is used, with 15 features at most: the noise grows with their number.

    Attributes:
        delta: δ.
        options: the points (n, d) among which a user may choose, called with the user's record;
            None for all of the space. Private, as the record is.
    """

    delta: OpenProbability = 1e-5
    options: Annotated[Named | None, named] = None

    @cached_property
    def algorithm(self) -> LocalJointGPUCB:
        """The published algorithm, with the least noise that is certified."""
        return LocalJointGPUCB(
            epsilon=self.epsilon, delta=self.delta, steps=self.users, reward_range=self.answers,
            feature_map=replace(self.maps()[0], features=min(self.features, _FEATURES)),
            estimate=Estimate.SHRUNK, width_multiplier=self.exploration,
            noise_variance=max(self.answer_deviation**2, 1e-6),
            prior_variance=self.deviation**2,
        )  # fmt: skip

    @property
    def mechanism(self) -> Any:
        """The noise of a report."""
        return self.algorithm.mechanism

    def plan(self) -> Plan:
        """One report of each user."""
        return self.algorithm.plan()

    def claim(self) -> Claim:
        """(ε, δ) of every user."""
        return Claim(self.epsilon, self.delta, self.source)

    def server(self, rng: np.random.Generator) -> LocalJointServer:  # type: ignore[override]
        """A server without any data; it draws nothing."""
        return LocalJointServer(self.algorithm.server(), self.space)

    def device(self, user: str, ledger: Ledger) -> Client:
        """A user's device: ``answer(parameters, options, play)`` chooses, plays and reports."""
        return self.algorithm.client(user, ledger)

    def play(self, people: Sequence[Any], ledger: Ledger, rng: np.random.Generator) -> Any:
        """Ask one user after the other."""
        server = self.server(rng)
        for number, record in enumerate(people, start=1):
            options = self._options(record)
            device = self.device(f"user {number}", ledger)
            server.tell(device.answer(server.ask(), options, self._answers(record, options)))
        return server

    def _options(self, record: Any) -> Array:
        everything = self.space.candidates
        if self.options is None or isinstance(record, Fixed):
            return everything
        return np.asarray(self.options(record), dtype=np.float64)

    def _answers(self, record: Any, options: Array) -> Callable[[int], float]:
        def play(option: int) -> float:
            answer = validate.private(self.measure(options[option], record))
            if answer.ndim != 0:
                raise InputError(f"answer has shape {answer.shape}; it must be one number.")
            return float(answer)

        return play

    def shown(self, point: Array, trace: Sequence[Any]) -> RunResult:
        """The recommended point; reports are in nobody's summary, being vectors."""
        summary = {"algorithm": type(self).__name__, "recommended": point.tolist()}
        return RunResult(summary | {"reports": len(trace)})

    def audit_pairs(self) -> tuple[AuditPair, ...]:
        """As the published algorithm's."""
        return self.algorithm.audit_pairs()

    def audit_release(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """As the published algorithm's."""
        return self.algorithm.audit_release(data, size, rng)


@dataclass(eq=False)
class LocalJointServer:
    """Sends parameters and adds up reports, in whatever order they come.

    Attributes:
        server: of Algorithm 3, which takes them in order.
        space: where may be chosen.
        trace: the reports.
    """

    server: LocalServer
    space: Space
    trace: list[Report] = field(default_factory=list, init=False)
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
        if report.turn not in self._waiting:
            raise InputError(f"turn is {report.turn!r}; it must be of a question that waits.")
        self.server.receive(replace(report, turn=self.server.rounds))
        self._waiting.discard(report.turn)
        self.trace.append(report)

    def best(self) -> Array:
        """The recommended point: of largest mean, (d,)."""
        chooser = self.server.server
        chooser.observe(self.server.sums())
        return self.space.climb(chooser.mean, chooser.mean(self.space.candidates))
