"""The same counts on handles and on rows, and questions: for :mod:`tests.benchmarks.sealed`."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit import (
    AddRemove,
    Contribution,
    DiscreteLaplace,
    Invocation,
    Plan,
    PrivacyUnit,
    RunResult,
    SealedSubject,
    Subject,
    Table,
    TrustModel,
)

SHOPS = ("bakery", "book shop", "chemist")
AGES = range(20, 80, 10)


def plan(count: int = 1) -> Plan:
    """Counts of visits by shop, for each age."""
    about = (PrivacyUnit("person"), AddRemove(), TrustModel.CENTRAL)
    part = Contribution(3, rows=3)
    noise = DiscreteLaplace(30.0)
    return Plan.of(Invocation.bounded(noise, part, *about, at="visits", count=count))


@dataclass(frozen=True)
class OnHandles(SealedSubject):
    """Counts of handles."""

    file: str = "visits.csv"

    def table(self) -> Table:
        columns = {
            "shop": {"type": "text", "values": list(SHOPS)},
            "age": {"type": "integer", "range": [0, 110]},
        }
        return Table(self.file, "person", columns)

    def plan(self) -> Plan:
        return plan(len(AGES))

    def run(self, data: Any, ledger: Any, rng: np.random.Generator) -> RunResult:
        found = {}
        for age in AGES:
            of_age = data.filter(f"age >= {age} AND age < {age + 10}")
            found[str(age)] = ledger.histogram(of_age, "shop", at="visits").tolist()
        return RunResult(found)


@dataclass(frozen=True)
class OnRows(Subject):
    """The same counts of rows."""

    default_data = "visits.csv"

    def plan(self) -> Plan:
        return plan(len(AGES))

    def load(self, source: str, rng: np.random.Generator) -> Any:
        with Path(source).open(newline="", encoding="utf-8") as file:
            return list(csv.reader(file))[1:]

    def run(self, data: Any, ledger: Any, rng: np.random.Generator) -> RunResult:
        found = {}
        for age in AGES:
            mine = [row for row in data if age <= int(row[2]) < age + 10]
            keys, units = [row[1] for row in mine], [row[0] for row in mine]
            counts = ledger.histogram(keys, SHOPS, units=units, at="visits")
            found[str(age)] = counts.tolist()
        return RunResult(found)


@dataclass(frozen=True)
class Questions(OnHandles):
    """One question, many times; whoever starts the run measures how long that takes."""

    times: int = 300
    asked: str = "nothing"

    def plan(self) -> Plan:
        return plan(self.times)

    def run(self, data: Any, ledger: Any, rng: np.random.Generator) -> RunResult:
        some = data.filter("age >= 30")
        ask = {
            "nothing": lambda number: len(ledger),
            "a filter": lambda number: data.filter(f"age > {number}"),
            "a count": lambda number: ledger.count(some, at="visits"),
        }[self.asked]
        for number in range(self.times - 1):
            ask(number)
        ledger.count(some, at="visits")
        return RunResult({})
