"""Joint and local-joint trust, sealed: users choose among options that they alone hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from dpaudit import InputError, RunResult, Table
from dpaudit.base.fields import Positive
from private_bo.joint import JointServer, Noise, OutOfRange, central, local_joint
from private_bo.joint.statistics import FREE_WEIGHT
from private_bo.joint.subject import PrivateApproximateGPUCB
from private_bo.own import answers
from private_bo.own import local_joint as local_joint_study
from private_bo.own.local_joint import JointDevice, Parameters, Report
from private_bo.sealed.choices import choose, choose_level, packed
from private_bo.sealed.local import sent
from private_bo.sealed.study import SealedProblem, SealedStudy

_STEP = 1e-9
"""To whose multiples features and values are rounded before anything is added up."""


@dataclass(frozen=True)
class SealedDecisions(SealedStudy, PrivateApproximateGPUCB):
    """Base of the algorithms on a table of users, coordinates ``x1``, … of arms, and ``reward``.

    The rows of a user are the arms among which this user may choose, each with the reward that the
    user would answer. Users come in the order of the roster, one a round, and all of them: the
    table declares who they are. One without a row counts as no arm and the middle of the range.

    Rewards are clipped; noise is the least certified, on centred statistics whose matrix costs
    nothing, as of these alone it is known how far one user moves them.

    Attributes:
        step: to whose multiples coordinates and rewards of the table are rounded.
    """

    functions: ClassVar[tuple[Callable[..., Any], ...]] = (choose,)

    default_data: str = "decisions.csv"  # type: ignore[misc]
    step: Positive = 1e-6

    def __post_init__(self) -> None:
        super().__post_init__()
        usual = self.centred and 0 < self.matrix_weight <= FREE_WEIGHT
        if self.noise is not Noise.TIGHT or not usual:
            raise InputError(
                f"noise is {self.noise}, centred {self.centred} and matrix_weight "
                f"{self.matrix_weight:g}; a sealed run takes tight noise on centred rewards, with "
                "a weight above 0 and at most 1/√8."
            )
        if self.out_of_range is not OutOfRange.CLIP:
            raise InputError("out_of_range is refuse; a sealed run clips, so set clip.")

    @property
    def people(self) -> int:
        """One user a round."""
        return self.steps

    @property
    def coordinates(self) -> list[str]:
        """Columns of an arm."""
        return [f"x{axis + 1}" for axis in range(self.feature_map.dimension)]

    def table(self) -> Table:
        """Arms within the domain of the features, and rewards within the public range."""
        bounds = np.resize(self.feature_map.domain.bounds, (len(self.coordinates), 2))
        ranges = dict(zip(self.coordinates, bounds.tolist(), strict=True))
        ranges["reward"] = list(self.reward_range)
        columns = {
            name: {"type": "number", "range": ends, "step": self.step}
            for name, ends in ranges.items()
        }
        return Table(self.default_data, "user", columns, roster=self.names)

    @cached_property
    def _features(self) -> str:
        self.feature_map(np.zeros((1, self.feature_map.dimension)))  # computes what it keeps
        return packed(self.feature_map)

    def statistics_of(self, data: Any, user: str, server: JointServer, *, packed: bool) -> Any:
        """What one user adds to the sums: made of the own rows and of what was released."""
        parameters = {
            "coordinates": self.coordinates,
            "features": self._features,
            "rewards": list(self.reward_range),
        }
        size, ends = self.size + 1, np.append(np.ones(self.size), 0.5)
        belief = server.belief
        chosen = data.of_units([user]).per_unit(
            choose, shape=(size,), low=-ends, high=ends, step=_STEP, default=np.zeros(size),
            parameters=parameters | {"theta": belief.theta, "root": belief.root},
        )  # fmt: skip
        return chosen.encode("regression", weight=float(self.matrix_weight), packed=packed)

    def told(self) -> RunResult:
        """How many users came, as all others see what they add alone."""
        return RunResult(self.summary(self.default_data, self.people))


@dataclass(frozen=True)
class JointGPUCB(SealedDecisions, central.JointGPUCB):
    """Algorithms 1 and 2 on a table; fields as in the algorithm and in the base."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.doubling:
            raise InputError("doubling is true; a sealed run has one stream, so set it to false.")

    def run(self, data: Any, ledger: Any, rng: np.random.Generator) -> RunResult:
        """Play every round; the server is deterministic."""
        server = JointServer(self.feature_map, self.learner(), self.refresh)
        (period,) = self.periods
        stream, sums = ledger.stream(self.statistics.shape, at=period.at), None
        for turn, user in enumerate(self.names):
            if server.due(turn):
                server.observe(sums)
            added = self.statistics_of(data, user, server, packed=False)
            total = stream.add(added, units=[user])
            sums = self.statistics.decode(total, turn + 1, float(period.deviations[turn]))
        return self.told()


@dataclass(frozen=True)
class LocalJointGPUCB(SealedDecisions, local_joint.LocalJointGPUCB):
    """Algorithm 3 on a table; fields as in the algorithm and in the base."""

    def run(self, data: Any, ledger: Any, rng: np.random.Generator) -> RunResult:
        """Play every round."""
        server = self.server()
        for turn, user in enumerate(self.names):
            chooser = server.parameters().server
            sent = self.statistics_of(data, user, chooser, packed=True)
            (noisy,) = ledger.answers(sent, units=[user], at="statistics")
            server.receive(local_joint.Report(turn, user, np.asarray(noisy)))
        return self.told()


@dataclass(frozen=True)
class JointStudy(SealedProblem, answers.JointStudy):
    """A study under joint trust; fields as in the study and in the base.

    Users of the roster are asked in groups, in its order. Who has no rows, and whose objective
    fails, counts as one in the middle of the range.
    """

    def run(self, data: Any, ledger: Any, rng: np.random.Generator) -> RunResult:
        """Ask group after group of the table."""
        server = self.server(rng)
        for group in range(self.groups):
            members = self.members(group)
            point = [server.ask() for _ in members][-1].point
            answered = self.scaled(self.measure(point, data.of_units(members)))
            total = ledger.sum(answered, units=members, at=answers.place_of(group))
            server.tell(self.released(group, float(total)))
        return self.result(data, server)


@dataclass(frozen=True)
class LocalJointStudy(SealedProblem, local_joint_study.LocalJointStudy):
    """A study under local joint trust; fields as in the study and in the base.

    ``options`` is a function ``options(records, rng)`` that gives points, beside the objective.
    """

    @property
    def functions(self) -> tuple[Callable[..., Any], ...]:  # type: ignore[override]
        """What a device does, and the functions of yours that it calls."""
        more = () if self.options is None else (self.options.function,)
        return (choose_level, *super().functions, *more)

    def run(self, data: Any, ledger: Any, rng: np.random.Generator) -> RunResult:
        """Ask one user of the table after the other."""
        rows = (data.of_units([user]) for user in self.names)
        return self.result(data, self.search(rows, ledger, rng))

    def device(self, user: str, ledger: Any, rng: np.random.Generator) -> SealedJointDevice:
        """What asks for a user's level."""
        return SealedJointDevice(self, user, ledger, rng)

    def ask(self, parameters: Parameters, device: Any, record: Any) -> Report:
        """What the device of a user with these rows sends."""
        found: Report = device.reported(parameters, record)
        return found

    @cached_property
    def packed_maps(self) -> list[str]:
        """The feature maps as texts."""
        for each in self.maps:
            each(self.space.candidates[:1])  # computes what it keeps
        return [packed(each) for each in self.maps]


@dataclass(eq=False)
class SealedJointDevice(JointDevice):
    """Makes a handle of a user's level in place of a number; attributes as in the base."""

    study: LocalJointStudy

    def __post_init__(self) -> None:
        """The ledger is a sealed one."""

    def reported(self, parameters: Parameters, rows: Any) -> Report:
        """One release of a handle, made of the own rows and of what is public."""
        study, (near, coin) = self.study, self.rng.random(2).tolist()
        given = {
            "objective": _named(study.asked),
            "options": [] if study.options is None else _named(study.options.function),
            "features": study.packed_maps[parameters.kernel],
            "theta": parameters.theta,
            "place": parameters.point.tolist(),
            "answers": list(study.answers),
            "near": near,
            "thresholds": study.levels.thresholds(coin),
        }
        ends = {"low": 0.0, "high": float(study.levels.count), "step": 1.0, "default": 0.0}
        vectors = rows.per_unit(choose_level, **ends, parameters=given).rows().vector("value")
        level = sent(self.ledger, self.user, vectors, 0, answers.AT)
        return Report(parameters.group, int(level))


def _named(function: Callable[..., Any]) -> list[str]:
    return [function.__module__, function.__qualname__]
