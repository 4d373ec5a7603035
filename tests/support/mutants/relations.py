"""Mistakes about neighbours, groups, trust and units."""

from __future__ import annotations

import numpy as np

from dpaudit import (
    Gaussian,
    Laplace,
    PoissonSampling,
    RandomizedResponse,
    ReplaceOne,
)
from tests.support.mutants.base import CITIES, Base, RunResult, central, dataclass, local, number

__all__ = ["RIGHT", "WRONG"]


@dataclass(frozen=True)
class DividedByN(Base):
    """Add-remove is declared, and the noisy sum is divided by the true number of rows."""

    def declared(self):
        return [central(Laplace(1.0), 1, at="sum")]

    def load(self, source, rng):
        return rng.random(150)

    def run(self, data, ledger, rng):
        total = np.clip(np.nan_to_num(data), 0, 1).sum()
        noisy = ledger.release(Laplace(1.0), total, at="sum")
        return RunResult({"mean": noisy / max(1, len(data))})


@dataclass(frozen=True)
class ReplacedAsRemoved(Base):
    """Replace-one is declared, with the sensitivity of add-remove: half of what is needed."""

    def declared(self):
        return [central(Laplace(1.0), 1, relation=ReplaceOne(), at="votes")]

    def load(self, source, rng):
        return [int(x) for x in rng.choice([-1, 1], 80)]

    def run(self, data, ledger, rng):
        total = sum(max(-1.0, min(1.0, number(vote))) for vote in data)
        return RunResult({"lead": ledger.release(Laplace(1.0), total, at="votes")})


@dataclass(frozen=True)
class WeightsFromData(Base):
    """Clients are weighted by their share of all samples, which moves everybody's weight."""

    clients: int = 20

    def declared(self):
        return [central(Gaussian(0.2), 0.1, unit="client", at="model")]

    def load(self, source, rng):
        return {f"c{n}": rng.normal(0, 0.5, int(rng.integers(4, 9))) for n in range(self.clients)}

    def run(self, data, ledger, rng):
        sizes = {name: len(values) for name, values in data.items()}
        everything = max(1, sum(sizes.values()))
        model = 0.0
        for name, values in data.items():
            mean = number(np.nansum(values)) / max(1, sizes[name])
            model += sizes[name] / everything * min(max(mean, -1.0), 1.0)
        return RunResult({"model": ledger.release(Gaussian(0.2), model, at="model")})


@dataclass(frozen=True)
class GroupsFromData(Base):
    """Groups are declared by position, but the age of a row decides its group."""

    def declared(self):
        names = ("young", "old")
        return [
            central(Laplace(100.0), 100, relation=ReplaceOne(), group=name, at=name)
            for name in names
        ]

    def load(self, source, rng):
        return [
            {"age": int(rng.integers(18, 90)), "wage": float(rng.uniform(0, 100))}
            for _ in range(60)
        ]

    def run(self, data, ledger, rng):
        totals = {"young": 0.0, "old": 0.0}
        for row in data:
            totals["young" if number(row["age"]) < 40 else "old"] += min(
                max(number(row["wage"]), 0.0), 100.0
            )
        noisy = {name: ledger.release(Laplace(100.0), x, at=name) for name, x in totals.items()}
        return RunResult(noisy)


@dataclass(frozen=True)
class OverlappingWindows(Base):
    """Windows are declared disjoint, and overlap by one row."""

    windows: int = 5
    width: int = 10

    def declared(self):
        return [
            central(Laplace(1.0), 1, relation=ReplaceOne(), group=f"w{n}", at=f"w{n}")
            for n in range(self.windows)
        ]

    def load(self, source, rng):
        return rng.random(self.windows * self.width)

    def run(self, data, ledger, rng):
        values = np.clip(np.nan_to_num(data), 0, 1)
        noisy = []
        for n in range(self.windows):
            window = values[n * self.width : (n + 1) * self.width + 1]
            noisy.append(ledger.release(Laplace(1.0), window.sum(), at=f"w{n}"))
        return RunResult({"windows": noisy})


@dataclass(frozen=True)
class LocalMinusMean(Base):
    """Each device reports its distance from the mean of all: no device could know that."""

    users: int = 40

    def noise(self):
        return Laplace(4.0, clip=(-2.0, 2.0))

    def declared(self):
        return [local(self.noise(), 4, ReplaceOne(), total=self.users, at="report")]

    def load(self, source, rng):
        return [(f"u{n}", float(rng.uniform(-1, 1))) for n in range(self.users)]

    def run(self, data, ledger, rng):
        values = [number(value) for _, value in data]
        centre = sum(values) / len(values)
        reports = [
            ledger.release(self.noise(), value - centre, unit=f"u{n}", at="report")
            for n, value in enumerate(values)
        ]
        return RunResult({"spread": float(np.std(reports))})


@dataclass(frozen=True)
class DictionaryOfAllAnswers(Base):
    """Local answers are numbered by the sorted set of all answers, so one answer moves others."""

    users: int = 40

    def noise(self):
        return RandomizedResponse.calibrated(epsilon=1.0, k=8)

    def declared(self):
        return [local(self.noise(), 1, ReplaceOne(), total=self.users, at="answer")]

    def load(self, source, rng):
        return {f"u{n}": CITIES[int(rng.integers(4))] for n in range(self.users)}

    def run(self, data, ledger, rng):
        codes = {answer: n for n, answer in enumerate(sorted(set(map(str, data.values()))))}
        counts = [0] * 8
        for n, answer in enumerate(data.values()):
            code = codes[str(answer)] % 8
            counts[ledger.release(self.noise(), code, unit=f"u{n}", at="answer")] += 1
        return RunResult({"counts": counts})


@dataclass(frozen=True)
class CentralCalledLocal(Base):
    """The server averages raw values and noises the mean in the name of each user."""

    users: int = 30

    def noise(self):
        return Laplace(2.0, clip=(0.0, 1.0))

    def declared(self):
        return [local(self.noise(), 1, ReplaceOne(), total=self.users, at="value")]

    def load(self, source, rng):
        return rng.random(self.users)

    def run(self, data, ledger, rng):
        values = np.clip(np.nan_to_num(data), 0, 1)
        noisy = [
            ledger.release(self.noise(), values[: n + 1].mean(), unit=f"u{n}", at="value")
            for n in range(self.users)
        ]
        return RunResult({"mean": float(np.mean(noisy))})


@dataclass(frozen=True)
class SensitivityZero(Base):
    """The number of heavy users is declared as a public fact: sensitivity 0."""

    def declared(self):
        return [central(Laplace(1.0), 1, at="sum"), central(Laplace(1.0), 0, at="heavy")]

    def load(self, source, rng):
        return rng.random(70)

    def run(self, data, ledger, rng):
        values = np.clip(np.nan_to_num(data), 0, 1)
        total = ledger.release(Laplace(1.0), values.sum(), at="sum")
        heavy = ledger.release(Laplace(1.0), float((values > 0.999).sum()), at="heavy")
        return RunResult({"sum": total, "heavy": heavy})


@dataclass(frozen=True)
class SampledByValue(Base):
    """Poisson sampling of rate 0.1 is declared; large values are drawn more often."""

    rounds: int = 10

    def declared(self):
        sampling = PoissonSampling(0.1)
        return [central(Gaussian(2.0), 1, count=self.rounds, sampling=sampling, at="sum")]

    def load(self, source, rng):
        return rng.random(100)

    def run(self, data, ledger, rng):
        values = np.clip(np.nan_to_num(data), 0, 1)
        noisy = []
        for _ in range(self.rounds):
            chosen = rng.random(len(values)) < 0.1 + 0.8 * (values > 0.95)
            noisy.append(ledger.release(Gaussian(2.0), values[chosen].sum(), at="sum"))
        return RunResult({"mean": float(np.mean(noisy))})


@dataclass(frozen=True)
class SampledOnce(Base):
    """One Poisson sample serves all rounds, which are accounted as fresh samples."""

    rounds: int = 10

    def declared(self):
        sampling = PoissonSampling(0.1)
        return [central(Gaussian(2.0), 1, count=self.rounds, sampling=sampling, at="sum")]

    def load(self, source, rng):
        return rng.random(100)

    def run(self, data, ledger, rng):
        values = np.clip(np.nan_to_num(data), 0, 1)
        chosen = values[rng.random(len(values)) < 0.1]
        noisy = [ledger.release(Gaussian(2.0), chosen.sum(), at="sum") for _ in range(self.rounds)]
        return RunResult({"mean": float(np.mean(noisy))})


@dataclass(frozen=True)
class FirstTenthAsSample(Base):
    """The first tenth of the rows stands for a Poisson sample of rate 0.1."""

    def declared(self):
        return [central(Gaussian(1.0), 1, sampling=PoissonSampling(0.1), at="sum")]

    def load(self, source, rng):
        return rng.random(100)

    def run(self, data, ledger, rng):
        values = np.clip(np.nan_to_num(data), 0, 1)
        return RunResult({"sum": ledger.release(Gaussian(1.0), values[:10].sum(), at="sum")})


WRONG = (
    DividedByN,
    ReplacedAsRemoved,
    WeightsFromData,
    GroupsFromData,
    OverlappingWindows,
    LocalMinusMean,
    DictionaryOfAllAnswers,
    CentralCalledLocal,
    SensitivityZero,
    SampledByValue,
    SampledOnce,
    FirstTenthAsSample,
)
RIGHT = ()
