"""Right subjects with habits that look suspicious: each says which one."""

from __future__ import annotations

import asyncio
import csv
import math
import sqlite3
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpaudit import (
    AddRemove,
    Claim,
    Contribution,
    Gaussian,
    Invocation,
    Laplace,
    Ledger,
    Plan,
    PrivacyUnit,
    ReplaceOne,
    RunResult,
    Subject,
    TrustModel,
)
from dpaudit.project import Move
from tests.benchmarks.right_subjects.frames import SyntheticPatients, library, zcdp_claim
from tests.benchmarks.right_subjects.learning import clipped

CENTRAL = (PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL)
REPLACED = (PrivacyUnit("person"), ReplaceOne(), TrustModel.CENTRAL)
_WIDTHS: dict[float, float] = {}  # of intervals, by noise scale: public


@dataclass(frozen=True)
class SimulatedInterval(Subject):
    """A count of a set, with an interval that is simulated by the mechanism itself.

    Right: the count moves by 1, ε = 1/b. The interval is drawn around the *released* count, and
    from the public scale; the cache of widths holds nothing else.
    """

    scale: float = 2.0

    def plan(self) -> Plan:
        return Plan.of(Invocation(Laplace(self.scale), 1.0, *CENTRAL, at="count"))

    def claim(self) -> Claim:
        return Claim(1 / self.scale)

    def load(self, source, rng):
        return {"yes", "no", "maybe", ""} | {f"answer {n}" for n in range(30)}

    def neighbours(self, data, rng) -> Iterator[Move]:
        for word in ("yes", "answer 3", ""):
            yield Move(data - {word}, f"a word of {len(word)} letters removed")
        yield Move(data | {"new"}, "one added")

    def run(self, data, ledger, rng):
        noise = Laplace(self.scale)
        count = ledger.release(noise, len(data), at="count")
        likely = np.quantile(noise.release_many(count, 200, rng), [0.05, 0.95])  # of a release
        if self.scale not in _WIDTHS:
            _WIDTHS[self.scale] = math.log(20) * self.scale
        return RunResult({"count": count, "likely": likely.tolist(), "width": _WIDTHS[self.scale]})


@dataclass(frozen=True)
class NumberedRuns(SimulatedInterval):
    """The same count with an identifier of the run, and nothing simulated.

    Right: as above; the identifier is fresh randomness that no datum touches.
    """

    def run(self, data, ledger, rng):
        count = ledger.release(Laplace(self.scale), len(data), at="count")
        return RunResult({"count": count, "id": uuid.uuid4().hex})


@dataclass(frozen=True)
class ShuffledBound(Subject):
    """A sum in which three random rows of a person count, chosen by shuffling all rows.

    Right: whoever else is in the data, each person's three rows are uniform among the own, so one
    person moves the law of the sum by that person's own part, ≤ 10 in L1: ε = 10/b.
    """

    def plan(self) -> Plan:
        about = (PrivacyUnit("person"), AddRemove(), TrustModel.CENTRAL)
        return Plan.of(
            Invocation.bounded(Laplace(20.0), Contribution(10, rows=3), *about, at="sum")
        )

    def claim(self) -> Claim:
        return Claim(0.5)

    def load(self, source, rng):
        return {"person": rng.integers(12, size=60), "value": rng.uniform(0, 3, size=60)}

    def neighbours(self, data, rng) -> Iterator[Move]:
        for person in (0, 5, 11):
            kept = data["person"] != person
            yield Move({name: each[kept] for name, each in data.items()}, "a person removed")

    def run(self, data, ledger, rng):
        order = rng.permutation(len(data["person"]))
        total = ledger.sum(data["value"][order], units=data["person"][order], at="sum")
        return RunResult({"sum": total})


@dataclass(frozen=True)
class PoissonTraining(Subject):
    """DP-SGD for a mean under add-remove, whose batches are drawn from one generator a step.

    Right: the plan of DP-SGD with Poisson batches; clipped rows have norm ≤ 1, and every row enters
    a batch by itself with q. The step divides by the public expected batch size.
    """

    expected: int = 16

    def plan(self) -> Plan:
        return Plan.dp_sgd(noise_multiplier=2.0, sample_rate=0.2, steps=10)

    def claim(self) -> Claim:
        return zcdp_claim(10 / 8)

    def load(self, source, rng):
        return rng.normal(0.5, 1, size=(80, 2))

    def neighbours(self, data, rng) -> Iterator[Move]:
        yield Move(data[:-1], "the last row removed")
        yield Move(np.vstack([data, [[0.3, 0.4]]]), "a row added at the end")
        yield Move(np.vstack([data, [[-1e9, 1e9]]]), "a far row added at the end", extreme=True)

    def run(self, data, ledger, rng):
        mean = np.zeros(2)
        for each in rng.spawn(10):
            batch = data[each.random(len(data)) < 0.2]
            noisy = ledger.release(Gaussian(2.0), clipped(mean - batch, 1.0).sum(axis=0))
            mean = mean - 0.5 * noisy / self.expected
        return RunResult({"mean": mean.tolist()})


@dataclass(frozen=True)
class TableInDatabase(Subject):
    """Counts by SQL, of an SQLite connection that nothing can copy.

    Right: a visitor is one row of one place, so the counts move by 1 in L1: ε = 1/b. Places are
    those of a public table.
    """

    def plan(self) -> Plan:
        return Plan.of(Invocation(Laplace(4.0), 1.0, *CENTRAL, at="places"))

    def claim(self) -> Claim:
        return Claim(0.25)

    @staticmethod
    def database(rows: list[tuple[int, str]]) -> sqlite3.Connection:
        base = sqlite3.connect(":memory:", check_same_thread=False)
        base.execute("CREATE TABLE visit (id INTEGER PRIMARY KEY, place TEXT)")
        base.executemany("INSERT INTO visit VALUES (?, ?)", rows)
        return base

    def load(self, source, rng):
        places = rng.choice(["zoo", "park", "moon"], size=50)
        return self.database([(n, str(place)) for n, place in enumerate(places)])

    def neighbours(self, data, rng) -> Iterator[Move]:
        rows = data.execute("SELECT id, place FROM visit").fetchall()
        yield Move(self.database(rows[1:]), "the first row removed")
        yield Move(self.database([*rows, (99, "zoo")]), "a visit of the zoo added")
        yield Move(self.database([]), "all rows but one removed", base=self.database(rows[:1]))

    def run(self, data, ledger, rng):
        public = "(SELECT 'zoo' AS p UNION SELECT 'sea')"
        joined = f"{public} LEFT JOIN visit ON place = p"
        query = f"SELECT p, COUNT(id) FROM {joined} GROUP BY p ORDER BY p"
        names, counts = zip(*data.execute(query), strict=True)
        noisy = ledger.release(Laplace(4.0), counts, at="places")
        return RunResult(dict(zip(names, np.maximum(noisy, 0).round(1).tolist(), strict=True)))


@dataclass(frozen=True)
class FileOfReadings(Subject):
    """A mean of a CSV file, which is read line by line; neighbours are files too.

    Right: a line adds (1, x/5) with x clipped to ±5, of norm ≤ √2: ρ = 2/2σ².
    """

    def plan(self) -> Plan:
        return Plan.of(Invocation(Gaussian(6.0), math.sqrt(2), *CENTRAL, at="moments"))

    def claim(self) -> Claim:
        return zcdp_claim(1 / 36)

    @staticmethod
    def file(values: list[float]) -> Path:
        handle = tempfile.NamedTemporaryFile("w", suffix=".csv", delete=False)  # noqa: SIM115
        with handle:
            csv.writer(handle).writerows([[f"{value:.6g}"] for value in values])
        return Path(handle.name)

    def load(self, source, rng):
        return self.file(rng.normal(2, 2, size=60).tolist())

    def neighbours(self, data, rng) -> Iterator[Move]:
        values = [float(line) for line in data.read_text().split()]
        yield Move(self.file(values[1:]), "the first line removed")
        yield Move(self.file([*values, 1e30]), "a far line added")
        yield Move(self.file([*values, math.nan]), "no number added")

    def run(self, data, ledger, rng):
        moments = np.zeros(2)
        with data.open() as lines:
            for line in csv.reader(lines):
                moments += [1, min(max(np.nan_to_num(float(line[0])), -5.0), 5.0) / 5]
        count, total = ledger.release(Gaussian(6.0), moments, at="moments").tolist()
        return RunResult({"mean": 5 * total / max(count, 1)})


@dataclass(frozen=True)
class PublishedFile(FileOfReadings):
    """The same mean, which is also written to a file.

    Right: as above; the file holds what the result holds.
    """

    def run(self, data, ledger, rng):
        result = super().run(data, ledger, rng)
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "mean.txt").write_text(f"{result.summary['mean']:.3f}")
        return result


@dataclass(frozen=True)
class TunedOnPublicData(Subject):
    """A bound that is chosen on public data, through a ledger of their own, first.

    Right: the private sum is clipped to the bound and divided by it, so it moves by ≤ 1: ε = 1/b.
    The other ledger has its own plan, its own noise, and a public list.
    """

    def plan(self) -> Plan:
        return Plan.of(Invocation(Laplace(5.0), 1.0, *CENTRAL, at="scaled sum"))

    def claim(self) -> Claim:
        return Claim(0.2)

    def load(self, source, rng):
        return rng.exponential(3.0, size=50).tolist()

    def run(self, data, ledger, rng):
        rehearsal = Plan.of(Invocation(Laplace(1.0), 1.0, *CENTRAL, count=3, at="public"))
        public, bounds = [1.0, 4.0, 2.5, 9.0], (2.0, 4.0, 8.0)
        with Ledger(rehearsal, rng=np.random.default_rng(3)) as own:
            losses = [
                own.release(Laplace(1.0), sum(min(x, b) for x in public) / b, at="public")
                for b in bounds
            ]
        bound = bounds[int(np.argmax(losses))]
        scaled = sum(min(max(float(np.nan_to_num(x)), 0), bound) / bound for x in data)
        return RunResult(
            {"sum": bound * ledger.release(Laplace(5.0), scaled, at="scaled sum"), "bound": bound}
        )


@dataclass(frozen=True)
class ModelOfSyntheticPatients(SyntheticPatients):
    """A model of scikit-learn, trained on the synthetic patients of another subject.

    Right: the plan of the other one, and a model, seeded by the rng, of what that one published.
    """

    def run(self, data, ledger, rng):
        published = super().run(data, ledger, rng)
        rows = [row for row in published.summary["synthetic"] if row["patients"]]
        forest = library("sklearn.ensemble").RandomForestClassifier(
            n_estimators=5, random_state=int(rng.integers(2**31))
        )
        forest.fit(
            [[row["from"]] for row in rows],
            [row["smokes"] for row in rows],
            [row["patients"] for row in rows],
        )
        risk = forest.predict_proba([[age] for age in self.AGES])[:, -1]
        return RunResult(
            {**published.summary, "risk": risk.tolist()}, owner=RunResult({"n": len(rows)})
        )


@dataclass(frozen=True)
class AskedTogether(Subject):
    """Numbers of several columns by coroutines, of a tuple of features and labels.

    Right: rows have features in [0, 1] and a label of 0 or 1; three means over the public number of
    rows, each moves by 1/n: ε = 3·(1/n)/b. Coroutines take turns in a fixed order.
    """

    rows: int = 50

    def noise(self) -> Laplace:
        return Laplace(10.0 / self.rows)

    def plan(self) -> Plan:
        places = ("first", "second", "label")
        return Plan.of(*(Invocation(self.noise(), 1 / self.rows, *REPLACED, at=p) for p in places))

    def claim(self) -> Claim:
        return Claim(0.3 * (1 + 1e-9))

    def load(self, source, rng):
        return rng.random((self.rows, 2)), rng.integers(0, 2, size=self.rows, dtype=np.int8)

    def neighbours(self, data, rng) -> Iterator[Move]:
        features, labels = data
        for row, label in ((0, 0), (7, 1), (self.rows - 1, 1)):
            other, own = features.copy(), labels.copy()
            other[row], own[row] = rng.random(2), label
            yield Move((other, own), f"row {row} is another")

    def run(self, data, ledger, rng):
        features, labels = data

        async def mean(column: np.ndarray, at: str) -> float:
            await asyncio.sleep(0)
            kept = np.clip(np.nan_to_num(column.astype(np.float64)), 0, 1)
            return float(ledger.release(self.noise(), kept.sum() / self.rows, at=at))

        async def ask() -> list[float]:
            return await asyncio.gather(
                mean(features[:, 0], "first"), mean(features[:, 1], "second"), mean(labels, "label")
            )

        return RunResult({"means": asyncio.run(ask())})
