"""One query each, as diffprivlib's documentation shows them, with bounds that are public."""

from __future__ import annotations

import numpy as np
from diffprivlib import tools


def ages(rows):
    """The column that most of them ask."""
    return np.array([row["age"] for row in rows], dtype=float)


def mean(rows):
    """The mean age."""
    return float(tools.mean(ages(rows), epsilon=1.0, bounds=(0, 100)))


def mean_without_bounds(rows):
    """The same, where the bounds are left to the library."""
    return float(tools.mean(ages(rows), epsilon=1.0))


def mean_of_columns(rows):
    """Two means at once, along an axis."""
    table = np.array([[row["age"], row["income"]] for row in rows], dtype=float)
    bounds = ([0, 0], [100, 100])
    return tools.mean(table, epsilon=1.0, bounds=bounds, axis=0).tolist()


def mean_of_known(rows):
    """The mean of what is not missing."""
    return float(tools.nanmean(ages(rows), epsilon=1.0, bounds=(0, 100)))


def total(rows):
    """The sum of ages."""
    return float(tools.sum(ages(rows), epsilon=1.0, bounds=(0, 100)))


def whole_total(rows):
    """The sum of ages as whole numbers, with geometric noise."""
    found = np.array([row["age"] for row in rows], dtype=int)
    return int(tools.sum(found, epsilon=1.0, bounds=(0, 100), dtype=int))


def count(rows):
    """How many smoke."""
    return int(tools.count_nonzero([row["smokes"] for row in rows], epsilon=1.0))


def variance(rows):
    """The variance of ages."""
    return float(tools.var(ages(rows), epsilon=1.0, bounds=(0, 100)))


def deviation(rows):
    """Their standard deviation."""
    return float(tools.std(ages(rows), epsilon=1.0, bounds=(0, 100)))


def histogram(rows):
    """How many are in each of five ranges of ages."""
    return tools.histogram(ages(rows), epsilon=1.0, bins=5, range=(0, 100))[0].tolist()


def histogram_without_range(rows):
    """The same, where the ranges are left to the library."""
    return tools.histogram(ages(rows), epsilon=1.0, bins=5)[0].tolist()


def two_way_histogram(rows):
    """Ages by incomes."""
    incomes = np.array([row["income"] for row in rows], dtype=float)
    bounds = [[0, 100], [0, 100]]
    found = tools.histogram2d(ages(rows), incomes, epsilon=1.0, bins=2, range=bounds)
    return found[0].tolist()


def median(rows):
    """The median age."""
    return float(tools.median(ages(rows), epsilon=1.0, bounds=(0, 100)))


def quartiles(rows):
    """Three quantiles, which share the budget."""
    found = tools.quantile(ages(rows), [0.25, 0.5, 0.75], epsilon=1.0, bounds=(0, 100))
    return found.tolist()


def percentile(rows):
    """The ninetieth percentile."""
    return float(tools.percentile(ages(rows), 90, epsilon=1.0, bounds=(0, 100)))
