"""One query each, as diffprivlib's documentation shows them, with bounds that are public."""

from __future__ import annotations

from diffprivlib import tools


def ages(rows):
    """The column that most of them ask."""
    return [row["age"] for row in rows]


def mean(rows):
    """The mean age."""
    return float(tools.mean(ages(rows), epsilon=1.0, bounds=(0, 100)))


def mean_without_bounds(rows):
    """The same, where the bounds are left to the library."""
    return float(tools.mean(ages(rows), epsilon=1.0))


def total(rows):
    """The sum of ages."""
    return float(tools.sum(ages(rows), epsilon=1.0, bounds=(0, 100)))


def count(rows):
    """How many smoke."""
    return int(tools.count_nonzero([row["smokes"] for row in rows], epsilon=1.0))
