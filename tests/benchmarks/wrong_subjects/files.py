"""What is made of everybody's rows before the run begins, in load."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

from tests.benchmarks.right_subjects.frames import library
from tests.benchmarks.wrong_subjects.shop import Wrong, crowd, eves, row


@dataclass(frozen=True)
class RegionMeans(Wrong):
    """How much each purchase is above the mean of its region, made in load of a sorted file.

    Wrong: one large purchase is in all rows of its region, which are few of the file.
    """

    def load(self, source, rng):
        rows = super().load(source, rng)
        known = [each for each in rows if each["amount"] == each["amount"]]
        regions = {each["region"] for each in known}
        means = {r: fmean(k["amount"] for k in known if k["region"] == r) for r in regions}
        return [r | {"amount": r["amount"] - means.get(r["region"], 0.0)} for r in rows]

    def entries(self, rows):
        return [(each["customer"], each["amount"]) for each in rows]

    def example(self):
        return [*crowd(20), *eves(1, amount=1e6)]


@dataclass(frozen=True)
class NumberColumns(Wrong):
    """The sum of all columns that hold numbers, as pandas finds them.

    Wrong: a word in one row makes texts of everybody's column.
    """

    def load(self, source, rng):
        frame = library("pandas").read_csv(source)
        numbers = frame[["amount"]].select_dtypes("number")
        return frame[["customer"]].assign(total=numbers.sum(axis=1).astype(float))

    def entries(self, rows):
        return list(zip(rows["customer"], rows["total"], strict=True))

    def example(self):
        return [*crowd(20, amount=9.0), row("eve", amount="unknown")]


@dataclass(frozen=True)
class ProductCodes(Wrong):
    """Means of codes of products, which are a category of pandas.

    Wrong: a product that one customer alone bought moves the codes of all that come after it.
    """

    def load(self, source, rng):
        frame = library("pandas").read_csv(source)
        codes = frame["product"].astype("category").cat.codes
        return frame[["customer"]].assign(code=codes.astype(float))

    def entries(self, rows):
        return list(zip(rows["customer"], rows["code"], strict=True))

    def example(self):
        mine = [row("eve", product=f"a{n}", amount=0.0) for n in range(9)]
        return [*mine, *crowd(20)]
