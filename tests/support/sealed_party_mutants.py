"""One-line mistakes in the sealed forms of joint and federated trust, and what becomes of each.

Outcomes are those of :mod:`tests.support.sealed_mutants`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit import RunResult, certify
from dpaudit.auditing.replaying.replay import replay
from dpaudit.base.errors import DpAuditError
from dpaudit.certificate import SubjectRecord, Verdict
from dpaudit.project.sealed_subject import OpenSubject
from private_bo import BoxSpace, sealed
from private_bo.joint import JointGPUCB
from private_bo.sealed.agents import take_part
from private_bo.sealed.choices import choose
from tests.support.same_releases import written
from tests.support.sealed_mutants import Outcome
from tests.support.sealed_studies import liking

STEPS, AGENTS, POINTS = 6, 8, 40
_NEIGHBOURS = 4


def _of_users(folder: Path) -> str:
    problem = JointGPUCB(steps=STEPS).load("bump", np.random.default_rng(3))
    rows = (
        [f"user {turn + 1}", *np.round(arm, 6), problem.reward(turn, place)]
        for turn in range(STEPS)
        for place, arm in enumerate(problem.decision_set(turn))
    )
    return written(folder / "users.csv", ["user", "x1", "x2", "reward"], rows)


def _of_tastes(folder: Path) -> str:
    best = np.random.default_rng(4).random(STEPS).round(2).tolist()
    rows = ([f"user {place + 1}", each] for place, each in enumerate(best))
    return written(folder / "users.csv", ["user", "best"], rows)


def _of_agents(folder: Path) -> str:
    values = np.random.default_rng(5).uniform(-1, 2, (AGENTS, POINTS)).round(6)
    rows = ([f"agent {n}", n, point, value] for (n, point), value in np.ndenumerate(values))
    return written(folder / "agents.csv", ["agent", "number", "point", "value"], rows)


# -- users who choose ------------------------------------------------------------------------------


def choose_far(records, rng, **public):
    """A user whose features and reward are far too large."""
    return [1e6 * each for each in choose(records, rng, **public)]


def choose_all(records, rng, **public):
    """A user who sends all arms."""
    return [*records["x1"], *records["x2"]]


class _Users:
    """What each mistake has beside it."""

    table_of = staticmethod(_of_users)


class _Far(_Users):
    functions = (choose_far,)

    def statistics_of(self, data, user, server, *, packed):
        return super().statistics_of(_By(choose_far, data), user, server, packed=packed)


class FarFeatures(_Far, sealed.JointGPUCB):
    """Features and rewards are not brought into their range."""


class FarFeaturesSent(_Far, sealed.LocalJointGPUCB):
    """Features and rewards are not brought into their range, and sent by each user."""


class ArmsSent(_Users, sealed.LocalJointGPUCB):
    """A user sends all arms in place of the statistics of one."""

    functions = (choose_all,)

    def statistics_of(self, data, user, server, *, packed):
        return super().statistics_of(_By(choose_all, data), user, server, packed=packed)


class NoEncoder(_Users, sealed.JointGPUCB):
    """What is added is no statistics, but as many numbers as these."""

    def statistics_of(self, data, user, server, *, packed):
        return data.of_units([user]).group_rows(1).vector(["1000 * x1"] * (self.size + 1) ** 2)


class NoEncoderSent(_Users, sealed.LocalJointGPUCB):
    """What is sent is no statistics, but as many numbers as these."""

    def statistics_of(self, data, user, server, *, packed):
        (size,) = self.statistics.shape
        return data.of_units([user]).vector(["1000 * x1"] * size)


class LargerWeight(_Users, sealed.JointGPUCB):
    """The matrix weighs more than is free."""

    def statistics_of(self, data, user, server, *, packed):
        return super().statistics_of(_Weight(data, 1.0), user, server, packed=packed)


class _Half:
    def invocations(self):
        for each in super().invocations():
            yield replace(each, sensitivity=each.sensitivity / 2)


class HalfSensitivity(_Half, _Users, sealed.JointGPUCB):
    """Half of what a user moves is declared."""


class HalfSensitivitySent(_Half, _Users, sealed.LocalJointGPUCB):
    """Half of what a user sends is declared."""


class HalfNoise(_Users, sealed.JointGPUCB):
    """Half the noise of the claim."""

    def mechanism(self, steps):
        found = super().mechanism(steps)
        return replace(found, sigma=found.sigma / 2)


class _Named(_Users):
    @property
    def names(self):
        return self.__dict__.get("asked") or super().names

    def run(self, data, ledger, rng):
        object.__setattr__(self, "asked", self.otherwise(super().names))
        try:
            return super().run(data, ledger, rng)
        finally:
            object.__setattr__(self, "asked", None)


class RoundFewer(_Named, sealed.JointGPUCB):
    """The last user is not asked."""

    def otherwise(self, names):
        return names[:-1]


class UserTwice(_Named, sealed.JointGPUCB):
    """The first user is asked in place of the second too."""

    def otherwise(self, names):
        return (names[0], *names[:1], *names[2:])


class Everybody(_Users, sealed.JointGPUCB):
    """All users add to every round."""

    def run(self, data, ledger, rng):
        return super().run(data, _Unnamed(ledger), rng)


class RewardSeen(_Users, sealed.JointGPUCB):
    """The server is given what a user adds."""

    def statistics_of(self, data, user, server, *, packed):
        made = super().statistics_of(data, user, server, packed=packed)
        server.observe(self.statistics.decode(np.reshape(made, self.statistics.shape), 1, 0.0))
        return made


class BranchOnReward(_Users, sealed.LocalJointGPUCB):
    """A reward decides whether it is sent."""

    def statistics_of(self, data, user, server, *, packed):
        made = super().statistics_of(data, user, server, packed=packed)
        return made if data.filter("reward = 1") else made.linear([[0]])


# -- groups ----------------------------------------------------------------------------------------


class _Groups:
    table_of = staticmethod(_of_tastes)


class NoScale(_Groups, sealed.JointStudy):
    """Answers are not scaled before they are added."""

    def scaled(self, answered):
        return answered


class UserInTwoGroups(_Groups, sealed.JointStudy):
    """The last user of a group is asked in the next one too."""

    def members(self, group):
        first = max(0, group * self.group_size - 1)
        return self.names[first : group * self.group_size + self.group_size]


class AllInOneGroup(_Groups, sealed.JointStudy):
    """A group's sum is that of everybody."""

    def run(self, data, ledger, rng):
        return super().run(data, _Unnamed(ledger), rng)


class HalfNoiseOfGroup(_Groups, sealed.JointStudy):
    """Half the noise of the claim."""

    @property
    def mechanism(self):
        found = super().mechanism
        return replace(found, scale=found.scale / 2)


# -- agents ----------------------------------------------------------------------------------------


def unclipped(records, rng, state, **public):
    """An agent that does not clip."""
    return take_part(records, rng, state, **{**public, "limit": 1e6})


def by_counts(records, rng, state, **public):
    """An agent that weighs what it sends by how many rows it has."""
    sent, state = take_part(records, rng, state, **public)
    return [each * len(records["value"]) for each in sent], state


def its_matrix(records, rng, state, **public):
    """An agent that sends its objective."""
    sent = np.resize(records["value"], np.size(public["received"]))
    return (1e3 * sent).tolist(), state


def as_another(records, rng, state, **public):
    """An agent that takes the weight of another one."""
    return take_part({**records, "number": [0] * len(records["number"])}, rng, state, **public)


class _Agents:
    table_of = staticmethod(_of_agents)


def _by(function: Callable[..., Any]) -> type:
    class Agents(_Agents, sealed.DPFTSDE):
        functions = (function,)

        def run(self, data, ledger, rng):
            return super().run(_By(function, data), ledger, rng)

    Agents.__name__, Agents.__doc__ = function.__name__, function.__doc__
    return Agents


class HalfSensitivityOfAgents(_Half, _Agents, sealed.DPFTSDE):
    """Half of what an agent moves is declared."""


class FifthOfNoise(_Agents, sealed.DPFTSDE):
    """A fifth of the noise that the claim is of."""

    def invocations(self):
        for each in super().invocations():
            yield replace(each, mechanism=replace(each.mechanism, sigma=each.mechanism.sigma / 5))


class NotSampled(_Agents, sealed.DPFTSDE):
    """All agents are added up, and nobody is drawn."""

    def run(self, data, ledger, rng):
        return super().run(data, _NoSample(ledger), rng)


class SampledByHand(_Agents, sealed.DPFTSDE):
    """The code draws the agents, by its own generator."""

    def run(self, data, ledger, rng):
        drawn = rng.random(self.agents) < self.rate
        some = " OR ".join(f"number = {n}" for n in np.flatnonzero(drawn)) or "false"
        return super().run(data.filter(some), _NoSample(ledger), rng)


class SampleKept(_Agents, sealed.DPFTSDE):
    """One sample serves all rounds."""

    def run(self, data, ledger, rng):
        return super().run(data, _OneSample(ledger), rng)


class RoundOfAgentsFewer(_Agents, sealed.DPFTSDE):
    """One round fewer than is declared."""

    @property
    def releases(self):
        return super().releases[:-1]


class RoundOfAgentsMore(_Agents, sealed.DPFTSDE):
    """One round more than is declared."""

    def run(self, data, ledger, rng):
        super().run(data, ledger, rng)
        sent = data.vector(["value"])
        ledger.sum(ledger.sample(sent, at=self.releases[0].at), at=self.releases[0].at)
        return RunResult({})


# -- what mistakes are made of ---------------------------------------------------------------------


class _Around:
    """An object, of which some methods are others."""

    def __init__(self, own: Any) -> None:
        self.own = own

    def __getattr__(self, name: str) -> Any:
        return getattr(self.own, name)


class _By(_Around):
    """Rows of which another function is asked."""

    def __init__(self, function: Callable[..., Any], own: Any) -> None:
        super().__init__(own)
        self.function = function

    def of_units(self, names):
        return _By(self.function, self.own.of_units(names))

    def group_rows(self, most):  # the objective is read again
        return self

    def per_unit(self, function, **given):
        return self.own.per_unit(self.function, **given)


class _Weight(_Around):
    """Rows of which statistics weigh more."""

    def __init__(self, own: Any, weight: float) -> None:
        super().__init__(own)
        self.weight = weight

    def of_units(self, names):
        return _Weight(self.own.of_units(names), self.weight)

    def per_unit(self, function, **given):
        return _Weight(self.own.per_unit(function, **given), self.weight)

    def encode(self, by, **options):
        return self.own.encode(by, **{**options, "weight": self.weight})


class _Unnamed(_Around):
    """A ledger that is told no names."""

    def stream(self, *shape, at):
        return _Unnamed(self.own.stream(*shape, at=at))

    def add(self, vectors, *, units):
        return self.own.add(vectors)

    def sum(self, vectors, *, units, at):
        return self.own.sum(vectors, at=at)


class _NoSample(_Around):
    """A ledger that draws nobody."""

    def sample(self, vectors, *, at):
        return vectors


class _OneSample(_Around):
    """A ledger that draws once."""

    def sample(self, vectors, *, at):
        if not hasattr(self, "drawn"):
            self.drawn = self.own.sample(vectors, at=at)
        return self.drawn


@dataclass(frozen=True)
class PartyMutant:
    """A mistake.

    Attributes:
        name: of the class, or the function.
        subject: with it.
        what: the mistake in a sentence.
        wanted: what it must become.
    """

    name: str
    subject: Any
    what: str
    wanted: Outcome


_USERS = {
    FarFeatures: Outcome.HARMLESS,
    FarFeaturesSent: Outcome.HARMLESS,
    ArmsSent: Outcome.IMPOSSIBLE,
    NoEncoder: Outcome.HARMLESS,
    NoEncoderSent: Outcome.IMPOSSIBLE,
    LargerWeight: Outcome.IMPOSSIBLE,
    HalfSensitivity: Outcome.HARMLESS,
    HalfSensitivitySent: Outcome.IMPOSSIBLE,
    HalfNoise: Outcome.NOT_CERTIFIED,
    RoundFewer: Outcome.HARMLESS,
    UserTwice: Outcome.IMPOSSIBLE,
    Everybody: Outcome.IMPOSSIBLE,
    RewardSeen: Outcome.IMPOSSIBLE,
    BranchOnReward: Outcome.IMPOSSIBLE,
}
_GROUPED = {
    NoScale: Outcome.HARMLESS,
    UserInTwoGroups: Outcome.IMPOSSIBLE,
    AllInOneGroup: Outcome.IMPOSSIBLE,
    HalfNoiseOfGroup: Outcome.NOT_CERTIFIED,
}
_FEDERATED = {
    **{_by(each): Outcome.HARMLESS for each in (unclipped, by_counts, its_matrix, as_another)},
    HalfSensitivityOfAgents: Outcome.HARMLESS,
    FifthOfNoise: Outcome.NOT_CERTIFIED,
    NotSampled: Outcome.IMPOSSIBLE,
    SampledByHand: Outcome.IMPOSSIBLE,
    SampleKept: Outcome.IMPOSSIBLE,
    RoundOfAgentsFewer: Outcome.HARMLESS,
    RoundOfAgentsMore: Outcome.IMPOSSIBLE,
}


def party_mutants() -> list[PartyMutant]:
    """All of them."""
    columns = {"best": {"type": "number", "range": [0, 1], "step": 0.01}}
    study = {"space": BoxSpace((0,), (1,)), "objective": liking, "columns": columns}
    agents = {"agents": AGENTS, "rounds": 3, "rate": 0.5, "initial": 3, "features": 4}
    settings: list[tuple[dict[type, Outcome], dict[str, Any]]] = [
        (_USERS, {"steps": STEPS}),
        (_GROUPED, {"users": STEPS, "group": 2, **study}),
        (_FEDERATED, {"per_axis": POINTS, **agents}),
    ]
    return [
        PartyMutant(kind.__name__, kind(**given), str(kind.__doc__), wanted)
        for kinds, given in settings
        for kind, wanted in kinds.items()
    ]


def party_outcome(mutant: PartyMutant, folder: Path) -> tuple[Outcome, str]:
    """What a mistake becomes, and why: by the certificate, or by replays on neighbours."""
    subject = mutant.subject
    try:
        claim = subject.claim()
        made = certify(subject.plan(), subject=SubjectRecord(mutant.name), claim=claim)
        if made.verdict is not Verdict.CERTIFIED:
            return Outcome.NOT_CERTIFIED, f"{made.guarantee} is proved, and {claim} claimed"
        apart = max(_distances(subject, folder))
    except DpAuditError as error:
        return Outcome.IMPOSSIBLE, str(error)
    said = f"a unit moves it {apart:.3g} times what is declared"
    return (Outcome.LEAKS if apart > 1 + 1e-9 else Outcome.HARMLESS), said


def _distances(subject: Any, folder: Path) -> Iterator[float]:
    """How many times what is declared each of some units moves what is released; ∞ if more."""
    run = OpenSubject(subject)
    held = run.load(subject.table_of(folder), np.random.default_rng(0))
    moves = run.neighbours(held, np.random.default_rng(1))
    with held.stack:
        for move in islice(moves, _NEIGHBOURS):
            report = replay(run, held, move.data)
            if any(each.rule != "sensitivity-understated" for each in report.findings):
                yield np.inf
            yield max((each.observed / each.declared for each in report.comparisons), default=0.0)
