"""Queries of SmartNoise SQL on a frame of pandas; each row is a privacy unit."""

from __future__ import annotations

import pandas as pd
import snsql
from snsql import Mechanism, Privacy, Stat

COLUMNS = {
    "age": {"type": "int", "lower": 0, "upper": 100},
    "income": {"type": "int", "lower": 0, "upper": 100},
    "region": {"type": "string"},
}


def asked(rows, *queries, censor=False, noise=None):
    """Answers to queries of one reader; each number costs 1."""
    privacy = Privacy(epsilon=1.0, delta=1e-6)
    for stat in (Stat.count, Stat.sum_int, Stat.sum_large_int) if noise else ():
        privacy.mechanisms.map[stat] = noise
    table = {"row_privacy": True, "censor_dims": censor, **COLUMNS}
    frame = pd.DataFrame(rows)[list(COLUMNS)]
    reader = snsql.from_df(frame, privacy=privacy, metadata={"": {"": {"people": table}}})
    return [[list(row) for row in reader.execute(query)[1:]] for query in queries]


def count(rows):
    """How many rows there are."""
    return asked(rows, "SELECT COUNT(*) AS n FROM people")


def total(rows):
    """A sum of clamped values."""
    return asked(rows, "SELECT SUM(age) AS n FROM people")


def mean(rows):
    """A mean, of a sum and a count."""
    return asked(rows, "SELECT AVG(age) AS n FROM people")


def variance(rows):
    """A variance, of a count and two sums."""
    return asked(rows, "SELECT VAR(age) AS n FROM people")


def several(rows):
    """Two sums and a count in one query."""
    return asked(rows, "SELECT COUNT(*) AS n, SUM(age) AS a, SUM(income) AS i FROM people")


def gaussian(rows):
    """A count and a sum with Gaussian noise."""
    return asked(rows, "SELECT COUNT(*) AS n, SUM(age) AS a FROM people", noise=Mechanism.gaussian)


def by_region(rows):
    """How many are from each region, whichever occur."""
    return asked(rows, "SELECT region, COUNT(*) AS n FROM people GROUP BY region")


def hidden_regions(rows):
    """The same, without regions that are rare."""
    query = "SELECT region, COUNT(*) AS n FROM people GROUP BY region"
    return asked(rows, query, censor=True)


def two_queries(rows):
    """A count and a sum, one after the other."""
    return asked(rows, "SELECT COUNT(*) AS n FROM people", "SELECT SUM(income) AS n FROM people")
