"""One-line mistakes in the sealed forms of local trust, and what becomes of each.

A mistake is *impossible* where the request, the plan or the run is refused; *not certified* where
the certificate does not hold the claim; *harmless* where no user moves what is released by more
than is declared; and *assumed* where this is so of the users as named, but not of a person, or not
of what its author made public. Nothing else may happen: it would be a leak that is certified.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir, contextmanager
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit import Laplace, Plan, RandomizedResponse, RunResult, Table, certify
from dpaudit.auditing.replaying.replay import replay
from dpaudit.base.errors import DpAuditError
from dpaudit.certificate import Premise, SubjectRecord, Verdict
from dpaudit.project.sealed_subject import OpenSubject
from dpaudit.workflow.running import RunOptions, open_target, run_subject, run_target
from private_bo import sealed
from private_bo.sealed.local import TableRewards, sent
from tests.support.sealed_studies import (
    bandit,
    made_rewards,
    study,
    write_rewards,
    write_users,
)

FAR = 1e6


class Outcome(StrEnum):
    """What a mistake becomes."""

    IMPOSSIBLE = "impossible"
    NOT_CERTIFIED = "not certified"
    HARMLESS = "harmless"
    ASSUMED = "assumed"
    LEAKS = "leaks"


def _with_column(table: Table, name: str, **changes: Any) -> Table:
    columns = {**table.columns, name: {**table.columns[name], **changes}}
    return replace(table, columns=columns)


class NoClip(sealed.LDPTGPUCB):
    """The mechanism does not clip; the schema does."""

    @property
    def mechanism(self):
        return replace(super().mechanism, clip=None)


class NoClipNorRange(NoClip):
    """Neither clips."""

    def table(self):
        return _with_column(super().table(), "reward", range=[-FAR, FAR])


class WideRange(sealed.LDPTGPUCB):
    """The schema has another range than the reward; the mechanism clips."""

    def table(self):
        return _with_column(super().table(), "reward", range=[-FAR, FAR])


class HalfSensitivity(sealed.LDPTGPUCB):
    """The sensitivity is declared as half of what the clip allows."""

    @property
    def sensitivity(self):
        return super().sensitivity / 2


class HalfNoise(sealed.LDPTGPUCB):
    """Half the noise of the claim."""

    @property
    def mechanism(self):
        found = super().mechanism
        return replace(found, scale=found.scale / 2)


class SurerBit(sealed.LDPOneBitGP):
    """The bit is kept more often than the claim allows."""

    @property
    def mechanism(self):
        return RandomizedResponse.calibrated(epsilon=2 * self.epsilon)


class OtherNoise(sealed.LDPTGPUCB):
    """What is released has less noise than the plan declares."""

    def release(self, ledger, user, value):
        plan = Plan.of(replace(self.plan().invocations[0], mechanism=Laplace(1e-3)))
        return type(ledger)(plan, ledger._ask).answers(value.vector("reward"), units=[user])[0]


class RawReward(sealed.LDPTGPUCB):
    """The policy is given the reward itself."""

    def release(self, ledger, user, value):
        return float(value.vector("reward"))


class RewardForBit(sealed.LDPOneBitGP):
    """The whole reward is sent in place of a bit of it."""

    def bit(self, user, reward, coin):
        return reward.vector("reward"), 0


class TwoBits(sealed.LDPOneBitGP):
    """Two bits are sent in place of one."""

    def bit(self, user, reward, coin):
        return reward.vector(["CASE WHEN reward > 0 THEN 1 ELSE 0 END"] * 2), [0, 0]


class NoCoin(sealed.LDPOneBitGP):
    """The bit is rounded without a coin, so that the estimate is biased."""

    def bit(self, user, reward, coin):
        return super().bit(user, reward, 0.5)


class RoundLess(sealed.LDPTGPUCB):
    """One round less than is declared."""

    def play(self, users, rng):
        shorter = replace(self.constants, horizon=self.steps - 1)
        return self.policy.play(users, shorter, rng)


class RoundMore(sealed.LDPTGPUCB):
    """One round more than is declared."""

    @property
    def people(self):
        return self.steps + 1

    def play(self, users, rng):
        return self.policy.play(users, replace(self.constants, horizon=self.steps + 1), rng)


class SameUser(sealed.LDPTGPUCB):
    """Everybody's question goes to the first user."""

    @property
    def names(self):
        return super().names[:1] * self.people if hasattr(self, "_running") else super().names

    def run(self, data, ledger, rng):
        object.__setattr__(self, "_running", True)
        return super().run(data, ledger, rng)


class AskedAgain(sealed.LDPTGPUCB):
    """Each user answers twice, and the policy is given the mean."""

    def release(self, ledger, user, value):
        return np.mean([super(AskedAgain, self).release(ledger, user, value) for _ in range(2)])


class Everybody(sealed.LDPTGPUCB):
    """The question is of everybody's rows, in place of the user's own."""

    def run(self, data, ledger, rng):
        class All(type(data)):
            __slots__ = ()

            def of_units(self, names):
                return self

        return super().run(All(data._ask, data._number), ledger, rng)


class EverybodySummed(sealed.LDPTGPUCB):
    """What a user sends is everybody's sum."""

    def release(self, ledger, user, value):
        return float(ledger.sum(value.vector("reward"), at="reward"))


class BranchOnReward(sealed.LDPTGPUCB):
    """A reward decides whether it is sent."""

    def release(self, ledger, user, value):
        return super().release(ledger, user, value) if value.vector("reward") > 0 else 0.0


class Unlisted(sealed.LDPTGPUCB):
    """A user is asked whom the roster does not name."""

    def release(self, ledger, user, value):
        return super().release(ledger, "somebody", value)


class HandleAsResult(sealed.LDPTGPUCB):
    """The rows are returned beside the recommendation."""

    def run(self, data, ledger, rng):
        found = super().run(data, ledger, rng)
        return RunResult({**found.summary, "rows": data})


class OwnersNumber(sealed.LDPTGPUCB):
    """The number of rows is counted without noise, for the owner."""

    def run(self, data, ledger, rng):
        data.tell_owner("rows")
        return super().run(data, ledger, rng)


class CountedRows(sealed.LDPTGPUCB):
    """The number of rows is published without noise."""

    def run(self, data, ledger, rng):
        found = super().run(data, ledger, rng)
        return RunResult({**found.summary, "rows": len(data)})


class MissingTold(sealed.LDPTGPUCB):
    """Who has no reward answers far outside of the range."""

    def release(self, ledger, user, value):
        return sent(ledger, user, value.vector("reward"), FAR, "reward")


class PolicyOfRows(sealed.LDPTGPUCB):
    """The policy is given the handles of the table."""

    def run(self, data, ledger, rng):
        rewards = TableRewards(data, self.names, 1)
        chosen = rewards.respond(0, rng).value
        return super().run(data if chosen else chosen, ledger, rng)


class VisitsAsUsers(sealed.LDPTGPUCB):
    """A user is whoever made a visit: somebody with several visits is several users."""

    assumed = Premise.PERSONS, "a visit is no person"


class RosterOfTheTable(sealed.LDPTGPUCB):
    """The roster is what its author read off the table, the best first."""

    assumed = Premise.PUBLIC_FACTS, "the roster was made of the rewards"


# -- studies ---------------------------------------------------------------------------------------


class AnswerForLevel(sealed.LocalStudy):
    """The answer is sent in place of a level."""

    def device(self, user, ledger, rng):
        class Device(sealed.local.SealedDevice):
            def level(self, value, coin):
                return value, 0

        return Device(self, user, ledger, rng)


class NoRange(sealed.LocalStudy):
    """The objective's values are taken from a range of their own."""

    def measure(self, point, record):
        own = self.objective.function
        return record.per_unit(
            own, low=-FAR, high=FAR, step=0.01, parameters={"point": point.tolist()}
        )


class UnlistedFunction(sealed.LocalStudy):
    """The objective is not declared as a function of the code."""

    @property
    def functions(self):
        return (adding,)


def adding(records, rng, point, seen=[]):  # noqa: B006  # the mistake
    """An objective that answers by everybody whom it has seen, in a default argument."""
    seen.append(records["best"][0])
    return sum(seen) % 1.0


def following(records, rng, point):
    """An objective that answers by everybody whom it has seen, in an attribute of its own."""
    following.total = getattr(following, "total", 0.0) + records["best"][0]
    return following.total / 10


def shouting(records, rng, point):
    """An objective that answers far outside of the range."""
    return FAR if records["best"][0] > 0.5 else -FAR


def sulking(records, rng, point):
    """An objective that fails for some."""
    if records["best"][0] > 0.5:
        raise ValueError(records["best"])
    return 0.25


@dataclass(frozen=True)
class Mutant:
    """A mistake.

    Attributes:
        name: of the class, or the function.
        subject: with it.
        what: the mistake in a sentence.
        assumed: the premise that it breaks, if its author alone can know.
    """

    name: str
    subject: Any
    what: str
    assumed: tuple[Premise, str] | None = None


_BANDITS = (
    *(NoClip, NoClipNorRange, WideRange, HalfSensitivity, HalfNoise, SurerBit, OtherNoise),
    *(RawReward, RewardForBit, TwoBits, NoCoin, RoundLess, RoundMore, SameUser, AskedAgain),
    *(Everybody, EverybodySummed, BranchOnReward, Unlisted, HandleAsResult, OwnersNumber),
    *(CountedRows, MissingTold, PolicyOfRows, VisitsAsUsers, RosterOfTheTable),
)
_STUDIES = (AnswerForLevel, NoRange, UnlistedFunction)
_OBJECTIVES = (shouting, sulking)
REMEMBERING = (adding, following)
"""Objectives that keep something of one user for the next; they must run sealed."""


def mutants() -> list[Mutant]:
    """All that run in one process."""
    found = [
        Mutant(each.__name__, bandit(each, 8), str(each.__doc__), getattr(each, "assumed", None))
        for each in _BANDITS
    ]
    for kind in _STUDIES:
        usual = study(epsilon=1.0 if kind is AnswerForLevel else 8.0)
        given = {each.name: getattr(usual, each.name) for each in fields(usual)}
        found.append(Mutant(kind.__name__, kind(**given), str(kind.__doc__)))
    objectives = {each: study(objective=each, epsilon=8.0) for each in _OBJECTIVES}
    return found + [
        Mutant(each.__name__, subject, str(each.__doc__)) for each, subject in objectives.items()
    ]


def outcome(mutant: Mutant, folder: Path) -> tuple[Outcome, str]:
    """What a mistake becomes, and why: by the certificate, or by replays on neighbours."""
    subject = mutant.subject
    try:
        record = SubjectRecord(mutant.name)
        made = certify(subject.plan(), subject=record, claim=subject.claim(), delta=0.0)
        if made.verdict is not Verdict.CERTIFIED:
            said = f"{made.guarantee} is proved, and {subject.claim()} claimed"
            return Outcome.NOT_CERTIFIED, said
        apart = max(_distances(subject, folder))
    except DpAuditError as error:
        return Outcome.IMPOSSIBLE, str(error)
    if apart > 1 + 1e-9:
        return Outcome.LEAKS, f"a user moves it {apart:.3g} times what is declared"
    if mutant.assumed is not None:
        return Outcome.ASSUMED, ": ".join(map(str, mutant.assumed))
    return Outcome.HARMLESS, f"a user moves it {apart:.3g} times what is declared"


_OWN = """
from private_bo import PointSpace
from private_bo.sealed import LocalStudy
from objectives import NAME

COLUMNS = {"best": {"type": "number", "range": [0, 1], "step": 0.01}}
SPACE = PointSpace([[0.5]])
STUDY = LocalStudy(space=SPACE, objective=NAME, users=6, epsilon=8.0, columns=COLUMNS)
"""


def moved_by_one(objective: Callable[..., Any], folder: Path, *, seal: bool = True) -> int:
    """How many users of a sealed study answer otherwise if the first one is another.

    All are asked about one point, so that who is asked first decides nothing.

    Args:
        objective: of the study.
        folder: for code and table.
        seal: whether it runs sealed, or in this process.
    """
    source = inspect.getsource(objective)
    (folder / "objectives.py").write_text(source, "utf-8")
    own = _OWN.replace("NAME", objective.__name__)
    (folder / "own.py").write_text(own, "utf-8")
    found = []
    with chdir(folder):
        for place, changed in enumerate(({}, {"user 1": 0.0})):
            write_users(folder / "users.csv", study(users=6).names, changed)
            out = Path(f"out{place}")
            if seal:
                made, _ = run_subject("own.py:STUDY", (), None, 1, out, sealed=True)
            else:
                target = open_target("own.py:STUDY", {}, "to compare")
                made, _ = run_target(target, "own.py", out, RunOptions(seed=1))
            assert made.run is not None
            found.append(made.run["series"]["released"])
    return sum(one != other for one, other in zip(*found, strict=True))


def _distances(subject: Any, folder: Path) -> Iterator[float]:
    """How many times what is declared each of some users moves what is released; ∞ if more."""
    names = subject.names
    with _held(subject, folder / "here", {}) as here:
        for user, far in ((names[0], FAR), (names[0], -FAR), (names[3], FAR), (names[-1], -FAR)):
            with _held(subject, folder / f"{user} {far:g}", {user: far}) as there:
                report = replay(OpenSubject(subject), here, there)
            told = [each.rule for each in report.findings]
            if any(rule != "sensitivity-understated" for rule in told):
                yield np.inf
            yield max((each.observed / each.declared for each in report.comparisons), default=0.0)


@contextmanager
def _held(subject: Any, folder: Path, changed: Mapping[str, float]) -> Iterator[Any]:
    """The table of a subject in which some users are others."""
    folder.mkdir(exist_ok=True)
    if isinstance(subject, sealed.LocalStudy):
        write_users(folder / "users.csv", subject.names, changed)
    else:
        rewards = made_rewards(subject)
        moved = {key: changed.get(key[0], reward) for key, reward in rewards.items()}
        write_rewards(folder / "rewards.csv", moved)
    held = OpenSubject(subject, folder).load(subject.default_data, np.random.default_rng(0))
    with held.stack:
        yield held
