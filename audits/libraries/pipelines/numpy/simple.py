"""Noise that people write themselves, with numpy and scipy."""

from __future__ import annotations

import numpy as np
from scipy import stats

REGIONS = ("east", "north", "south", "west")
SIZE = 60
"""A public number of rows."""


def column(rows, name="age"):
    """One column, within 0 and 100."""
    return np.clip([row[name] for row in rows], 0, 100).astype(float)


def total(rows, rng):
    """A sum of clipped values."""
    return float(column(rows).sum() + rng.laplace(scale=100.0))


def unclipped_total(rows, rng):
    """The same, where nobody clips."""
    return float(sum(row["age"] for row in rows) + rng.laplace(scale=100.0))


def mean(rows, rng):
    """A mean of a public number of rows."""
    return float(column(rows).sum() / SIZE + rng.laplace(scale=100 / SIZE))


def mean_of_range(rows, rng):
    """A mean whose noise follows the largest value that occurs."""
    values = np.array([row["age"] for row in rows], dtype=float)
    return float(values.mean() + rng.laplace(scale=values.max() / len(values)))


def histogram(rows, rng):
    """How many are from each region."""
    counts = np.array([sum(row["region"] == name for row in rows) for name in REGIONS], float)
    return (counts + rng.laplace(scale=1.0, size=4)).tolist()


def means(rows, rng):
    """Two means with Gaussian noise, of which each has its own."""
    both = np.array([column(rows).sum(), column(rows, "income").sum()]) / SIZE
    return (both + rng.normal(scale=6.3, size=2)).tolist()


def moments(rows, rng):
    """A sum, and a sum of squares."""
    age = column(rows)
    first = float(age.sum() + rng.laplace(scale=200.0))
    return [first, float((age**2).sum() + rng.laplace(scale=20_000.0))]


def thresholds(rows, rng):
    """How many are above each of twenty ages."""
    counts = np.array([(column(rows) > 5 * step).sum() for step in range(20)], float)
    return (counts + rng.laplace(scale=20.0, size=20)).tolist()


def running(rows, rng):
    """How many of the first ten, twenty, … rows smoke."""
    smokes = np.array([bool(row["smokes"]) for row in rows], float)
    counts = np.array([smokes[: 10 * step].sum() for step in range(1, 7)])
    return (counts + rng.laplace(scale=6.0, size=6)).tolist()


def cheap_thresholds(rows, rng):
    """The same, with the noise of a single one."""
    counts = np.array([(column(rows) > 5 * step).sum() for step in range(20)], float)
    return (counts + rng.laplace(scale=1.0, size=20)).tolist()


def gradient(rows, rng):
    """A sum of gradients of a line through the origin, each of length at most 1."""
    x, y = column(rows) / 100, column(rows, "income") / 100
    slopes = np.clip(2 * x * (0.5 * x - y), -1, 1)
    return float(slopes.sum() + rng.normal(scale=4.0))


def steps(rows, rng):
    """Five such steps, each from where the one before it ended."""
    x, y, slope = column(rows) / 100, column(rows, "income") / 100, 0.0
    for _ in range(5):
        clipped = np.clip(2 * x * (slope * x - y), -1, 1)
        slope -= 0.01 * float(clipped.sum() + rng.normal(scale=9.0))
    return slope


def frozen(rows):
    """A count with noise of scipy."""
    return float(sum(bool(row["smokes"]) for row in rows) + stats.laplace(scale=1.0).rvs())


def whole(rows):
    """A count with discrete Laplace noise of scipy."""
    return int(sum(bool(row["smokes"]) for row in rows) + stats.dlaplace(1.0).rvs())


def answer(rows, rng):
    """Randomised response of the first one."""
    return bool(rows[0]["smokes"]) == bool(rng.random() < np.e / (1 + np.e))


def one_sided(rows, rng):
    """The index of the largest count, with exponential noise."""
    counts = np.array([sum(row["region"] == name for row in rows) for name in REGIONS], float)
    return int((counts + rng.exponential(scale=2.0, size=4)).argmax())


def loudest(rows, rng):
    """The largest noisy count itself, and whose it is."""
    counts = np.array([sum(row["region"] == name for row in rows) for name in REGIONS], float)
    noisy = counts + rng.laplace(scale=1.0, size=4)
    return [int(noisy.argmax()), float(counts.max() + rng.laplace(scale=1.0))]


def reused(rows, rng):
    """Two counts that share one draw of noise."""
    noise = float(rng.laplace(scale=2.0))
    smokers = float(sum(bool(row["smokes"]) for row in rows))
    return [smokers + noise, float(sum(row["region"] == "east" for row in rows)) + noise]


def lowest_bits(rows, rng):
    """Whether a noisy count has finer bits than one with a larger count can have."""
    noisy = float(sum(bool(row["smokes"]) for row in rows) + rng.laplace())
    return bool(abs(noisy) < 0.5 and (noisy * 2**53) % 1)
