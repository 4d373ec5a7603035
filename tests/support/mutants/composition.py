"""Mistakes in what is charged: how often, to whom, under which label, and in which ledger."""

from __future__ import annotations

import copy
import math

import numpy as np

from dpaudit import DiscreteLaplace, Gaussian, Laplace, Ledger, ReplaceOne
from dpaudit.mechanisms.continual import BinaryTree, ContinualGaussian
from tests.support.mutants.base import CITIES, Base, RunResult, central, dataclass, local, number

__all__ = ["RIGHT", "WRONG"]


@dataclass(frozen=True)
class TwiceInTwoGroups(Base):
    """The same total leaves under two labels that are declared as disjoint groups."""

    def declared(self):
        return [
            central(Laplace(1.0), 1, group="report", at="report"),
            central(Laplace(1.0), 1, group="dashboard", at="dashboard"),
        ]

    def load(self, source, rng):
        return rng.random(60)

    def run(self, data, ledger, rng):
        total = np.clip(np.nan_to_num(data), 0, 1).sum()
        one = ledger.release(Laplace(1.0), total, at="report")
        other = ledger.release(Laplace(1.0), total, at="dashboard")
        return RunResult({"report": one, "dashboard": other})


@dataclass(frozen=True)
class FreshNameEachRound(Base):
    """A user answers in three rounds under three names, and is charged once in each."""

    users: int = 15

    def noise(self):
        return Laplace(2.0, clip=(-1.0, 1.0))

    def declared(self):
        return [local(self.noise(), 2, ReplaceOne(), total=3 * self.users, at="answer")]

    def load(self, source, rng):
        return {f"u{n}": float(rng.uniform(-1, 1)) for n in range(self.users)}

    def run(self, data, ledger, rng):
        answers = [
            ledger.release(self.noise(), number(value), unit=f"{user}#{turn}", at="answer")
            for turn in range(3)
            for user, value in data.items()
        ]
        return RunResult({"mean": sum(answers) / len(answers)})


@dataclass(frozen=True)
class NameHoldsValue(Base):
    """The name under which a user is charged, and journalled, holds the rounded value."""

    users: int = 30

    def noise(self):
        return Laplace(2.0, clip=(-1.0, 1.0))

    def declared(self):
        return [local(self.noise(), 2, ReplaceOne(), total=self.users, at="answer")]

    def load(self, source, rng):
        return [(f"u{n}", float(rng.uniform(-1, 1))) for n in range(self.users)]

    def run(self, data, ledger, rng):
        answers = [
            ledger.release(self.noise(), number(x), unit=f"{u}:{number(x):.1f}", at="answer")
            for u, x in data
        ]
        return RunResult({"mean": sum(answers) / len(answers)})


@dataclass(frozen=True)
class LabelFromData(Base):
    """Which of two declared releases runs, and which is spent on zero, depends on the data."""

    def declared(self):
        return [central(Laplace(1.0), 1, at="dense"), central(Laplace(1.0), 1, at="sparse")]

    def load(self, source, rng):
        return [int(x) for x in rng.integers(0, 2, 100)]

    def run(self, data, ledger, rng):
        total = sum(min(max(number(x), 0.0), 1.0) for x in data)
        first, second = ("dense", "sparse") if total > len(data) / 2 else ("sparse", "dense")
        noisy = ledger.release(Laplace(1.0), total, at=first)
        ledger.release(Laplace(1.0), 0.0, at=second)
        return RunResult({"sum": noisy})


@dataclass(frozen=True)
class BranchOnOutlier(Base):
    """A refined release happens only if a row lies far outside; in the default data none does."""

    def declared(self):
        return [central(Laplace(1.0), 1, count=2, total=2, at="count")]

    def load(self, source, rng):
        return rng.normal(0, 1, 90)

    def run(self, data, ledger, rng):
        values = np.nan_to_num(data)
        first = ledger.release(Laplace(1.0), float((values > 0).sum()), at="count")
        inner = values if (np.abs(values) < 100).all() else values[:0]
        second = ledger.release(Laplace(1.0), float((inner > 0).sum()), at="count")
        return RunResult({"above": (first + second) / 2})


@dataclass(frozen=True)
class RoundsFromData(Base):
    """As many rounds as there are kinds of answers, at most six; the default data have six."""

    def declared(self):
        return [central(DiscreteLaplace(6.0), 1, count=6, at="round")]

    def load(self, source, rng):
        return [int(x) for x in rng.integers(0, 6, 80)]

    def run(self, data, ledger, rng):
        rounds = min(6, len(set(data)))
        noisy = [
            ledger.release(DiscreteLaplace(6.0), sum(x == n for x in data), at="round")
            for n in range(rounds)
        ]
        return RunResult({"counts": noisy})


@dataclass(frozen=True)
class StopsOnTrueError(Base):
    """A search stops once the true count is near the goal; what is left is spent on zeros."""

    rounds: int = 8

    def declared(self):
        return [central(Laplace(8.0), 1, count=self.rounds, at="below")]

    def load(self, source, rng):
        return rng.uniform(0, 100, 101)

    def run(self, data, ledger, rng):
        values, low, high = np.nan_to_num(data), 0.0, 100.0
        done = False
        for _ in range(self.rounds):
            middle = (low + high) / 2
            below = float((values < middle).sum())
            done = done or abs(below - len(values) / 2) < 2
            noisy = ledger.release(Laplace(8.0), 0.0 if done else below, at="below")
            if not done:
                low, high = (middle, high) if noisy < 50 else (low, middle)
        return RunResult({"median": (low + high) / 2})


@dataclass(frozen=True)
class BestOfEight(Base):
    """Eight paid answers; the one that is nearest to the truth is published."""

    def declared(self):
        return [central(Laplace(8.0), 1, count=8, at="count")]

    def load(self, source, rng):
        return [bool(x) for x in rng.integers(0, 2, 50)]

    def run(self, data, ledger, rng):
        true = float(sum(map(bool, data)))
        tries = [ledger.release(Laplace(8.0), true, at="count") for _ in range(8)]
        return RunResult({"count": min(tries, key=lambda noisy: abs(noisy - true))})


@dataclass(frozen=True)
class RetriesBesideTheLedger(Base):
    """Draws again from the bare mechanism until the answer is plausible, then pays for another."""

    def declared(self):
        return [central(Laplace(2.0), 1, at="count")]

    def load(self, source, rng):
        return [{"smoker": bool(x)} for x in rng.integers(0, 2, 60)]

    def run(self, data, ledger, rng):
        true = float(sum(bool(row["smoker"]) for row in data))
        noisy = ledger.release(Laplace(2.0), true, at="count")
        while not 0 <= noisy <= len(data):
            noisy = Laplace(2.0).release(true, rng)
        return RunResult({"count": noisy})


@dataclass(frozen=True)
class SecondLedger(Base):
    """Opens a ledger of its own for a second answer, and publishes the mean of both."""

    def declared(self):
        return [central(Laplace(1.0), 1, at="sum")]

    def load(self, source, rng):
        return rng.random(60)

    def run(self, data, ledger, rng):
        total = np.clip(np.nan_to_num(data), 0, 1).sum()
        with Ledger(self.plan(), rng=rng) as other:
            second = other.release(Laplace(1.0), total, at="sum")
        return RunResult({"sum": (ledger.release(Laplace(1.0), total, at="sum") + second) / 2})


@dataclass(frozen=True)
class MechanismWithoutLedger(Base):
    """A count by city is drawn from the mechanism itself, as post-processing of the total."""

    def declared(self):
        return [central(Laplace(1.0), 1, at="total")]

    def load(self, source, rng):
        return [CITIES[int(n)] for n in rng.integers(0, 4, 60)]

    def run(self, data, ledger, rng):
        total = ledger.release(Laplace(1.0), float(len(data)), at="total")
        shares = [Laplace(1.0).release(float(data.count(city)), rng) for city in CITIES]
        return RunResult({"total": total, "shares": [share / 60 for share in shares]})


@dataclass(frozen=True)
class NumpyNoiseBeside(Base):
    """The mean gets its own numpy noise, and never meets the ledger."""

    def declared(self):
        return [central(Laplace(1.0), 1, at="count")]

    def load(self, source, rng):
        return rng.uniform(0, 1, 100)

    def run(self, data, ledger, rng):
        values = np.clip(np.nan_to_num(data), 0, 1)
        count = ledger.release(Laplace(1.0), float(len(values)), at="count")
        mean = values.sum() / 100 + np.random.default_rng().laplace(scale=0.01)
        return RunResult({"count": count, "mean": float(mean)})


@dataclass(frozen=True)
class NoiseSubtracted(Base):
    """Copies the generator of the ledger's noise and takes most of the noise off again."""

    def declared(self):
        return [central(Laplace(50.0), 1, at="sum")]

    def load(self, source, rng):
        return rng.random(60)

    def run(self, data, ledger, rng):
        total = np.clip(np.nan_to_num(data), 0, 1).sum()
        twin = copy.deepcopy(getattr(ledger.noise, "_rng", None))
        noisy = ledger.release(Laplace(50.0), total, at="sum")
        if twin is not None:
            noisy -= 0.9 * float(twin.laplace(scale=50.0))
        return RunResult({"sum": noisy})


@dataclass(frozen=True)
class TakesPartMoreOften(Base):
    """Declared is one participation; a user who comes back is added at each visit, unnamed."""

    days: int = 16

    def noise(self):
        return ContinualGaussian(sigma=4.0, factorization=BinaryTree(self.days), participations=1)

    def declared(self):
        return [central(self.noise(), 1, unit="user", at="days")]

    def load(self, source, rng):
        return [{"user": f"u{n}", "day": int(rng.integers(self.days))} for n in range(40)]

    def run(self, data, ledger, rng):
        stream = ledger.stream(self.noise(), (), at="days")
        sums = []
        for day in range(self.days):
            users = {row["user"] for row in data if number(row["day"], -1) == day}
            sums.append(float(stream.add(float(len(users)))))
        return RunResult({"total": sums[-1]}, {"days": sums})


@dataclass(frozen=True)
class StreamUnbounded(Base):
    """The steps of a stream are sums of amounts that nothing bounds."""

    days: int = 8

    def noise(self):
        return ContinualGaussian(sigma=60.0, factorization=BinaryTree(self.days), participations=1)

    def declared(self):
        return [central(self.noise(), 10, at="days")]

    def load(self, source, rng):
        return rng.uniform(0, 10, (self.days, 6))

    def run(self, data, ledger, rng):
        stream = ledger.stream(self.noise(), (), at="days")
        sums = [float(stream.add(float(np.nansum(day)))) for day in data[: self.days]]
        return RunResult({"days": sums})


@dataclass(frozen=True)
class TreeOneLevelShort(Base):
    """A hand-made tree over 16 days has five levels; the sensitivity counts four."""

    days: int = 16

    def declared(self):
        return [central(Laplace(4.0), math.log2(self.days), at="tree")]

    def load(self, source, rng):
        return [{"day": int(rng.integers(self.days)), "kind": "visit"} for _ in range(50)]

    def run(self, data, ledger, rng):
        nodes = np.bincount(
            [int(number(row["day"])) % self.days for row in data], minlength=self.days
        ).astype(float)
        levels = [nodes]
        while len(levels[-1]) > 1:
            levels.append(levels[-1].reshape(-1, 2).sum(axis=1))
        noisy = ledger.release(Laplace(4.0), np.concatenate(levels), at="tree")
        return RunResult({"tree": noisy.tolist()})


class _Draw:
    sampler = "numpy by hand"

    def __init__(self, value, scale):
        self.value, self.scale, self.noisy = value, scale, None

    def draw(self):
        self.noisy = self.value + np.random.default_rng().normal(0, self.scale)


@dataclass(frozen=True)
class ExternalDrawTooQuiet(Base):
    """Another library draws the noise, with a tenth of the declared σ."""

    def declared(self):
        return [central(Gaussian(5.0), 1, at="sum")]

    def load(self, source, rng):
        return rng.random(60)

    def run(self, data, ledger, rng):
        external = _Draw(np.clip(np.nan_to_num(data), 0, 1).sum(), 0.5)
        ledger.observe(Gaussian(5.0), external, at="sum")
        return RunResult({"sum": float(external.noisy)})


@dataclass(frozen=True)
class RunningTotals(Base):
    """Each week is declared a disjoint group, but its release is the total of all weeks so far."""

    weeks: int = 4

    def declared(self):
        return [
            central(Laplace(1.0), 1, group=f"week {n}", at=f"week {n}") for n in range(self.weeks)
        ]

    def load(self, source, rng):
        return [
            {"week": int(rng.integers(self.weeks)), "score": float(rng.random())} for _ in range(60)
        ]

    def run(self, data, ledger, rng):
        noisy, total = [], 0.0
        for n in range(self.weeks):
            rows = [row for row in data if number(row["week"], -1) == n]
            total += sum(min(max(number(row["score"]), 0.0), 1.0) for row in rows)
            noisy.append(ledger.release(Laplace(1.0), total, at=f"week {n}"))
        return RunResult({"totals": noisy})


WRONG = (
    TwiceInTwoGroups,
    FreshNameEachRound,
    NameHoldsValue,
    LabelFromData,
    BranchOnOutlier,
    RoundsFromData,
    StopsOnTrueError,
    BestOfEight,
    RetriesBesideTheLedger,
    SecondLedger,
    MechanismWithoutLedger,
    NumpyNoiseBeside,
    NoiseSubtracted,
    TakesPartMoreOften,
    StreamUnbounded,
    TreeOneLevelShort,
    ExternalDrawTooQuiet,
    RunningTotals,
)
RIGHT = ()
