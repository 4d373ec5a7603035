"""Sealed studies and their unsealed twins on one table, and what both are about to release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit import RunResult, SealedSubject, Subject
from dpaudit.auditing.replaying.recording import RecordingNoise, Step
from dpaudit.ledger import Ledger
from dpaudit.project.sealed_subject import OpenSubject
from private_bo import local, own, sealed
from private_bo.gp import FiniteDomain, Matern
from private_bo.own import BoxSpace
from private_bo.problems import BanditProblem, Response, RewardSource

DOMAIN, KERNEL = FiniteDomain.grid(6), Matern(0.3, nu=2.5)
BANDITS: dict[type, dict[str, Any]] = {
    sealed.LDPATAGPUCB: {"epsilon": 20.0, "width_multiplier": 0.1},
    sealed.LDPTGPUCB: {"epsilon": 20.0, "width_multiplier": 0.1},
    sealed.LDPMoMAGPUCB: {"epsilon": 20.0, "width_multiplier": 0.1, "plays_per_epoch": 3},
    sealed.LDPOneBitGP: {"epsilon": 4.0, "lower": -2.0, "upper": 2.0},
}
"""Settings with which each learns something within a few rounds."""
Rewards = Mapping[tuple[str, int], float]
"""What each user answers at each point."""


def bandit(kind: type, steps: int = 24, **more: Any) -> Any:
    """A sealed bandit over few points."""
    usual = next(BANDITS[each] for each in kind.__mro__ if each in BANDITS)
    return kind(steps=steps, domain=DOMAIN, kernel=KERNEL, **{**usual, **more})


def plain(subject: SealedSubject) -> Any:
    """The study of a sealed one, with the same settings."""
    room = own if isinstance(subject, sealed.LocalStudy) else local
    kind = getattr(room, type(subject).__name__)
    return kind(**{each.name: getattr(subject, each.name) for each in fields(kind) if each.init})


def made_rewards(subject: Any, places: int = 6, outside: float = 1.0) -> Rewards:
    """Rewards of everybody everywhere, some of them outside of the range, so many times wider."""
    rng, size = np.random.default_rng(5), subject.domain.size
    drawn = outside * rng.uniform(-2.5, 2.5, (len(subject.names), size)) + np.linspace(0, 1, size)
    drawn = drawn.round(places)
    return {
        (user, point): float(drawn[place, point])
        for place, user in enumerate(subject.names)
        for point in range(size)
    }


def write_rewards(path: Path, rewards: Rewards) -> None:
    """A table of them, in an order that is not the roster's."""
    lines = [f"{user},{point},{reward!r}" for (user, point), reward in rewards.items()]
    path.write_text("\n".join(["user,point,reward", *reversed(lines)]), "utf-8")


@dataclass(eq=False)
class Users(RewardSource):
    """The users of a table, asked one after another, in this process."""

    names: Sequence[str]
    rewards: Rewards
    answers_per_user: int = 1
    asked: int = field(init=False, default=0)

    def respond(self, index: int, rng: np.random.Generator) -> Response:
        user = self.names[self.asked // self.answers_per_user]
        self.asked += 1
        return Response(user, self.rewards[user, index])


def problem(subject: Any, rewards: Rewards) -> BanditProblem:
    """What the study without a seal runs on."""
    truth = np.zeros(subject.domain.size)
    users = Users(subject.names, rewards, subject.answers_per_user)
    return BanditProblem(
        "table", subject.domain, subject.kernel, truth, 1, 1, 2, 1, True, rewards=users
    )


def released(subject: Subject, data: Any) -> tuple[RunResult, list[Step]]:
    """What a subject returns, and all that it released, before noise too; always at one seed."""
    noise = RecordingNoise(np.random.default_rng(1))
    ledger = Ledger(subject.plan(), noise=noise)
    result = subject.run(data, ledger, np.random.default_rng(2))
    return result, noise.steps


def released_on_handles(subject: SealedSubject, folder: Path) -> tuple[RunResult, list[Step]]:
    """The same of a sealed one, whose code runs in this process, on the table of a folder."""
    opened = OpenSubject(subject, folder)
    held = opened.load(subject.default_data, np.random.default_rng(0))
    with held.stack:
        return released(opened, held)


def liking(records, rng, point):
    """What a user of a sealed study thinks of a point."""
    return float(1.2 - 2 * (point[0] - records["best"][0]) ** 2)


def liking_of(point, user):
    """The same of a record."""
    return liking({"best": [user["best"]]}, None, point)


def study(**more: Any) -> sealed.LocalStudy:
    """A sealed study of a user's taste."""
    columns = {"best": {"type": "number", "range": [0, 1], "step": 0.01}}
    usual = {"space": BoxSpace((0,), (1,)), "objective": liking, "users": 12, "columns": columns}
    return sealed.LocalStudy(**{**usual, **more})


def write_users(
    path: Path, names: Sequence[str], changed: Mapping[str, float] | None = None
) -> list[dict[str, float]]:
    """A table of tastes, some of them others, and the records of it in the order of names."""
    rng = np.random.default_rng(6)
    tastes = dict(zip(names, rng.random(len(names)).round(2).tolist(), strict=True))
    records = [{"best": each} for each in (tastes | dict(changed or {})).values()]
    lines = [f"{user},{each['best']}" for user, each in zip(names, records, strict=True)]
    path.write_text("\n".join(["user,best", *reversed(lines)]), "utf-8")
    return records
