"""Wrong subjects as their authors would write them sealed: what was computed of rows is asked for.

Each names the subject that it comes from, in whose docstring the mistake is told.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar

import numpy as np

from dpaudit import (
    AddRemove,
    Claim,
    Contribution,
    Invocation,
    Laplace,
    Plan,
    PrivacyUnit,
    RunResult,
    SealedSubject,
    Table,
    TrustModel,
)
from dpaudit.certificate import Premise
from tests.benchmarks.wrong_subjects import files, kept, values, whose
from tests.benchmarks.wrong_subjects.shop import Row, Wrong, crowd, row

PRODUCTS = ("tea", "cocoa", "mate", *(f"a{number}" for number in range(9)))
REGIONS = ("north", "east", "south", "west")


@dataclass(frozen=True)
class Sealed(SealedSubject):
    """A bounded sum over the purchases, as handles.

    Attributes:
        bound: of what a customer adds.
        folder: where the table is, ``purchases.csv``.
    """

    of: ClassVar[type[Wrong]]
    """The subject that holds rows."""
    assumed: ClassVar[tuple[Premise, str] | None] = None
    """What is left to the author's word, and why it does not hold here."""
    unit: ClassVar[str] = "customer"

    bound: float = 10.0
    folder: str = ""

    def table(self) -> Table:
        return Table(
            source=str(Path(self.folder) / "purchases.csv"),
            unit=self.unit,
            columns={
                "region": {"type": "text", "values": list(REGIONS)},
                "product": {"type": "text", "values": list(PRODUCTS)},
                "day": {"type": "integer", "range": [0, 1000]},
                "amount": {"type": "number", "range": [0, 1e6], "step": 0.01},
            },
        )

    def plan(self) -> Plan:
        about = (PrivacyUnit(self.unit), AddRemove(), TrustModel.CENTRAL)
        noise, part = Laplace(2 * self.bound), Contribution(self.bound)
        return Plan.of(Invocation.bounded(noise, part, *about, at="sum"))

    def claim(self) -> Claim:
        return Claim(0.5)

    def run(self, data, ledger, rng):
        return RunResult({"sum": np.asarray(ledger.sum(self.vectors(data), at="sum")).tolist()})

    def vectors(self, data: Any) -> Any:
        """The handle of what is summed."""
        return data.vector("amount")

    @classmethod
    def example(cls) -> list[Row]:
        """Purchases that show the mistake of the subject that holds rows."""
        return cls.of().example()

    @classmethod
    def public(cls, rows: Sequence[Row]) -> dict[str, Any]:
        """The settings that its author makes of these rows before anything is sealed."""
        return {}


# -- which rows are kept ---------------------------------------------------------------------------


class UniqueProducts(Sealed):
    of = kept.UniqueProducts

    def vectors(self, data):
        first = "row_number() OVER (PARTITION BY product ORDER BY day) = 1"
        return data.filter(first).with_columns(one="1").vector("one")


class LatestWindow(Sealed):
    of = kept.LatestWindow

    def vectors(self, data):
        return data.filter("day > (SELECT max(day) FROM data) - 30").vector("amount")


class FirstBuyers(Sealed):
    of = kept.FirstBuyers

    def vectors(self, data):
        return sorted(data, key=lambda each: each["day"])[:20]


class CheapestFirst(Sealed):
    of = kept.CheapestFirst

    def vectors(self, data):
        return data.filter("row_number() OVER (ORDER BY amount) <= 20").vector("amount")


class OutliersRemoved(Sealed):
    of = kept.OutliersRemoved

    def vectors(self, data):
        return data.filter("amount - avg(amount) <= 2 * stddev(amount)").vector("amount")


class EveryThird(Sealed):
    of = kept.EveryThird

    def vectors(self, data):
        return data.with_columns(more="3 * amount").vector("more")[::3]


class RareProductsDropped(Sealed):
    of = kept.RareProductsDropped

    def vectors(self, data):
        parts = data.partition("product")
        return [rows.vector("amount") for rows in parts.values() if len(rows) >= 5]


class BalancedRegions(Sealed):
    of = kept.BalancedRegions

    def vectors(self, data):
        north, elsewhere = data.filter("region = 'north'"), data.filter("region <> 'north'")
        return elsewhere[: len(north)]


# -- what a row is worth ---------------------------------------------------------------------------


class RankedSpending(Sealed):
    of = values.RankedSpending

    def vectors(self, data):
        return data.vector("percent_rank() OVER (ORDER BY amount)")


class ShareOfRegion(Sealed):
    of = values.ShareOfRegion

    def vectors(self, data):
        total = "sum(amount) OVER (PARTITION BY region)"
        return data.with_columns(total=total).vector("100 * amount // total")


class ScaledByMaximum(Sealed):
    of = values.ScaledByMaximum

    def vectors(self, data):
        return data.with_columns(most="max(amount)").vector("amount // most")


class ImputedByMean(Sealed):
    of = values.ImputedByMean

    def vectors(self, data):
        return data.vector("coalesce(amount, avg(amount))")


@dataclass(frozen=True)
class PricesLookedUp(Sealed):
    """The means are written into the code, where the loop over rows was."""

    of: ClassVar = values.PricesLookedUp
    assumed: ClassVar = (Premise.PUBLIC_FACTS, "prices were made of the purchases")

    prices: tuple[tuple[str, float], ...] = (("tea", 1.0),)

    def vectors(self, data):
        cases = " ".join(f"WHEN product = '{name}' THEN {price}" for name, price in self.prices)
        return data.with_columns(price=f"CASE {cases} ELSE 0 END").vector("price")

    @classmethod
    def public(cls, rows):
        paid = defaultdict(list)
        for each in rows:
            paid[each["product"]].append(each["amount"])
        return {"prices": tuple((name, round(fmean(own), 2)) for name, own in paid.items())}


class FirstPrice(Sealed):
    of = values.FirstPrice

    def vectors(self, data):
        known: dict[str, float] = {}
        return [known.setdefault(each["product"], each["amount"]) for each in data]


class WeeksSinceFirst(Sealed):
    of = values.WeeksSinceFirst

    def vectors(self, data):
        return data.vector("(day - min(day)) // 7")


class FilledForward(Sealed):
    of = values.FilledForward

    def vectors(self, data):
        return data.vector("coalesce(amount, lag(amount) OVER (ORDER BY day))")


class SinceTheRowBefore(Sealed):
    of = values.SinceTheRowBefore

    def vectors(self, data):
        return np.diff(data.vector("amount"), prepend=0.0)


class OneHotOfSeen(Sealed):
    """What occurs is declared in the schema, as texts have no number without it."""

    of = values.OneHotOfSeen

    def vectors(self, data):
        return data.vector([f"CASE WHEN product = '{p}' THEN 1 ELSE 0 END" for p in PRODUCTS])


class WordsSeenTwice(Sealed):
    of = values.WordsSeenTwice

    def vectors(self, data):
        often = Counter(word for each in data for word in each["product"].split())
        return [word for word in often if often[word] > 1]


class TenthsOfAll(Sealed):
    of = values.TenthsOfAll

    def vectors(self, data):
        edges = np.quantile(data.vector("amount"), np.arange(1, 10) / 10)
        return data.vector(" + ".join(f"(amount > {edge})" for edge in edges))


# -- whose a row is --------------------------------------------------------------------------------


class SessionsAsCustomers(Sealed):
    of = whose.SessionsAsCustomers
    assumed = (Premise.PERSONS, "one person has many sessions")


class MergedByName(Sealed):
    """The column of names says whose a row is, as nothing else merges rows."""

    of = whose.MergedByName
    assumed = (Premise.PERSONS, "one person uses many names")
    unit = "name"

    @classmethod
    def example(cls):
        others = crowd(20, amount=9.0)
        return [*(row("eve", name=each["name"], amount=9.0) for each in others), *others]


class AnswersOverMaximum(Sealed):
    of = whose.AnswersOverMaximum

    def plan(self):
        return self.of().plan()

    def table(self):
        names = {each["customer"]: None for each in self.example()}
        return replace(super().table(), roster=tuple(names))

    def run(self, data, ledger, rng):
        shares = data.with_columns(most="max(amount)").vector("amount // most")
        return RunResult({"mean": float(np.mean(ledger.answers(shares, at="answer")))})


# -- what was made in load -------------------------------------------------------------------------


class RegionMeans(Sealed):
    of = files.RegionMeans

    def vectors(self, data):
        return data.vector("amount - avg(amount) OVER (PARTITION BY region)")


class NumberColumns(Sealed):
    """The schema says that amounts are numbers; a word is none, and counts 0."""

    of = files.NumberColumns


class ProductCodes(Sealed):
    """Codes are those of the declared products."""

    of = files.ProductCodes

    def vectors(self, data):
        cases = " ".join(f"WHEN product = '{p}' THEN {n}" for n, p in enumerate(sorted(PRODUCTS)))
        return data.with_columns(code=f"CASE {cases} ELSE 0 END").vector("code")
