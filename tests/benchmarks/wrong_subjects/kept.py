"""Which rows are kept depends on everybody's: the ledger bounds those that are left."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from tests.benchmarks.wrong_subjects.shop import Wrong, crowd, eves, row


@dataclass(frozen=True)
class UniqueProducts(Wrong):
    """Different products sold, each counted for whoever bought it first.

    Wrong: without the first buyer of many products, as many others come in.
    """

    bound: float = 2.0

    def entries(self, rows):
        first = {each["product"]: each["customer"] for each in reversed(rows)}
        return [(customer, 1.0) for customer in first.values()]

    def example(self):
        products = [f"p{number}" for number in range(8)]
        mine = [row("eve", product=each) for each in products]
        return mine + [row(f"c{each}", product=each) for each in products]


@dataclass(frozen=True)
class LatestWindow(Wrong):
    """Revenue of the last thirty days of the file.

    Wrong: whoever bought last says when the window begins.
    """

    def entries(self, rows):
        end = max(each["day"] for each in rows)
        return [
            (each["customer"], each["amount"] if each["day"] > end - 30 else 0.0) for each in rows
        ]

    def example(self):
        return crowd(30, amount=9.0) + eves(1, day=900.0)


@dataclass(frozen=True)
class FirstBuyers(Wrong):
    """What the first twenty e-mail addresses spent that ever bought something.

    Wrong: a customer with twenty addresses takes the places of twenty others.
    """

    def entries(self, rows):
        ordered = sorted(rows, key=lambda each: each["day"])
        first = {each["email"]: each for each in reversed(ordered)}
        chosen = sorted(first.values(), key=lambda each: each["day"])[:20]
        return [(each["customer"], each["amount"]) for each in chosen]

    def example(self):
        mine = [row("eve", day=1.0, email=f"eve+{n}@home", amount=0.0) for n in range(20)]
        return mine + crowd(20, amount=9.0)


@dataclass(frozen=True)
class CheapestFirst(Wrong):
    """Revenue of the twenty cheapest purchases.

    Wrong: twenty cheap ones of one customer push out those of twenty others.
    """

    def entries(self, rows):
        cheap = sorted(rows, key=lambda each: np.nan_to_num(each["amount"]))[:20]
        return [(each["customer"], each["amount"]) for each in cheap]

    def example(self):
        return eves(20, amount=0.0) + crowd(20, amount=9.0)


@dataclass(frozen=True)
class OutliersRemoved(Wrong):
    """Revenue without what lies more than two standard deviations from the mean.

    Wrong: one large purchase makes the deviation large, and none of the others an outlier.
    """

    def entries(self, rows):
        amounts = np.nan_to_num([each["amount"] for each in rows])
        usual = np.abs(amounts - amounts.mean()) <= 2 * amounts.std()
        return [
            (each["customer"], amount * kept)
            for each, amount, kept in zip(rows, amounts, usual, strict=True)
        ]

    def example(self):
        return (
            crowd(40, amount=0.0)
            + [row(f"d{n}", amount=9.0) for n in range(5)]
            + [row("eve", amount=1e6)]
        )


@dataclass(frozen=True)
class EveryThird(Wrong):
    """Three times the revenue of every third row, as a quick sample.

    Wrong: a row before the others moves all of them by one place.
    """

    def entries(self, rows):
        return [(each["customer"], 3 * each["amount"]) for each in rows[::3]]

    def example(self):
        return eves(1, amount=0.0) + [row(f"c{n}", amount=3.0 * (n % 3 == 0)) for n in range(30)]


@dataclass(frozen=True)
class RareProductsDropped(Wrong):
    """Purchases of products that were sold five times or more, for the others' privacy.

    Wrong: one customer's purchase of a product brings in those of four others.
    """

    bound: float = 2.0

    def entries(self, rows):
        often = Counter(each["product"] for each in rows)
        return [(each["customer"], float(often[each["product"]] >= 5)) for each in rows]

    def example(self):
        return [
            row(f"c{product}-{n}" if n else "eve", product=f"p{product}")
            for product in range(8)
            for n in range(5)
        ]


@dataclass(frozen=True)
class BalancedRegions(Wrong):
    """Revenue of the north and of as many rows of elsewhere, so that classes are balanced.

    Wrong: a customer with thirty rows of the north brings in thirty rows of others.
    """

    def entries(self, rows):
        north = [each for each in rows if each["region"] == "north"]
        elsewhere = [each for each in rows if each["region"] != "north"][: len(north)]
        return [(each["customer"], each["amount"]) for each in (*north, *elsewhere)]

    def example(self):
        return [row("d0"), *eves(30), *crowd(30, region="south", amount=9.0)]
