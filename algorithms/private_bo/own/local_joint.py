"""Local joint trust: every user chooses among options that only that user knows.

Neither the options nor the choice nor the answer may be seen. A device that sends noisy statistics
of all three, as those of Dubey 2021 (Algorithm 3) do, sends some hundred numbers, and at ε = 1
nearly nothing is left of them among 500 users. Here the server asks about one public *place* at a
time. A device chooses by the server's public draw of the objective, which is largest at that place,
and sends one level of what it found, or that it found nothing near the place: one of a few answers,
by randomised response. From how often something was near, the server knows how much a level counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any

import numpy as np

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.base.fields import Checked, Natural
from private_bo.gp.types import Array, array_of
from private_bo.levels import Levels
from private_bo.own.agent import scale_answer
from private_bo.own.answers import Device, LocalStudy
from private_bo.own.server import Question, ReleasedAnswer, Server
from private_bo.own.studies import ConstantUser, InterleavedUser
from private_bo.redacted_errors import NamedFunction, RedactedFunction, as_named, redact

_LEAST = 0.05
"""Of how often something is near, as it is believed."""
_TRUST = 0.25
"""Prior deviation of that from 1."""


@dataclass(frozen=True, eq=False)
class Parameters(Question):
    """What a device chooses by; public. The point is the place.

    Attributes:
        theta: θ of the draw θᵀΦ, (m,).
        kernel: the number of the feature map Φ.
    """

    theta: Annotated[Array, array_of("m")] = field(repr=False)
    kernel: Natural = 0


@dataclass(frozen=True)
class Report(Checked):
    """What a device sends.

    Attributes:
        group: of the question that it answers.
        level: 0 where nothing was near, else one more than the answer's level; after its noise.
    """

    group: Natural
    level: Natural


@dataclass(frozen=True)
class LocalJointStudy(LocalStudy):
    """Users choose among options of their own and send one level. Fields as in the base.

    Attributes:
        options: the points (n, d) among which a user may choose, called with the user's record;
            None for all of the space. Private, as the record is.
    """

    options: Annotated[NamedFunction | None, as_named] = None

    @cached_property
    def levels(self) -> Levels:
        """How an answer leaves; one of them says that nothing was near."""
        return Levels.best(self.epsilon, silent=True)

    def server(self, rng: np.random.Generator) -> LocalJointServer:
        """A server without any data; ``rng`` draws what has no privacy role."""
        validate.instance(np.random.Generator, rng=rng)
        return LocalJointServer(
            self.maps, self.answers, self.users, 1, self.deviation, self.exploration, rng,
            self.levels, self.answer_deviation,
        )  # fmt: skip

    def device(self, user: str, ledger: Any, rng: np.random.Generator) -> JointDevice:
        """A user's device; ``rng`` makes coins of answers, which privacy does not rest on."""
        return JointDevice(self, user, ledger, rng)

    def ask(self, parameters: Parameters, device: JointDevice, record: Any) -> Report:
        """What the device of a user with that record sends."""
        options = self.space.candidates
        if self.options is not None and not isinstance(record, ConstantUser):
            own = record.record if isinstance(record, InterleavedUser) else record
            options = validate.private(self.options(own)).astype(np.float64)
        return device.answer(parameters, options, _Played(self, record, options))


@dataclass(eq=False)
class _Played(RedactedFunction):
    """A user's answer about an option, of whose errors the study's own sentence is told."""

    study: LocalJointStudy
    record: Any
    options: Array

    def __call__(self, place: int) -> Any:
        return self.study.measure(self.options[place], self.record)


@dataclass(eq=False)
class JointDevice(Device):
    """A user's own device: it alone knows the options, the choice and the answer.

    Fields as in the base class, and:

    Attributes:
        choice: the option that was played, known to the user alone; None before.
    """

    study: LocalJointStudy
    choice: int | None = field(default=None, init=False)

    def answer(  # type: ignore[override]
        self, parameters: Parameters, options: Any, play: Callable[[int], Any]
    ) -> Report:
        """Choose, play, and send one level.

        Args:
            parameters: of the server.
            options: the user's own, (n, d).
            play: the answer about an option, by its place.

        Raises:
            InputError: if this device has answered, the options are no points, the answer is no
                finite number, or ``play`` raises: its words are not told. Nothing is released then.
        """
        if self.choice is not None:
            raise InputError(f"user {self.user!r:.60} has answered; each answers once.")
        validate.instance(Parameters, parameters=parameters)
        study = self.study
        features = study.maps[parameters.kernel]
        place, share = features.chosen(
            validate.private(options).astype(np.float64), parameters.theta, parameters.point
        )
        scaled = scale_answer(redact(play)(place), study.answers)
        near, coin = self.rng.random(2)
        level = study.levels.number(scaled, coin) if near < share else 0
        sent = self.release(level)
        self.choice = place
        return Report(parameters.group, sent)


@dataclass(eq=False)
class LocalJointServer(Server):
    """Asks about a place at a time, and learns what reports say of it, in whatever order they come.

    Attributes:
        levels: how answers leave.
        answer_deviation: of an answer from the objective, scaled.
    """

    levels: Levels = field(default_factory=lambda: Levels.best(1.0, silent=True))
    answer_deviation: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        lie, truth = self.levels.law.answer_probabilities
        # Prior reports of something near, as many as would leave the prior deviation.
        self._reports = 1.0 + lie * (1 - lie) / (truth - lie) ** 2 / _TRUST**2
        self._near = self._reports

    def ask(self) -> Parameters:
        """The next place and draw, for a user who has not been asked."""
        asked = super().ask()
        return Parameters(asked.number, asked.group, asked.point, self.drawn, self.best_map)

    @property
    def near(self) -> float:
        """How often something is near a place: an estimate from reports alone."""
        return float(np.clip(self._near / self._reports, _LEAST, 1.0))

    def tell(self, report: Report) -> None:  # type: ignore[override]
        """Count a report."""
        validate.instance(Report, report=report)
        levels = self.levels
        validate.integer_at_least(0, levels.law.k - 1, level=report.level)
        self.require_waiting(report.group)
        self._told.add(report.group)
        p = levels.law.p
        self._reports += 1
        self._near += ((report.level > 0) - p * levels.count / levels.law.k) / (1 - p)
        share = self.near
        variance = levels.lie + share * (levels.variance - levels.lie + self.answer_deviation**2)
        value, point = levels.value(report.level), self._points[report.group]
        for each, belief in zip(self.maps, self._beliefs, strict=True):
            belief.observe(share * each(point[None])[0], value, variance)
        released = ReleasedAnswer.of(report.group, value, variance, self.answers)
        self.trace.append((point, released))
