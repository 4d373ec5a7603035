"""Subjects that keep what they declare, whatever data arrive."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from dpaudit import (
    Contribution,
    DiscreteLaplace,
    Gaussian,
    Group,
    Invocation,
    Laplace,
    Membership,
    PoissonSampling,
    RandomizedResponse,
    ReplaceOne,
    ZeroOut,
)
from dpaudit.mechanisms import ExponentialMechanism
from dpaudit.mechanisms.continual import BinaryTree, ContinualGaussian, ContinualLaplace
from tests.support.mutants.base import CITIES, Base, RunResult, central, dataclass, local, number
from tests.support.mutants.base import replace as changed

__all__ = ["RIGHT", "WRONG"]


def bounded(mechanism, bound, at, *, rows=None, sensitivity=None, **facts) -> Invocation:
    """A query that the ledger bounds."""
    made = central(mechanism, bound if sensitivity is None else sensitivity, at=at, **facts)
    return changed(made, contribution=Contribution(bound, rows))


def within(value, low, high):
    """A number, clipped."""
    return min(max(number(value), low), high)


@dataclass(frozen=True)
class LedgerSums(Base):
    """Sum and count of rows of users, bounded by the ledger; their quotient is post-processing."""

    def declared(self):
        return [
            bounded(Laplace(40.0), 20, "sum", unit="user"),
            bounded(Laplace(6.0), 3, "count", rows=3, unit="user"),
        ]

    def load(self, source, rng):
        return [{"user": f"u{n % 30}", "amount": float(rng.gamma(2, 4))} for n in range(70)]

    def run(self, data, ledger, rng):
        users = [repr(row.get("user")) for row in data]
        amounts = np.array([number(row.get("amount")) for row in data])
        total = ledger.sum(amounts, units=users, at="sum")
        count = ledger.count(units=users, at="count")
        return RunResult({"sum": total, "mean": total / max(1.0, count)})


@dataclass(frozen=True)
class LedgerHistogram(Base):
    """A histogram over public keys; other keys are left out."""

    def declared(self):
        return [bounded(DiscreteLaplace(1.0), 1, "cities")]

    def load(self, source, rng):
        return [CITIES[int(n)] for n in rng.integers(0, 4, 90)]

    def run(self, data, ledger, rng):
        noisy = ledger.histogram([str(x) for x in data], CITIES, at="cities")
        return RunResult({"counts": dict(zip(CITIES, map(float, noisy), strict=True))})


@dataclass(frozen=True)
class LedgerQuantile(Base):
    """The exponential mechanism over public candidates."""

    def declared(self):
        return [bounded(ExponentialMechanism(1.0), 1, "median", rows=1)]

    def load(self, source, rng):
        return rng.normal(40, 12, 101)

    def run(self, data, ledger, rng):
        return RunResult({"median": ledger.quantile(data, 0.5, range(0, 101, 5), at="median")})


@dataclass(frozen=True)
class LocalYesNo(Base):
    """Every user answers once by randomised response; anything but yes is no."""

    users: int = 40

    def noise(self):
        return RandomizedResponse.calibrated(epsilon=1.0)

    def declared(self):
        return [local(self.noise(), 1, ReplaceOne(), total=self.users, at="answer")]

    def load(self, source, rng):
        return {f"u{n}": ("no", "yes")[int(rng.integers(2))] for n in range(self.users)}

    def run(self, data, ledger, rng):
        yes = sum(
            ledger.release(self.noise(), int(data.get(f"u{n}") == "yes"), unit=f"u{n}", at="answer")
            for n in range(self.users)
        )
        return RunResult({"yes": yes})


@dataclass(frozen=True)
class LocalNumbers(Base):
    """Every user adds Laplace noise to a number that the mechanism clips."""

    users: int = 50

    def noise(self):
        return Laplace(2.0, clip=(0.0, 1.0))

    def declared(self):
        return [local(self.noise(), 1, ReplaceOne(), total=self.users, at="value")]

    def load(self, source, rng):
        return [float(x) for x in rng.random(self.users)]

    def run(self, data, ledger, rng):
        noisy = ledger.release_each(
            self.noise(),
            [number(value) for value in data],
            units=[f"u{n}" for n in range(len(data))],
            at="value",
        )
        return RunResult({"mean": sum(noisy) / self.users})


@dataclass(frozen=True)
class LocalRounds(Base):
    """Users answer adaptively in two rounds; the second question depends on releases alone."""

    users: int = 20

    def noise(self):
        return RandomizedResponse.calibrated(epsilon=0.5)

    def declared(self):
        total = 2 * self.users
        return [local(self.noise(), 1, ReplaceOne(), count=2, total=total, at="above")]

    def load(self, source, rng):
        return [(f"u{n}", float(rng.uniform(0, 100))) for n in range(self.users)]

    def run(self, data, ledger, rng):
        threshold, thresholds = 50.0, []
        for step in (25.0, 12.5):
            above = sum(
                ledger.release(self.noise(), int(number(value) > threshold), unit=user, at="above")
                for user, value in data
            )
            threshold += step if above > self.users / 2 else -step
            thresholds.append(threshold)
        return RunResult({"median": threshold}, {"thresholds": thresholds})


@dataclass(frozen=True)
class VectorSum(Base):
    """Rows are scaled down to norm 1 by hand, and NaN counts as 0."""

    def declared(self):
        return [central(Gaussian(2.0), 1, at="vector")]

    def load(self, source, rng):
        return rng.normal(0, 0.5, (60, 4))

    def run(self, data, ledger, rng):
        rows = np.clip(np.nan_to_num(np.asarray(data, dtype=float)), -1e100, 1e100)
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        total = (rows / np.maximum(1.0, norms * (1 + 1e-9))).sum(axis=0)
        noisy = ledger.release(Gaussian(2.0), total, at="vector")
        return RunResult({"vector": noisy.tolist()})


@dataclass(frozen=True)
class LedgerVectors(Base):
    """The same with the ledger's own bound, under replace-one, for clients by name."""

    def declared(self):
        made = bounded(
            Gaussian(3.0), 1, "model", sensitivity=2, unit="client", relation=ReplaceOne()
        )
        return [made]

    def load(self, source, rng):
        return {f"c{n}": rng.normal(0, 1, 3) for n in range(25)}

    def run(self, data, ledger, rng):
        rows = np.zeros((len(data), 3))
        for place, value in enumerate(data.values()):
            own = np.ravel(np.asarray(value, dtype=float))[:3]
            rows[place, : own.size] = own
        noisy = ledger.sum(rows, at="model")
        return RunResult({"model": noisy.tolist()}, owner=RunResult({"true": rows.sum(0).tolist()}))


@dataclass(frozen=True)
class NoisySearch(Base):
    """A binary search that branches on releases, in a public number of rounds."""

    rounds: int = 6

    def declared(self):
        return [central(Laplace(6.0), 1, count=self.rounds, at="balance")]

    def load(self, source, rng):
        return rng.uniform(0, 100, 120).tolist()

    def run(self, data, ledger, rng):
        values, low, high = [number(x) for x in data], 0.0, 100.0
        for _ in range(self.rounds):
            middle = (low + high) / 2
            balance = sum(1 if x < middle else -1 for x in values)
            noisy = ledger.release(Laplace(6.0), float(balance), at="balance")
            low, high = (low, middle) if noisy > 0 else (middle, high)
        return RunResult({"median": (low + high) / 2})


@dataclass(frozen=True)
class StopsOnRelease(Base):
    """Stops early on a noisy answer, and spends what is left on zeros."""

    rounds: int = 5

    def declared(self):
        return [central(Laplace(5.0), 1, count=self.rounds, at="hits")]

    def load(self, source, rng):
        return [{"score": float(rng.uniform(0, 10)), "note": "x"} for _ in range(60)]

    def run(self, data, ledger, rng):
        scores = [number(row.get("score")) for row in data]
        level, found = 8.0, None
        for _ in range(self.rounds):
            hits = 0 if found is not None else sum(score > level for score in scores)
            noisy = ledger.release(Laplace(5.0), float(hits), at="hits")
            if found is None and noisy > 20:
                found = level
            level -= 2.0
        return RunResult({"level": found})


@dataclass(frozen=True)
class DailyStream(Base):
    """A stream of daily totals; a user counts on one day alone."""

    days: int = 8

    def noise(self):
        return ContinualLaplace(scale=4.0, factorization=BinaryTree(self.days), participations=1)

    def declared(self):
        return [central(self.noise(), 1, unit="user", at="days")]

    def load(self, source, rng):
        return {f"u{n}": (int(rng.integers(self.days)), float(rng.random())) for n in range(40)}

    def run(self, data, ledger, rng):
        totals = [0.0] * self.days
        for day, amount in data.values():
            if number(day, -1) in range(self.days):
                totals[int(number(day))] += within(amount, 0, 1)
        stream = ledger.stream(self.noise(), (), at="days")
        sums = [float(stream.add(total)) for total in totals]
        return RunResult({"total": sums[-1]}, {"days": sums})


@dataclass(frozen=True)
class NamedStream(Base):
    """Each step of a stream belongs to one named client, in a public order."""

    clients: int = 12

    def noise(self):
        tree = BinaryTree(self.clients)
        return ContinualGaussian(sigma=3.0, factorization=tree, participations=1)

    def declared(self):
        return [central(self.noise(), 1, unit="client", relation=ZeroOut(), at="updates")]

    def load(self, source, rng):
        return rng.normal(0, 0.5, (self.clients, 2))

    def run(self, data, ledger, rng):
        stream = ledger.stream(self.noise(), (2,), at="updates")
        for n in range(self.clients):
            own = np.array([number(x) for x in data[n]]) if n < len(data) else np.zeros(2)
            own = np.clip(own, -1e100, 1e100)
            own = own / max(1.0, float(np.linalg.norm(own)) * (1 + 1e-9))
            last = stream.add(own, unit=f"client {n}")
        return RunResult({"model": last.tolist()})


@dataclass(frozen=True)
class WardsByValue(Base):
    """Groups by the row's own ward, declared so, under replace-one."""

    def declared(self):
        return [
            central(
                Laplace(1.0), 1, relation=ReplaceOne(), at=city, group=Group(city, Membership.VALUE)
            )
            for city in CITIES
        ]

    def load(self, source, rng):
        return [{"ward": CITIES[n % 4], "score": float(rng.random())} for n in range(60)]

    def run(self, data, ledger, rng):
        totals = dict.fromkeys(CITIES, 0.0)
        for row in data:
            if row.get("ward") in CITIES:
                totals[row["ward"]] += within(row.get("score"), 0, 1)
        noisy = {c: ledger.release(Laplace(1.0), totals[c], at=c) for c in CITIES}
        return RunResult(noisy)


@dataclass(frozen=True)
class BlocksByPosition(Base):
    """Disjoint blocks of rows by position, under replace-one."""

    blocks: int = 4
    width: int = 15

    def declared(self):
        return [
            central(Laplace(1.0), 1, relation=ReplaceOne(), group=f"b{n}", at=f"b{n}")
            for n in range(self.blocks)
        ]

    def load(self, source, rng):
        return rng.random(self.blocks * self.width)

    def run(self, data, ledger, rng):
        values = np.clip(np.nan_to_num(data), 0, 1)
        noisy = [
            ledger.release(
                Laplace(1.0), values[n * self.width : (n + 1) * self.width].sum(), at=f"b{n}"
            )
            for n in range(self.blocks)
        ]
        return RunResult({"blocks": noisy})


@dataclass(frozen=True)
class PoissonRounds(Base):
    """Fresh Poisson samples, one coin for each row."""

    rounds: int = 4

    def declared(self):
        sampling = PoissonSampling(0.2)
        return [central(Gaussian(2.0), 1, count=self.rounds, sampling=sampling, at="sum")]

    def load(self, source, rng):
        return rng.random(80)

    def run(self, data, ledger, rng):
        values = np.clip(np.nan_to_num(data), 0, 1)
        noisy = []
        for _ in range(self.rounds):
            chosen = rng.random(len(values)) < 0.2
            noisy.append(ledger.release(Gaussian(2.0), values[chosen].sum(), at="sum"))
        return RunResult({"mean": float(np.mean(noisy)) / 16})


@dataclass(frozen=True)
class UsersBoundedByHand(Base):
    """The total of each user, over all of the rows, is clipped."""

    def declared(self):
        return [central(Laplace(50.0), 50, unit="user", at="spent")]

    def load(self, source, rng):
        return [
            {"user": f"u{n % 20}", "amount": float(rng.gamma(2, 8)), "day": n % 7}
            for n in range(50)
        ]

    def run(self, data, ledger, rng):
        spent = defaultdict(float)
        for row in data:
            spent[repr(row.get("user"))] += within(row.get("amount"), 0, 1e6)
        total = sum(sorted(within(each, 0, 50) for each in spent.values()))
        return RunResult({"spent": ledger.release(Laplace(50.0), total, at="spent")})


@dataclass(frozen=True)
class PrivateRegression(Base):
    """Gradient descent on (X, y) with the gradient of each example scaled down."""

    rounds: int = 4

    def declared(self):
        return [central(Gaussian(4.0), 1, count=self.rounds, at="gradient")]

    def load(self, source, rng):
        features = rng.normal(size=(50, 3))
        return features, features @ np.array([1.0, -1.0, 0.5])

    def run(self, data, ledger, rng):
        features, targets = (
            np.clip(np.nan_to_num(np.asarray(each, dtype=float)), -1e50, 1e50) for each in data
        )
        weights = rng.normal(0, 0.01, 3)
        for _ in range(self.rounds):
            residual = np.clip(features @ weights - targets, -1e50, 1e50)
            each = residual[:, None] * features
            norms = np.linalg.norm(each, axis=1, keepdims=True)
            total = (each / np.maximum(1.0, norms * (1 + 1e-9))).sum(axis=0)
            weights = weights - 0.02 * ledger.release(Gaussian(4.0), total, at="gradient")
        return RunResult({"weights": weights.tolist()})


@dataclass(frozen=True)
class NoisyChoice(Base):
    """The exponential mechanism over public causes, with votes of at most one for each user."""

    def declared(self):
        return [central(ExponentialMechanism(1.0), 1, unit="user", at="cause")]

    def load(self, source, rng):
        return {f"u{n}": CITIES[int(rng.integers(4))] for n in range(50)}

    def run(self, data, ledger, rng):
        votes = [float(sum(str(vote) == city for vote in data.values())) for city in CITIES]
        chosen = ledger.release(ExponentialMechanism(1.0), np.array(votes), at="cause")
        return RunResult({"cause": CITIES[int(chosen)]})


@dataclass(frozen=True)
class RecordArray(Base):
    """A structured array: a noisy count of those over a public age, and public random numbers."""

    def declared(self):
        return [central(DiscreteLaplace(2.0), 1, at="old")]

    def load(self, source, rng):
        rows = [(int(rng.integers(18, 90)), float(rng.random())) for _ in range(60)]
        return np.array(rows, dtype=[("age", "i8"), ("score", "f8")])

    def run(self, data, ledger, rng):
        old = int((data["age"] >= 65).sum())
        noisy = ledger.release(DiscreteLaplace(2.0), old, at="old")
        return RunResult({"old": noisy, "public": int(rng.integers(1000))})


@dataclass(frozen=True)
class FarLessThanDeclared(Base):
    """Declares much more than it does: a count of sensitivity 1 with that of 10."""

    def declared(self):
        return [central(Laplace(10.0), 10, at="count")]

    def load(self, source, rng):
        return [("a", 1), ("b", 2), ("c", 3)] * 15

    def run(self, data, ledger, rng):
        count = sum(1 for name, _ in data if name == "a")
        return RunResult({"count": ledger.release(Laplace(10.0), float(count), at="count")})


WRONG = ()
RIGHT = (
    LedgerSums,
    LedgerHistogram,
    LedgerQuantile,
    LocalYesNo,
    LocalNumbers,
    LocalRounds,
    VectorSum,
    LedgerVectors,
    NoisySearch,
    StopsOnRelease,
    DailyStream,
    NamedStream,
    WardsByValue,
    BlocksByPosition,
    PoissonRounds,
    UsersBoundedByHand,
    PrivateRegression,
    NoisyChoice,
    RecordArray,
    FarLessThanDeclared,
)
