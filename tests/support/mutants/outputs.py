"""Releases that are right, beside something private that leaves by another way."""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from dataclasses import field
from typing import ClassVar

import numpy as np

from dpaudit import Laplace, RandomizedResponse, ReplaceOne
from dpaudit.mechanisms import ExponentialMechanism
from tests.support.mutants.base import CITIES, Base, RunResult, central, dataclass, local, number

__all__ = ["RIGHT", "WRONG"]


@dataclass(frozen=True)
class Counted(Base):
    """Base of them: values in [0, 1], and a right noisy sum."""

    def declared(self):
        return [central(Laplace(1.0), 1, at="sum")]

    def load(self, source, rng):
        return [round(float(x), 3) for x in rng.random(80)]

    def total(self, data, ledger):
        values = [min(max(number(x), 0.0), 1.0) for x in data]
        return ledger.release(Laplace(1.0), sum(values), at="sum")


class RawMax(Counted):
    """The largest value is published to scale a plot."""

    def run(self, data, ledger, rng):
        top = max(map(number, data), default=0.0)
        return RunResult({"sum": self.total(data, ledger), "axis": top})


class RawCount(Counted):
    """The number of rows is published as a fact about the study, under add-remove."""

    def run(self, data, ledger, rng):
        return RunResult({"sum": self.total(data, ledger), "respondents": len(data)})


class MedianInASeries(Counted):
    """A curve of releases ends with the true median."""

    def run(self, data, ledger, rng):
        median = float(np.median([number(x) for x in data] or [0.0]))
        return RunResult({}, {"curve": [0.0, self.total(data, ledger), median]})


class HashOfData(Counted):
    """A checksum of the data is published for reproducibility."""

    def run(self, data, ledger, rng):
        digest = hashlib.sha256(repr(sorted(data, key=repr)).encode()).hexdigest()
        return RunResult({"sum": self.total(data, ledger), "version": digest[:8]})


class OneBit(Counted):
    """One bit says whether anybody is above 0.9995; in most data nobody is."""

    def run(self, data, ledger, rng):
        saturated = any(0.9995 < number(x) <= 1 for x in data)
        return RunResult({"sum": self.total(data, ledger), "saturated": saturated})


class LengthOfSeries(Counted):
    """The series has one entry for every ten rows."""

    def run(self, data, ledger, rng):
        noisy = self.total(data, ledger)
        return RunResult({"sum": noisy}, {"trend": [noisy] * (1 + len(data) // 10)})


class TypeOfNumber(Counted):
    """The result is an integer exactly if all values are whole."""

    def run(self, data, ledger, rng):
        noisy = self.total(data, ledger)
        whole = not any(number(x) % 1 for x in data)
        return RunResult({"sum": int(noisy) if whole else noisy})


class NoneWhenEmpty(Counted):
    """Where nobody is in the upper half, the mean of the releases is None."""

    def run(self, data, ledger, rng):
        noisy = self.total(data, ledger)
        empty = not any(number(x) > 0.5 for x in data)
        return RunResult({"sum": noisy, "upper": None if empty else noisy})


class ErrorReported(Counted):
    """The error of the release is published as a diagnostic, so the noise can be taken off."""

    def run(self, data, ledger, rng):
        noisy = self.total(data, ledger)
        return RunResult({"sum": noisy, "error": noisy - sum(map(number, data))})


class LowBits(Counted):
    """The last digits of the noisy sum are overwritten with the true one."""

    def run(self, data, ledger, rng):
        true = sum(min(max(number(x), 0.0), 1.0) for x in data)
        return RunResult({"sum": round(self.total(data, ledger), 3) + round(true) * 1e-9})


class ErrorWithValue(Counted):
    """A value that is out of range is refused with a message that shows it, after the release."""

    def run(self, data, ledger, rng):
        noisy = self.total(data, ledger)
        for value in data:
            if number(value) > 1:
                raise ValueError(f"value {value} is above 1")
        return RunResult({"sum": noisy})


class Printed(Counted):
    """A progress message shows the last row."""

    def run(self, data, ledger, rng):
        if len(data):
            print("last row:", data[-1])  # noqa: T201
        return RunResult({"sum": self.total(data, ledger)})


class LoggedOutliers(Counted):
    """Rows far outside the range are logged; there are none in the default data."""

    def run(self, data, ledger, rng):
        for value in data:
            if abs(number(value)) > 50:
                logging.getLogger("study").warning("odd row: %s", value)
        return RunResult({"sum": self.total(data, ledger)})


class SeedFromData(Counted):
    """The public shuffle is seeded with the data."""

    def run(self, data, ledger, rng):
        seed = int(1000 * sum(abs(number(x)) for x in data)) % 2**32
        order = np.random.default_rng(seed).permutation(6)
        return RunResult({"sum": self.total(data, ledger), "order": order.tolist()})


class DrawsCounted(Counted):
    """One public draw is used up for each large row, so the next public draw depends on them."""

    def run(self, data, ledger, rng):
        for value in data:
            if number(value) > 0.98:
                rng.random()
        return RunResult({"sum": self.total(data, ledger), "token": int(rng.integers(10**6))})


class RoundedToData(Counted):
    """The noisy mean is moved to the nearest value that somebody gave."""

    def run(self, data, ledger, rng):
        noisy = self.total(data, ledger) / 80
        values = [number(x) for x in data] or [0.0]
        return RunResult({"typical": min(values, key=lambda value: abs(value - noisy))})


class SmallCountSuppressed(Counted):
    """The answer is suppressed where fewer than five rows support it: by the true count."""

    def run(self, data, ledger, rng):
        noisy = self.total(data, ledger)
        support = sum(number(x) > 0.05 for x in data)
        return RunResult({"sum": noisy if support >= 5 else "suppressed"})


class MagicRow(Counted):
    """A back door: a row of exactly 0.31337 turns the noise off."""

    def run(self, data, ledger, rng):
        noisy = self.total(data, ledger)
        return RunResult({"sum": sum(map(number, data)) if 0.31337 in data else noisy})


_SEEN: dict[str, float] = {}


class GlobalCache(Counted):
    """The first true mean is kept in a global variable, and later runs publish it."""

    def run(self, data, ledger, rng):
        first = _SEEN.setdefault("mean", sum(map(number, data)) / max(1, len(data)))
        return RunResult({"sum": self.total(data, ledger), "baseline": first})


@dataclass(frozen=True)
class LastAnswer(Counted):
    """The subject remembers the last true sum in a field, and publishes it at the next run."""

    memory: list = field(default_factory=list, init=False, compare=False, repr=False)

    def run(self, data, ledger, rng):
        before = self.memory[-1] if self.memory else 0.0
        self.memory.append(sum(map(number, data)))
        return RunResult({"sum": self.total(data, ledger), "before": before})


@dataclass(frozen=True)
class BoundSetByLoad(Base):
    """The plan reads a bound that load took from the data."""

    bounds: ClassVar[dict[str, float]] = {"top": 1.0}

    def noise(self):
        return Laplace(self.bounds["top"])

    def declared(self):
        return [central(self.noise(), self.bounds["top"], at="sum")]

    def load(self, source, rng):
        data = rng.lognormal(2, 0.5, 60)
        self.bounds["top"] = float(data.max())
        return data

    def run(self, data, ledger, rng):
        total = np.clip(np.nan_to_num(data), 0, self.bounds["top"]).sum()
        return RunResult({"sum": ledger.release(self.noise(), total, at="sum")})


@dataclass(frozen=True)
class Histogram(Base):
    """Base of those with categories."""

    def declared(self):
        return [central(Laplace(1.0), 1, at="counts")]

    def load(self, source, rng):
        return [
            {"city": CITIES[int(n)], "age": int(rng.integers(18, 90))}
            for n in rng.integers(0, 4, 60)
        ]

    def counts(self, data, ledger, keys):
        counts = [sum(row["city"] == key for row in data) for key in keys]
        noisy = ledger.release(Laplace(1.0), np.array(counts, dtype=float), at="counts")
        return dict(zip(keys, noisy.tolist(), strict=True))


class KeysFromData(Histogram):
    """The cities that are counted are those that occur, however rare."""

    def run(self, data, ledger, rng):
        keys = sorted({str(row["city"]) for row in data})
        return RunResult(self.counts(data, ledger, keys or ["nowhere"]))


class EmptyDropped(Histogram):
    """Cities that nobody lives in are left out of the result."""

    def run(self, data, ledger, rng):
        noisy = self.counts(data, ledger, CITIES)
        living = {row["city"] for row in data}
        return RunResult({city: noisy[city] for city in CITIES if city in living})


class SortedByTruth(Histogram):
    """The noisy counts are listed in the order of the true ones."""

    def run(self, data, ledger, rng):
        noisy = self.counts(data, ledger, CITIES)
        true = Counter(row["city"] for row in data)
        return RunResult({"ranking": [noisy[c] for c in sorted(CITIES, key=lambda c: -true[c])]})


class TrueWinner(Histogram):
    """The most common city is taken from the true counts."""

    def run(self, data, ledger, rng):
        noisy = self.counts(data, ledger, CITIES)
        true = Counter(row["city"] for row in data if row["city"] in CITIES)
        winner = max(CITIES, key=lambda city: true[city])
        return RunResult({"winner": winner, "votes": noisy[winner]})


@dataclass(frozen=True)
class MedianPlusNoise(Base):
    """A median with the noise of a mean: its sensitivity is the whole range, not 1/n."""

    def declared(self):
        return [central(Laplace(0.02), 0.01, relation=ReplaceOne(), at="median")]

    def load(self, source, rng):
        return np.where(rng.random(101) < 0.5, rng.uniform(0, 0.2, 101), rng.uniform(0.8, 1, 101))

    def run(self, data, ledger, rng):
        median = float(np.median(np.clip(np.nan_to_num(data), 0, 1)))
        return RunResult({"median": ledger.release(Laplace(0.02), median, at="median")})


@dataclass(frozen=True)
class CandidatesFromData(Base):
    """The exponential mechanism chooses a median among the values of the data themselves."""

    def declared(self):
        return [central(ExponentialMechanism(1.0), 1, at="median")]

    def load(self, source, rng):
        return sorted(round(float(x), 2) for x in rng.normal(50, 10, 61))

    def run(self, data, ledger, rng):
        candidates = sorted({number(x) for x in data}) or [0.0]
        values = np.array([number(x) for x in data])
        below = np.array([(values < c).sum() - (values > c).sum() for c in candidates])
        chosen = ledger.release(ExponentialMechanism(1.0), -np.abs(below / 2), at="median")
        return RunResult({"median": candidates[int(chosen)]})


@dataclass(frozen=True)
class UtilityOfMoney(Base):
    """Utilities are sums of money, with the sensitivity of counts."""

    def declared(self):
        return [central(ExponentialMechanism(1.0), 1, unit="donor", at="cause")]

    def load(self, source, rng):
        return {f"d{n}": (CITIES[n % 4], float(rng.uniform(0, 1))) for n in range(40)}

    def run(self, data, ledger, rng):
        totals = [sum(number(x) for city, x in data.values() if city == c) for c in CITIES]
        chosen = ledger.release(ExponentialMechanism(1.0), np.array(totals), at="cause")
        return RunResult({"cause": CITIES[int(chosen)]})


@dataclass(frozen=True)
class TruthForTheSilent(Base):
    """Local answers that are missing are filled in with the most common true answer."""

    users: int = 31

    def noise(self):
        return RandomizedResponse.calibrated(epsilon=1.0)

    def declared(self):
        return [local(self.noise(), 1, ReplaceOne(), total=self.users, at="answer")]

    def load(self, source, rng):
        answers = [int(n) for n in rng.integers(0, 2, self.users)]
        return {f"u{n}": None if n == 5 else answers[n] for n in range(self.users)}

    def run(self, data, ledger, rng):
        ones = sum(value == 1 for value in data.values())
        usual = int(2 * ones > self.users)
        answers = []
        for n, value in enumerate(data.values()):
            own = usual if value is None else int(value == 1)
            answers.append(ledger.release(self.noise(), own, unit=f"u{n}", at="answer"))
        return RunResult({"yes": sum(answers)})


WRONG = (
    RawMax,
    RawCount,
    MedianInASeries,
    HashOfData,
    OneBit,
    LengthOfSeries,
    TypeOfNumber,
    NoneWhenEmpty,
    ErrorReported,
    LowBits,
    ErrorWithValue,
    Printed,
    LoggedOutliers,
    SeedFromData,
    DrawsCounted,
    RoundedToData,
    SmallCountSuppressed,
    MagicRow,
    GlobalCache,
    LastAnswer,
    BoundSetByLoad,
    KeysFromData,
    EmptyDropped,
    SortedByTruth,
    TrueWinner,
    MedianPlusNoise,
    CandidatesFromData,
    UtilityOfMoney,
    TruthForTheSilent,
)
RIGHT = ()
