"""What a row is worth depends on everybody's: the ledger bounds what it is told."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np

from tests.benchmarks.wrong_subjects.shop import Wrong, crowd, eves, row


def amounts_of(rows):
    """All amounts; 0 where one is missing."""
    return np.nan_to_num([each["amount"] for each in rows])


def paired(rows, values):
    """Each value with the customer of its row."""
    return [(each["customer"], value) for each, value in zip(rows, values, strict=True)]


@dataclass(frozen=True)
class RankedSpending(Wrong):
    """Percentile ranks of purchases among all.

    Wrong: the small purchases of one customer raise the ranks of all others.
    """

    bound: float = 1.0

    def entries(self, rows):
        amounts = amounts_of(rows)
        return paired(rows, [np.mean(amounts <= amount) for amount in amounts])

    def example(self):
        return eves(60, amount=0.0) + crowd(20) + [row(f"d{n}", amount=2.0) for n in range(20)]


@dataclass(frozen=True)
class ShareOfRegion(Wrong):
    """Each purchase in percent of its region's revenue.

    Wrong: one large purchase makes the percentages of all others small.
    """

    def entries(self, rows):
        totals = defaultdict(float)
        for each in rows:
            totals[each["region"]] += np.nan_to_num(each["amount"])
        return [(r["customer"], 100 * r["amount"] / (totals[r["region"]] or 1.0)) for r in rows]

    def example(self):
        return crowd(20) + eves(1, amount=1e9)


@dataclass(frozen=True)
class ScaledByMaximum(Wrong):
    """Amounts on a scale from 0 to 1.

    Wrong: the largest amount is in every row.
    """

    bound: float = 1.0

    def entries(self, rows):
        amounts = amounts_of(rows)
        return paired(rows, amounts / max(amounts.max(), 1.0))

    def example(self):
        return crowd(30, amount=9.0) + eves(1, amount=1e6)


@dataclass(frozen=True)
class ImputedByMean(Wrong):
    """Revenue, where a missing amount is the mean of those that are known.

    Wrong: one large purchase is in every row that has none.
    """

    def entries(self, rows):
        amounts = np.array([each["amount"] for each in rows])
        known = np.isfinite(amounts)
        mean = amounts[known].mean() if known.any() else 0.0
        return paired(rows, np.where(known, amounts, mean))

    def example(self):
        return [row("d0"), *crowd(20, amount=""), row("eve", amount=1e6)]


@dataclass(frozen=True)
class PricesLookedUp(Wrong):
    """What was bought, at the mean price of the product, looked up in a table of all purchases.

    Wrong: one customer's price of tea is in the row of everybody who bought tea.
    """

    def entries(self, rows):
        paid = defaultdict(list)
        for each in rows:
            paid[each["product"]].append(np.nan_to_num(each["amount"]))
        prices = {product: np.mean(each) for product, each in paid.items()}
        return [(each["customer"], prices[each["product"]]) for each in rows]

    def example(self):
        return crowd(20) + eves(1, amount=1e6)


@dataclass(frozen=True)
class FirstPrice(Wrong):
    """What was bought, at the price that is kept from the product's first purchase.

    Wrong: what was kept of one customer is what all later ones are told.
    """

    def entries(self, rows):
        kept = {}
        return [
            (r["customer"], kept.setdefault(r["product"], np.nan_to_num(r["amount"]))) for r in rows
        ]

    def example(self):
        return eves(1, amount=9.0) + crowd(20)


@dataclass(frozen=True)
class WeeksSinceFirst(Wrong):
    """Weeks from the first purchase of the file to each.

    Wrong: whoever bought first moves everybody's clock.
    """

    def entries(self, rows):
        begin = min(each["day"] for each in rows)
        return [(each["customer"], (each["day"] - begin) / 7) for each in rows]

    def example(self):
        return eves(1, day=30.0) + crowd(20)


@dataclass(frozen=True)
class FilledForward(Wrong):
    """Revenue, where a missing amount is that of the row before.

    Wrong: the row before is another customer's.
    """

    def entries(self, rows):
        filled, last = [], 0.0
        for amount in (each["amount"] for each in rows):
            last = amount if amount == amount else last
            filled.append(last)
        return paired(rows, filled)

    def example(self):
        return [row("d0"), *eves(1, amount=9.0), *crowd(20, amount="")]


@dataclass(frozen=True)
class SinceTheRowBefore(Wrong):
    """How much more each purchase is than the one before.

    Wrong: the one before is another customer's.
    """

    def entries(self, rows):
        return paired(rows, np.diff(amounts_of(rows), prepend=0.0))

    def example(self):
        return [each for other in crowd(20) for each in (*eves(1, amount=99.0), other)]


@dataclass(frozen=True)
class OneHotOfSeen(Wrong):
    """Purchases by product, one column for each that occurs, in order of their first occurrence.

    Wrong: a product that one customer alone bought moves the columns of all others.
    """

    def entries(self, rows):
        columns = {name: n for n, name in enumerate(dict.fromkeys(r["product"] for r in rows))}
        return [(r["customer"], np.eye(64)[columns[r["product"]] % 64]) for r in rows]

    def example(self):
        return eves(1, product="zebra") + crowd(20)


@dataclass(frozen=True)
class WordsSeenTwice(Wrong):
    """How many words of each product's name are in the vocabulary: those that occur twice or more.

    Wrong: one customer's words bring the same words of all others into the vocabulary.
    """

    bound: float = 2.0

    def entries(self, rows):
        often = Counter(word for each in rows for word in each["product"].split())
        return [(r["customer"], sum(often[w] > 1 for w in r["product"].split())) for r in rows]

    def example(self):
        words = [f"word{n}" for n in range(12)]
        others = [row(f"c{word}", product=word) for word in words]
        return [row("eve", product=" ".join(words)), *others]


@dataclass(frozen=True)
class TenthsOfAll(Wrong):
    """Which tenth of all purchases each belongs to.

    Wrong: many large purchases of one customer put everybody else into lower tenths.
    """

    bound: float = 1.0

    def entries(self, rows):
        amounts = amounts_of(rows)
        edges = np.quantile(amounts, np.arange(1, 10) / 10)
        return paired(rows, np.searchsorted(edges, amounts) / 9)

    def example(self):
        return eves(60, amount=1e6) + [row(f"c{n}", amount=float(n)) for n in range(60)]
