"""Queries of Tumult Analytics; each row is one of its units."""

from __future__ import annotations

import os
import sys
from fractions import Fraction

from pyspark.sql import SparkSession
from tmlt.analytics import (
    AddOneRow,
    KeySet,
    PureDPBudget,
    QueryBuilder,
    RhoZCDPBudget,
    Session,
)

os.environ["PYSPARK_PYTHON"] = sys.executable
REGIONS = KeySet.from_tuples([("east",), ("north",), ("south",), ("west",)], ["region"])
PEOPLE = QueryBuilder("people")


def spark():
    """A Spark of one thread, without a page of its own."""
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "1",
        "spark.default.parallelism": "1",
    }
    builder = SparkSession.builder.master("local[1]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def asked(rows, *queries, budget=None, change=None):
    """Answers to queries, each for a budget of its own."""
    budget = budget or PureDPBudget(1.0)
    kept = [(int(row["age"]), int(row["income"]), str(row["region"])) for row in rows]
    session = Session.from_dataframe(
        privacy_budget=_times(budget, len(queries)),
        source_id="people",
        dataframe=spark().createDataFrame(kept, "age long, income long, region string"),
        protected_change=change or AddOneRow(),
    )
    answers = [session.evaluate(query, budget).collect() for query in queries]
    return [sorted([str(each) for each in row] for row in answer) for answer in answers]


def _times(budget, number):
    return type(budget)(float(Fraction(str(budget.value))) * number)


def count(rows):
    """How many rows there are."""
    return asked(rows, PEOPLE.count())


def total(rows):
    """A sum of clamped values."""
    return asked(rows, PEOPLE.sum("age", 0, 100))


def average(rows):
    """A mean, from a sum and a count with half of the budget each."""
    return asked(rows, PEOPLE.average("age", 0, 100))


def variance(rows):
    """A variance, from a count, a sum and a sum of squares."""
    return asked(rows, PEOPLE.variance("age", 0, 100))


def counts(rows):
    """How many rows each of four regions has."""
    return asked(rows, PEOPLE.groupby(REGIONS).count())


def totals_and_counts(rows):
    """Sums and numbers of rows by region, which share a budget of 2."""
    by_region = PEOPLE.groupby(REGIONS)
    return asked(rows, by_region.sum("income", 0, 100), by_region.count())


def medians(rows):
    """A median for each region."""
    return asked(rows, PEOPLE.groupby(REGIONS).median("age", 0, 100))


def concentrated(rows):
    """Sums by region with discrete Gaussian noise."""
    return asked(rows, PEOPLE.groupby(REGIONS).sum("age", 0, 100), budget=RhoZCDPBudget(0.5))
