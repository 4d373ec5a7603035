"""Several queries with one budget, which diffprivlib's accountant adds up."""

from __future__ import annotations

import numpy as np
from diffprivlib import BudgetAccountant, tools
from diffprivlib.models import LinearRegression, StandardScaler

REGIONS = ("east", "north", "south", "west")
TRIALS = 24


def column(rows, name):
    """One column, as floats."""
    return np.array([row[name] for row in rows], dtype=float)


def summary(rows):
    """A count, a mean and a spread."""
    budget = BudgetAccountant()
    age = column(rows, "age")
    return [
        float(tools.count_nonzero(column(rows, "smokes"), epsilon=0.2, accountant=budget)),
        float(tools.mean(age, epsilon=0.4, bounds=(0, 100), accountant=budget)),
        float(tools.std(age, epsilon=0.4, bounds=(0, 100), accountant=budget)),
    ]


def regions(rows):
    """A count and a total for each region."""
    budget, found = BudgetAccountant(), []
    for region in REGIONS:
        own = np.array([row["income"] * (row["region"] == region) for row in rows], dtype=float)
        here = [row["region"] == region for row in rows]
        found.append(int(tools.count_nonzero(here, epsilon=0.05, accountant=budget)))
        found.append(float(tools.sum(own, epsilon=0.2, bounds=(0, 100), accountant=budget)))
    return found


def thresholds(rows):
    """How many are above each of two dozen ages."""
    budget, age = BudgetAccountant(), column(rows, "age")
    return [
        int(tools.count_nonzero(age > 4 * step, epsilon=1 / TRIALS, accountant=budget))
        for step in range(TRIALS)
    ]


def with_slack(rows):
    """The same, where the accountant may use advanced composition."""
    budget, age = BudgetAccountant(slack=1e-5), column(rows, "age")
    return [
        int(tools.count_nonzero(age > 4 * step, epsilon=0.02, accountant=budget))
        for step in range(TRIALS)
    ]


def tables(rows):
    """Two histograms of the same people."""
    budget, found = BudgetAccountant(), []
    for name in ("age", "income"):
        given = {"bins": 4, "range": (0, 100), "epsilon": 0.5, "accountant": budget}
        found += tools.histogram(column(rows, name), **given)[0].tolist()
    return found


def scaled_regression(rows):
    """Columns that are scaled, and a line through them."""
    budget = BudgetAccountant()
    table = np.column_stack([column(rows, "age"), column(rows, "income")])
    scaler = StandardScaler(epsilon=0.5, bounds=(0, 100), accountant=budget).fit(table)
    scaled = np.clip(scaler.transform(table), -3, 3)
    model = LinearRegression(
        epsilon=0.5, bounds_X=(-3, 3), bounds_y=(-3, 3), fit_intercept=False, accountant=budget
    )
    model.fit(scaled[:, :1], scaled[:, 1])
    return [*scaler.mean_.tolist(), float(model.coef_[0])]


def quantiles(rows):
    """A median, and two quantiles around it, of each of two columns."""
    budget, found = BudgetAccountant(), []
    for name in ("age", "income"):
        given = {"epsilon": 0.5, "bounds": (0, 100), "accountant": budget}
        found += tools.quantile(column(rows, name), [0.25, 0.5, 0.75], **given).tolist()
    return found


def moments(rows):
    """Means and variances of two columns."""
    budget, found = BudgetAccountant(), []
    for name in ("age", "income"):
        given = {"epsilon": 0.25, "bounds": (0, 100), "accountant": budget}
        found.append(float(tools.mean(column(rows, name), **given)))
        found.append(float(tools.var(column(rows, name), **given)))
    return found
