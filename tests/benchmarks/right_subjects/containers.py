"""Right subjects on containers of every kind: each is private whatever its data are kept in."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import ClassVar, NamedTuple

import numpy as np

from dpaudit import (
    AddRemove,
    Claim,
    Contribution,
    DiscreteLaplace,
    Invocation,
    Laplace,
    Plan,
    PrivacyUnit,
    ReplaceOne,
    RunResult,
    Subject,
    TrustModel,
)
from tests.benchmarks.right_subjects.frames import library

CENTRAL = (PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL)
REPLACED = (PrivacyUnit("person"), ReplaceOne(), TrustModel.CENTRAL)


@dataclass(frozen=True)
class RatedComments(Subject):
    """How many comments are long, and how many good, of texts that are all different.

    Right: the unit is a comment, one row, which moves the two counts by ≤ 1 each: ε = 2/b.
    """

    def plan(self) -> Plan:
        about = (PrivacyUnit("comment"), AddRemove(), TrustModel.CENTRAL)
        return Plan.of(Invocation(DiscreteLaplace(5.0), 2.0, *about, at="counts"))

    def claim(self) -> Claim:
        return Claim(0.4)

    def load(self, source, rng):
        words = np.array(["fine", "bad", "the soup", "cold", "never again", "lovely"])
        texts = [" ".join(rng.choice(words, size=8)) + f" {n}" for n in range(30)]
        return [{"text": text, "stars": int(rng.integers(1, 6))} for text in texts]

    def run(self, data, ledger, rng):
        counts = [
            sum(len(str(each["text"])) > 40 for each in data),
            sum(each["stars"] > 3 for each in data),
        ]
        long, good = ledger.release(DiscreteLaplace(5.0), counts, at="counts")
        return RunResult({"long": int(long), "good": int(good)})


@dataclass(frozen=True)
class AnswersByCode(Subject):
    """A histogram by the codes of a pandas category, with a nullable integer as weight.

    Right: a row adds its weight, clipped to [0, 3], to one cell: L1 ≤ 3, ε = 3/b.
    """

    def plan(self) -> Plan:
        return Plan.of(Invocation(Laplace(6.0), 3.0, *CENTRAL, at="cells"))

    def claim(self) -> Claim:
        return Claim(0.5)

    def load(self, source, rng):
        pd = library("pandas")
        answers = pd.Categorical(
            rng.choice(["no", "yes"], size=40), categories=["no", "yes", "both"]
        )
        weights = pd.array([None, *rng.integers(0, 5, size=39).tolist()], dtype="Int64")
        return pd.DataFrame({"answer": answers, "weight": weights})

    def run(self, data, ledger, rng):
        known = data[data["answer"].notna() & data["weight"].notna()]
        weights = known["weight"].clip(0, 3).to_numpy(dtype=float)
        cells = np.bincount(known["answer"].cat.codes, weights, minlength=3)
        return RunResult({"cells": ledger.release(Laplace(6.0), cells, at="cells").tolist()})


@dataclass(frozen=True)
class PollInColumns(Subject):
    """Counts of a mapping of columns that are lists.

    Right: a row is one place of both lists, and moves one count by 1: ε = 1/b.
    """

    def plan(self) -> Plan:
        return Plan.of(Invocation(Laplace(2.0), 1.0, *CENTRAL, at="votes"))

    def claim(self) -> Claim:
        return Claim(0.5)

    def load(self, source, rng):
        return {
            "age": rng.integers(16, 90, size=30).tolist(),
            "vote": rng.choice(["a", "b"], 30).tolist(),
        }

    def run(self, data, ledger, rng):
        adult = [vote for age, vote in zip(data["age"], data["vote"], strict=True) if age >= 18]
        counts = [adult.count("a"), adult.count("b")]
        return RunResult({"votes": ledger.release(Laplace(2.0), counts, at="votes").tolist()})


class Pay(NamedTuple):
    """One person's row."""

    salary: Decimal | None
    team: str


@dataclass(frozen=True)
class PayByTeam(Subject):
    """Sums in whole cents of decimals, some of them missing, by team; each team is a public group.

    Right: in its team a person moves an integer sum by ≤ 10 000 when replaced, wages in [0, 100],
    teams by the public place in the list: ε = 10 000/b in parallel.
    """

    TEAMS: ClassVar = ("red", "blue")

    def plan(self) -> Plan:
        each = (Laplace(20_000.0), 10_000.0, *REPLACED)
        return Plan.of(*(Invocation(*each, group=team, at=team) for team in self.TEAMS))

    def claim(self) -> Claim:
        return Claim(0.5)

    def load(self, source, rng):
        pay = [Pay(Decimal(int(each)) / 100, "") for each in rng.integers(0, 12_000, size=40)]
        return [*pay, Pay(None, "retired")]

    @staticmethod
    def cents(salary: Decimal | None) -> int:
        amount = float(salary or 0)
        return round(100 * min(max(amount, 0.0), 100.0)) if amount == amount else 0

    def run(self, data, ledger, rng):
        found = {}
        for place, team in enumerate(self.TEAMS):
            cents = [self.cents(each.salary) for each in data[place::2]]
            found[team] = ledger.release(Laplace(20_000.0), sum(cents), at=team) / 100 / len(cents)
        return RunResult({"mean pay": found})


@dataclass(frozen=True)
class MissingInPandas(Subject):
    """Counts of a pandas frame with the types that can be missing: Int64, string, datetime.

    Right: a row moves (known ages, known names, known days) by ≤ 1 each, 3 in L1: ε = 3/b.
    """

    def plan(self) -> Plan:
        return Plan.of(Invocation(Laplace(6.0), 3.0, *CENTRAL, at="known"))

    def claim(self) -> Claim:
        return Claim(0.5)

    def load(self, source, rng):
        pd = library("pandas")
        ages = pd.array([30, None, 50, 41, None], dtype="Int64")
        days = pd.to_datetime(["2024-01-02", None, "2024-05-01", None, "2023-12-31"])
        return pd.DataFrame({"age": ages, "name": ["a", None, "c", "d", None], "day": days})

    def run(self, data, ledger, rng):
        known = [int(data[column].notna().sum()) for column in data.columns]
        noisy = ledger.release(Laplace(6.0), np.array(known, dtype=np.int32), at="known")
        share = noisy[0] / noisy[1] if noisy[1] > 1e6 else None  # too few to say
        return RunResult({**dict(zip(data.columns, noisy.tolist(), strict=True)), "share": share})


class Vote(Enum):
    """What a ballot says."""

    YES = "yes"
    NO = "no"


@dataclass(frozen=True)
class BallotsOfAnEnum(Subject):
    """A count of ballots that are members of an enumeration of the same module.

    Right: a ballot moves the count by ≤ 1: ε = 1/b.
    """

    def plan(self) -> Plan:
        return Plan.of(Invocation(Laplace(2.0), 1.0, *CENTRAL, at="yes"))

    def claim(self) -> Claim:
        return Claim(0.5)

    def load(self, source, rng):
        return [Vote.YES if said else Vote.NO for said in rng.random(30) < 0.7]

    def run(self, data, ledger, rng):
        yes = sum(vote is Vote.YES for vote in data)
        return RunResult({"yes": ledger.release(Laplace(2.0), yes, at="yes")})


@dataclass(frozen=True)
class UsersInArrays(Subject):
    """A sum of arrays, one of which names the users in numpy's own texts.

    Right: the ledger bounds what all rows of a user add by 10 in L1: ε = 10/b.
    """

    def plan(self) -> Plan:
        about = (PrivacyUnit("user"), AddRemove(), TrustModel.CENTRAL)
        return Plan.of(Invocation.bounded(Laplace(20.0), Contribution(10.0), *about, at="sum"))

    def claim(self) -> Claim:
        return Claim(0.5)

    def load(self, source, rng):
        users = np.array([f"user {n}" for n in rng.integers(9, size=40)])
        return {"user": users, "value": rng.normal(size=40)}

    def run(self, data, ledger, rng):
        return RunResult({"sum": ledger.sum(data["value"], units=data["user"], at="sum")})
