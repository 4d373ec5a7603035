"""Regret of private searches on a box of one's own, with unknown objectives.

Run ``python -m tests.benchmarks.own_problems``: 20 functions on a plane, 500 users (100 agents
under federated trust; a tenth of 500 rows asked for under outsourced trust). Every even function is
a draw of a Gaussian process with length scales of its own in each coordinate, every odd one a sum
of bumps; all go from 0 to 1. A user's answer is off by a normal error of 0.1. Regret is that of all
users together, as a share of that of uniform random play; intervals are Student's at 95 % over
functions. Defaults were chosen on functions of the seeds from 1000, which ``--tuned`` shows;
nothing was chosen on those of the table.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from dpaudit import Ledger
from private_bo import BoxSpace, study
from private_bo.own import FederatedStudy

Array = NDArray[np.float64]
BOX = BoxSpace((-2.0, 10.0), (3.0, 40.0))
"""As a user's own would be, in no convenient units."""
GRID = np.stack(np.meshgrid(*[np.linspace(0, 1, 61)] * 2, indexing="ij"), -1).reshape(-1, 2)
ERROR = 0.1
FIRST_TUNED = 1000


@dataclass(frozen=True)
class Function:
    """An objective on the unit square, from 0 to 1."""

    seed: tuple[int, ...]
    bumps: bool

    @cached_property
    def raw(self) -> Callable[[Array], Array]:
        rng = np.random.default_rng([77, *self.seed])
        if self.bumps:
            count = rng.integers(2, 6)
            centres, widths = rng.random((count, 2)), rng.uniform(0.1, 0.3, (count, 2))
            heights = rng.uniform(0.4, 1.0, count)
            return lambda X: (
                np.exp(-0.5 * np.square((X[:, None] - centres) / widths).sum(axis=2)) @ heights
            )
        scales = rng.uniform(0.15, 0.5, 2)
        frequencies, phases = rng.normal(size=(400, 2)) / scales, rng.uniform(0, 2 * np.pi, 400)
        weights = rng.normal(size=400)
        return lambda X: np.cos(X @ frequencies.T + phases) @ weights

    @cached_property
    def table(self) -> Array:
        return self.raw(GRID)

    def __call__(self, X: Array) -> Array:
        low, high = self.table.min(), self.table.max()
        return (self.raw(X) - low) / (high - low)

    @property
    def random(self) -> float:
        """Mean regret of uniform play."""
        return float(1 - self(GRID).mean())


def share(function: Callable[[Array], Array], points: Array) -> float:
    """Mean regret at points of the box, as a share of that of uniform play."""
    values = function(GRID)
    best, found = values.max(), function(BOX.unit(points)).mean()
    return float((best - found) / (best - values.mean()))


def played(seed: int, users: int, **setting: object) -> float:
    """Of one study, in which every user is asked once."""
    f = Function((seed,), bumps=seed % 2 == 1)
    errors = np.random.default_rng([1, seed]).normal(scale=ERROR, size=users)
    asked: list[Array] = []

    def objective(x: Array, error: float) -> float:
        asked.append(x)
        return float(f(BOX.unit(x[None]))[0]) + error

    subject = study(objective, BOX, users=users, **setting)  # type: ignore[arg-type]
    with Ledger(subject.plan(), rng=np.random.default_rng([2, seed])) as ledger:
        subject.run(errors, ledger, np.random.default_rng([3, seed]))
    return share(f, np.array(asked))


def among_own(seed: int, users: int, epsilon: float, count: int) -> float:
    """Under local-joint trust, of users who may choose among ``count`` random points of their own.

    Regret is against each user's own best, as a share of that of uniform play among them.
    """
    f = Function((seed,), bumps=seed % 2 == 1)
    errors = np.random.default_rng([1, seed]).normal(scale=ERROR, size=users)
    lost: list[tuple[float, float]] = []

    def options(user: int) -> Array:
        low, high = BOX.bounds.T
        return low + np.random.default_rng([9, seed, user]).random((count, 2)) * (high - low)

    def objective(x: Array, user: int) -> float:
        played = float(f(BOX.unit(x[None]))[0])
        values = f(BOX.unit(options(user)))
        lost.append((values.max() - played, values.max() - values.mean()))
        return played + float(errors[user])

    more = {"trust": "local-joint", "options": options}
    subject = study(objective, BOX, users=users, epsilon=epsilon, **more)
    with Ledger(subject.plan(), rng=np.random.default_rng([2, seed])) as ledger:
        subject.run(list(range(users)), ledger, np.random.default_rng([3, seed]))
    own, uniform = np.sum(lost, axis=0)
    return float(own / uniform)


def outsourced(seed: int, count: int, epsilon: float) -> float:
    """Of the rows that a modeller asks for, of so many uniform private ones."""
    f = Function((seed,), bumps=seed % 2 == 1)
    rng, (low, high) = np.random.default_rng([4, seed]), BOX.bounds.T
    rows = low + rng.random((count, 2)) * (high - low)
    asked: list[Array] = []

    def objective(row: Array, number: int) -> float:
        asked.append(row)
        return float(f(BOX.unit(row[None]))[0]) + rng.normal(scale=ERROR)

    subject = study(
        objective, BOX, users=count, epsilon=epsilon, trust="outsourced", queries=count // 10
    )
    with Ledger(subject.plan(), rng=np.random.default_rng([2, seed])) as ledger:
        subject.run(rows, ledger, np.random.default_rng([3, seed]))
    return share(f, np.array(asked))


def federated(seed: int, agents: int, common: float, *, talk: bool) -> float:
    """Of all evaluations of all agents; the objectives have a common part of that weight."""
    shared = Function((seed,), bumps=seed % 2 == 1)
    own = [Function((seed, n), bumps=True) for n in range(agents)]
    subject = FederatedStudy(space=BOX, users=agents, epsilon=1.0)
    rngs = np.random.default_rng([3, seed]).spawn(agents)
    errors = np.random.default_rng([1, seed])
    members = [subject.agent(n, rng) for n, rng in enumerate(rngs)]
    asked: list[list[Array]] = [[] for _ in members]
    ledger = Ledger(subject.plan(), rng=np.random.default_rng([2, seed]))
    server = subject.server(ledger)

    def value(n: int, X: Array) -> Array:
        return common * shared(X) + (1 - common) * own[n](X)

    for turn in range(subject.rounds + 1):
        for n, member in enumerate(members):
            for _ in range(subject.evaluations):
                question = member.ask()
                asked[n].append(question.point)
                seen = value(n, BOX.unit(question.point[None]))[0] + errors.normal(scale=ERROR)
                member.tell(question.number, seen)
        if talk and turn < subject.rounds:
            broadcast = server.round(turn, [member.report(turn) for member in members])
            for member in members:
                member.receive(broadcast)
    return float(
        np.mean([share(lambda X, n=n: value(n, X), np.array(asked[n])) for n in range(agents)])
    )


def interval(values: list[float]) -> str:
    """Mean and Student interval, in per cent."""
    mean, error = np.mean(values), np.std(values, ddof=1) / len(values) ** 0.5
    reach = student.ppf(0.975, len(values) - 1) * error
    return f"{100 * mean:.1f} [{100 * (mean - reach):.1f}, {100 * (mean + reach):.1f}]"


def table(functions: int, users: int, agents: int, first: int = 0) -> list[str]:
    """All rows; the seeds of the functions begin with ``first``."""
    seeds = range(first, first + functions)
    rows = ["| what | regret, % of random play | wanted |", "|---|---|---|"]
    for name, wanted, setting in (
        ("local, ε = 5", "30", {"trust": "local", "epsilon": 5.0}),
        ("local, ε = 1", "80", {"trust": "local", "epsilon": 1.0}),
        ("joint, ε = 1, δ = 0", "65", {"trust": "joint", "epsilon": 1.0}),
        ("local-joint, ε = 10, δ = 0", "", {"trust": "local-joint", "epsilon": 10.0}),
        ("local-joint, ε = 1, δ = 0", "60", {"trust": "local-joint", "epsilon": 1.0}),
    ):
        rows.append(shown(f"| {name} | {interval([played(s, users, **setting) for s in seeds])} "
                          f"| {wanted and '≤ ' + wanted} |"))  # fmt: skip
    for epsilon in (10.0, 1.0):
        found = interval([outsourced(s, users, epsilon) for s in seeds])
        rows.append(shown(f"| outsourced, ε = {epsilon:g}, δ = 1e-5 | {found} |  |"))
    for name, common in (("objectives 80 % alike", 0.8), ("unrelated objectives", 0.0)):
        alone = [federated(s, agents, common, talk=False) for s in seeds]
        joined = [federated(s, agents, common, talk=True) for s in seeds]
        gain = np.array(alone) - np.array(joined)
        errors = gain.mean() / (gain.std(ddof=1) / len(gain) ** 0.5)
        rows += [
            shown(f"| federated, {name}: no communication | {interval(alone)} | |"),
            shown(f"| federated, {name}: ε = 1, δ = 1e-5 | {interval(joined)} | |"),
            shown(f"| gain by communication: {errors:.1f} standard errors | {interval(list(gain))} "
                  f"| {'≥ 3 errors' if common else 'none is possible'} |"),
        ]  # fmt: skip
    return rows


def shuffled(functions: int, users: int, epsilon: float, first: int = 0) -> list[str]:
    """What a trusted shuffler is worth: every function, and the ratio of the means."""
    rows = [shown("| function | local | shuffle |"), shown("|---|---|---|")]
    found = []
    for seed in range(first, first + functions):
        pair = [played(seed, users, trust=trust, epsilon=epsilon) for trust in ("local", "shuffle")]
        found.append(pair)
        rows.append(shown(f"| {seed} | {100 * pair[0]:.1f} | {100 * pair[1]:.1f} |"))
    local, shuffle = np.array(found).T
    ratio = shuffle.mean() / local.mean()
    error = np.std(shuffle - ratio * local, ddof=1) / functions**0.5 / local.mean()
    rows.append(shown(f"| all | {interval(list(local))} | {interval(list(shuffle))} |"))
    return [*rows, shown(f"Ratio of the means: {ratio:.2f} ± {error:.2f}.")]


def shown(row: str) -> str:
    """The row, printed as soon as it is known."""
    print(row, flush=True)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--functions", type=int, default=20)
    parser.add_argument("--users", type=int, default=500)
    parser.add_argument("--agents", type=int, default=100)
    parser.add_argument("--tuned", action="store_true", help="the functions of the tuning instead")
    parser.add_argument("--shuffle", action="store_true", help="local against shuffle trust alone")
    parser.add_argument("--epsilon", type=float, default=1.0, help="of --shuffle and --options")
    parser.add_argument("--options", type=int, help="local-joint trust with so many of one's own")
    given = parser.parse_args()
    start, first = time.process_time(), FIRST_TUNED if given.tuned else 0
    if given.shuffle:
        shuffled(given.functions, given.users, given.epsilon, first)
    elif given.options:
        seeds = range(first, first + given.functions)
        own = [among_own(s, given.users, given.epsilon, given.options) for s in seeds]
        shown(f"local-joint, {given.options} options, ε = {given.epsilon:g}: {interval(own)}")
    else:
        table(given.functions, given.users, given.agents, first)
    print(f"{time.process_time() - start:.0f} s of processor time")


if __name__ == "__main__":
    main()
