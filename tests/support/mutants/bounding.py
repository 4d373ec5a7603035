"""Mistakes in how one unit's part is bounded."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from dpaudit import Contribution, Gaussian, Laplace, ReplaceOne
from tests.support.mutants.base import CITIES, Base, RunResult, central, dataclass, number, replace

__all__ = ["RIGHT", "WRONG"]


def purchases(rng, users=40, rows=1, column="user"):
    """A list of dicts, ``rows`` for each user."""
    return [
        {column: f"u{n}", "amount": round(float(rng.gamma(2, 8)), 2), "day": int(rng.integers(7))}
        for n in range(users)
        for _ in range(rows)
    ]


@dataclass(frozen=True)
class ClipDropped(Base):
    """The sum is declared with amounts up to 100, and nothing clips them."""

    def declared(self):
        return [central(Laplace(100.0), 100, at="sum")]

    def load(self, source, rng):
        return [float(x) for x in rng.uniform(0, 100, 80)]

    def run(self, data, ledger, rng):
        return RunResult({"sum": ledger.release(Laplace(100.0), sum(data), at="sum")})


@dataclass(frozen=True)
class MeanClipped(Base):
    """The mean is clipped to [0, 100], where every value should be."""

    rows: int = 100

    def noise(self):
        return Laplace(100 / self.rows)

    def declared(self):
        return [central(self.noise(), 100 / self.rows, relation=ReplaceOne(), at="mean")]

    def load(self, source, rng):
        return rng.uniform(0, 100, self.rows)

    def run(self, data, ledger, rng):
        mean = np.clip(np.nan_to_num(np.sum(data) / self.rows), 0, 100)
        return RunResult({"mean": ledger.release(self.noise(), mean, at="mean")})


@dataclass(frozen=True)
class NanWipesTheSum(Base):
    """A NaN passes min and max, makes the sum NaN, and that becomes 0."""

    def declared(self):
        return [central(Laplace(10.0), 10, at="sum")]

    def load(self, source, rng):
        return rng.uniform(0, 10, 90)

    def run(self, data, ledger, rng):
        total = float(np.nan_to_num(np.clip(data, 0, 10).sum()))
        return RunResult({"sum": ledger.release(Laplace(10.0), total, at="sum")})


@dataclass(frozen=True)
class CappedPerRow(Base):
    """Every purchase is capped at 50, but a user may make many of them."""

    def declared(self):
        return [central(Laplace(50.0), 50, unit="user", at="spent")]

    def load(self, source, rng):
        return purchases(rng, 25, 3)

    def run(self, data, ledger, rng):
        total = sum(min(max(number(row["amount"]), 0.0), 50.0) for row in data)
        return RunResult({"spent": ledger.release(Laplace(50.0), total, at="spent")})


@dataclass(frozen=True)
class CappedPerDay(Base):
    """A user's day is capped, not the user; in the default data each has a single day."""

    def declared(self):
        return [central(Laplace(50.0), 50, unit="user", at="spent")]

    def load(self, source, rng):
        return purchases(rng, 40)

    def run(self, data, ledger, rng):
        spent = defaultdict(float)
        for row in data:
            spent[row["user"], row["day"]] += max(number(row["amount"]), 0.0)
        total = sum(min(each, 50.0) for each in spent.values())
        return RunResult({"spent": ledger.release(Laplace(50.0), total, at="spent")})


@dataclass(frozen=True)
class AccountsForUsers(Base):
    """Bounded for each account, while the protected user may hold several."""

    def declared(self):
        return [self.invocation()]

    def invocation(self):
        made = central(Laplace(50.0), 50, unit="user", at="spent")
        return replace(made, contribution=Contribution(50.0))

    def load(self, source, rng):
        rows = purchases(rng, 40)
        return [{"account": f"a{n}", **row} for n, row in enumerate(rows)]

    def run(self, data, ledger, rng):
        amounts = np.array([number(row["amount"]) for row in data])
        accounts = [str(row["account"]) for row in data]
        return RunResult({"spent": ledger.sum(amounts, units=accounts, at="spent")})


@dataclass(frozen=True)
class UnitColumnIgnored(Base):
    """The ledger bounds the rows, because nobody told it whose they are."""

    def declared(self):
        made = central(Laplace(5.0), 5, unit="patient", at="visits")
        return [replace(made, contribution=Contribution(5.0))]

    def load(self, source, rng):
        return [{"patient": f"p{n % 30}", "hours": float(rng.uniform(0, 5))} for n in range(90)]

    def run(self, data, ledger, rng):
        hours = np.array([number(row["hours"]) for row in data])
        return RunResult({"hours": ledger.sum(hours, at="visits")})


@dataclass(frozen=True)
class WrongUnitColumn(Base):
    """Bounded for each (user, city); a user who travels is bounded once in each city."""

    def declared(self):
        made = central(Laplace(20.0), 20, unit="user", at="spent")
        return [replace(made, contribution=Contribution(20.0))]

    def load(self, source, rng):
        rows = purchases(rng, 40)
        return [{**row, "city": CITIES[n % 4]} for n, row in enumerate(rows)]

    def run(self, data, ledger, rng):
        keys = [f"{row['user']}|{row['city']}" for row in data]
        amounts = np.array([number(row["amount"]) for row in data])
        return RunResult({"spent": ledger.sum(amounts, units=keys, at="spent")})


@dataclass(frozen=True)
class ClipFromQuantile(Base):
    """Scales by the 95 % quantile of the data before the noise, and by it again afterwards."""

    def declared(self):
        return [central(Laplace(1.0), 1, at="sum")]

    def load(self, source, rng):
        return rng.lognormal(3, 0.6, 120)

    def run(self, data, ledger, rng):
        top = float(np.nanquantile(data, 0.95)) if len(data) else 1.0
        if not np.isfinite(top) or top <= 0:
            top = 1.0
        unit = np.clip(np.nan_to_num(data) / top, 0, 1).sum()
        return RunResult({"sum": top * ledger.release(Laplace(1.0), unit, at="sum")})


@dataclass(frozen=True)
class ClippedPerCoordinate(Base):
    """Each of eight coordinates is clipped to ±1; declared is an L2 norm of 1."""

    def declared(self):
        return [central(Gaussian(3.0), 1, at="embedding")]

    def load(self, source, rng):
        return rng.normal(0, 0.3, (60, 8)) * (rng.random((60, 8)) < 0.2)

    def run(self, data, ledger, rng):
        total = np.clip(np.nan_to_num(data), -1, 1).sum(axis=0)
        noisy = ledger.release(Gaussian(3.0), total, at="embedding")
        return RunResult({"embedding": noisy.tolist()})


@dataclass(frozen=True)
class CentredBeforeClip(Base):
    """Values are centred at the true mean before they are clipped."""

    def declared(self):
        return [central(Laplace(1.0), 1, at="cubes")]

    def load(self, source, rng):
        return rng.normal(5, 1, 100)

    def run(self, data, ledger, rng):
        clean = np.nan_to_num(np.asarray(data, dtype=float), posinf=0, neginf=0)
        centre = clean.mean() if clean.size else 0.0
        total = np.clip((clean - centre) ** 3, -1, 1).sum()
        return RunResult({"skew": ledger.release(Laplace(1.0), total, at="cubes")})


@dataclass(frozen=True)
class ManyInterests(Base):
    """A histogram of sensitivity 1, of users who may have more than one interest."""

    def declared(self):
        return [central(Laplace(1.0), 1, unit="user", at="interests")]

    def load(self, source, rng):
        return {f"u{n}": [CITIES[int(rng.integers(4))]] for n in range(50)}

    def run(self, data, ledger, rng):
        counts = [sum(city in wishes for wishes in data.values()) for city in CITIES]
        noisy = ledger.release(Laplace(1.0), np.array(counts, dtype=float), at="interests")
        return RunResult(dict(zip(CITIES, noisy.tolist(), strict=True)))


@dataclass(frozen=True)
class SameTwiceInADict(Base):
    """A dict of visits for each user: the mean visit is bounded, then weighted by their number."""

    def declared(self):
        return [central(Laplace(10.0), 10, unit="user", at="minutes")]

    def load(self, source, rng):
        return {f"u{n}": [float(rng.uniform(0, 10))] for n in range(60)}

    def run(self, data, ledger, rng):
        total = 0.0
        for visits in data.values():
            kept = [number(visit) for visit in visits]
            if kept:
                mean = min(max(sum(kept) / len(kept), 0.0), 10.0)
                total += mean * len(kept)
        return RunResult({"minutes": ledger.release(Laplace(10.0), total, at="minutes")})


@dataclass(frozen=True)
class BatchGradientClipped(Base):
    """The gradient of the whole batch is clipped, where that of each example should be."""

    rounds: int = 3

    def declared(self):
        return [central(Gaussian(4.0), 0.1, count=self.rounds, at="gradient")]

    def load(self, source, rng):
        features = rng.normal(size=(64, 3))
        return features, features @ np.array([1.0, -1.0, 0.5]) + rng.normal(0, 0.1, 64)

    def run(self, data, ledger, rng):
        features, targets = (np.nan_to_num(np.asarray(each, dtype=float)) for each in data)
        features = np.clip(features, -1e6, 1e6)
        weights = np.zeros(3)
        for _ in range(self.rounds):
            residual = np.clip(features @ weights - targets, -1e6, 1e6)
            gradient = features.T @ residual
            gradient /= max(1.0, np.linalg.norm(gradient))
            weights -= 0.1 * ledger.release(Gaussian(4.0), gradient, at="gradient")
        return RunResult({"weights": weights.tolist()})


@dataclass(frozen=True)
class StandardisedFeatures(Base):
    """Features are standardised by their own mean and deviation, then clipped and summed."""

    def declared(self):
        return [central(Gaussian(5.0), 1, at="moments")]

    def load(self, source, rng):
        features = rng.normal(10, 4, (70, 3))
        return features, features[:, 0] > 10

    def run(self, data, ledger, rng):
        features, labels = data
        features = np.clip(np.nan_to_num(np.asarray(features, dtype=float)), -1e9, 1e9)
        scaled = (features - features.mean(axis=0)) / (features.std(axis=0) + 1e-9)
        norms = np.linalg.norm(scaled, axis=1, keepdims=True)
        signs = np.where(np.asarray(labels) > 0, 1.0, -1.0)[:, None]
        total = (signs * scaled / np.maximum(1.0, norms)).sum(axis=0)
        return RunResult({"m": ledger.release(Gaussian(5.0), total, at="moments").tolist()})


WRONG = (
    ClipDropped,
    MeanClipped,
    NanWipesTheSum,
    CappedPerRow,
    CappedPerDay,
    AccountsForUsers,
    UnitColumnIgnored,
    WrongUnitColumn,
    ClipFromQuantile,
    ClippedPerCoordinate,
    CentredBeforeClip,
    ManyInterests,
    SameTwiceInADict,
    BatchGradientClipped,
    StandardisedFeatures,
)
RIGHT = ()
