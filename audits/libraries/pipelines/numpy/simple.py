"""Noise that people write themselves, with numpy and scipy."""

from __future__ import annotations

import numpy as np


def ages(rows):
    """The column that most of them ask, within 0 and 100."""
    return np.clip([row["age"] for row in rows], 0, 100)


def total(rows, rng):
    """A sum of clipped values."""
    return float(ages(rows).sum() + rng.laplace(scale=100.0))


def unclipped_total(rows, rng):
    """The same, where nobody clips."""
    return float(sum(row["age"] for row in rows) + rng.laplace(scale=100.0))
