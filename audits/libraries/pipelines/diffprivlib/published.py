"""What others have found wrong, or left open, in diffprivlib; as they describe it."""

from __future__ import annotations

import numpy as np
from diffprivlib import models, tools

FAR = 2.0**52


def column(rows, name="age"):
    """One column, where a missing number is no number."""
    return np.array([np.nan if row[name] is None else row[name] for row in rows], dtype=float)


def slope(rows, rng):
    """A line through the origin, of columns from 0 on."""
    given = {"bounds_X": (0, 100), "bounds_y": (0, 100), "fit_intercept": False}
    model = models.LinearRegression(epsilon=1.0, random_state=int(rng.integers(2**31)), **given)
    model.fit(np.clip(column(rows), 0, 100)[:, None], np.clip(column(rows, "income"), 0, 100))
    return float(model.coef_[0])


def unclipped_slope(rows, rng):
    """The same, of data beyond the stated bounds, which lie around the origin."""
    given = {"bounds_X": (-50, 50), "bounds_y": (-50, 50), "fit_intercept": False}
    model = models.LinearRegression(epsilon=1.0, random_state=int(rng.integers(2**31)), **given)
    model.fit(column(rows)[:, None], column(rows, "income"))
    return float(model.coef_[0])


def labels(rows, rng):
    """Which classes a logistic regression knows."""
    model = models.LogisticRegression(data_norm=100.0, random_state=int(rng.integers(2**31)))
    model.fit(column(rows)[:, None], column(rows, "group"))
    return model.coef_.shape[0]


def classes(rows, rng):
    """Which classes naive Bayes knows."""
    model = models.GaussianNB(bounds=(0, 100), random_state=int(rng.integers(2**31)))
    return model.fit(column(rows)[:, None], column(rows, "group")).theta_.shape[0]


def class_counts(rows, rng):
    """How many of each class naive Bayes says that there are."""
    model = models.GaussianNB(bounds=(0, 100), random_state=int(rng.integers(2**31)))
    return float(model.fit(column(rows)[:, None], column(rows, "group")).class_count_.sum())


def median(rows, rng):
    """A median of numbers of which one may be missing."""
    state = int(rng.integers(2**31))
    return float(tools.median(column(rows), epsilon=1.0, bounds=(0, 100), random_state=state))


def mean(rows, rng):
    """A mean of the same."""
    state = int(rng.integers(2**31))
    return float(tools.mean(column(rows), epsilon=1.0, bounds=(0, 100), random_state=state))


def crowded_median(runs, rng):
    """A median of whole numbers; they come as [value, how often]."""
    values = np.repeat([value for value, _ in runs], [times for _, times in runs])
    state = int(rng.integers(2**31))
    return float(tools.median(values, epsilon=1.0, bounds=(0, 100), random_state=state))


def far_total(runs, rng):
    """A sum of numbers in [2^52, 2^52 + 1], less what all have; they come as [more, how often]."""
    values = np.repeat([FAR + more for more, _ in runs], [times for _, times in runs])
    state, bounds = int(rng.integers(2**31)), (FAR, FAR + 1)
    found = tools.sum(values, epsilon=1.0, bounds=bounds, random_state=state)
    return float(found - len(values) * FAR)


def small_total(rows, rng):
    """A sum of whole numbers in 8 bits."""
    values = np.array([row["age"] for row in rows], dtype=np.int8)
    given = {"epsilon": 1.0, "bounds": (0, 100), "dtype": np.int8}
    return int(tools.sum(values, random_state=int(rng.integers(2**31)), **given))


def votes(rows, rng):
    """What ten trees of a forest say, of which each has its share of the rows."""
    given = {"n_estimators": 10, "bounds": (0, 100), "classes": [0, 1], "max_depth": 1}
    model = models.RandomForestClassifier(random_state=int(rng.integers(2**31)), **given)
    model.fit(column(rows)[:, None], column(rows, "smokes").astype(int))
    return int(sum(each.predict([[50]])[0] * (-1) ** n for n, each in enumerate(model.estimators_)))


def vote(rows, rng):
    """What one tree says."""
    given = {"bounds": (0, 100), "classes": [0, 1], "max_depth": 1}
    model = models.DecisionTreeClassifier(random_state=int(rng.integers(2**31)), **given)
    model.fit(column(rows)[:, None], column(rows, "smokes").astype(int))
    return int(model.predict([[50]])[0])


def inertia(rows, rng):
    """How far all points are from their centres, as the model tells it, and from its centre."""
    given = {"n_clusters": 1, "bounds": (0, 100), "random_state": int(rng.integers(2**31))}
    model = models.KMeans(epsilon=1.0, **given).fit(column(rows)[:, None])
    centre = float(model.cluster_centers_[0, 0])
    return [centre, float(model.inertia_) - len(rows) * (50 - centre) ** 2]
