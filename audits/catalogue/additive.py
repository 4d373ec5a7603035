"""Numbers and vectors with Laplace noise, and ways to get its scale wrong.

Each row states an ε and gives two neighbouring inputs for which the law of the outputs is known.
Right mechanisms stand beside the mistakes that are made with them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from audits.catalogue.entry import PURE, Entry, Floats, Release
from dpaudit import Claim, DiscreteLaplace, Laplace
from dpaudit.auditing.distinguishing.scores import FixedScore, Identity, WhiteBox
from dpaudit.mechanisms import LaplaceVector

CURVE = Laplace(1.0).pair(1.0).delta
HISTOGRAM = [3.0, 5.0, 2.0, 0.0]
NEIGHBOUR = [4.0, 5.0, 2.0, 0.0]
RECORDS = [1.0]


def noisy(scale: float) -> Release:
    """The value plus Laplace noise of this scale."""

    def release(value: Any, size: int, rng: np.random.Generator) -> Floats:
        return np.asarray(value) + rng.laplace(scale=scale, size=(size, *np.shape(value)))

    return release


def mean_of_private_number(records: Any, size: int, rng: np.random.Generator) -> Floats:
    """Sum / n + Lap(1/n): the noise shrinks with a number of records that is private."""
    return float(np.mean(records)) + rng.laplace(scale=1 / len(records), size=size)


def noisy_count_mean(records: Any, size: int, rng: np.random.Generator) -> Floats:
    """Noisy sum over noisy count, half of ε = 1 each."""
    total = sum(records) + rng.laplace(scale=2.0, size=size)
    count = len(records) + rng.laplace(scale=2.0, size=size)
    return total / np.maximum(1.0, count)


def bounds_sensitivity(value: Any, size: int, rng: np.random.Generator) -> Floats:
    """Sensitivity max(|lower|, |lower|) of the bounds (0, 100), which is 0."""
    lower, _upper = 0.0, 100.0
    sensitivity = max(abs(lower), abs(lower))
    return np.clip(value, 0.0, 100.0) + rng.laplace(scale=sensitivity, size=size)


def forgotten_clip(records: Any, size: int, rng: np.random.Generator) -> Floats:
    """The clipped copy is computed and the original summed."""
    clipped = np.clip(records, 0.0, 1.0)
    assert clipped.max() <= 1.0
    return sum(records) + rng.laplace(scale=1.0, size=size)


def truncated_geometric(value: Any, size: int, rng: np.random.Generator) -> Floats:
    """Two-sided geometric noise, cut to the range of the count, 0 to 10."""
    return np.clip(DiscreteLaplace(1.0).release_many(value, size, rng), 0, 10).astype(float)


def prefix_sums(bits: Any, size: int, rng: np.random.Generator) -> Floats:
    """All prefix sums of a stream, each with the noise of them all: Lap(T/ε)."""
    return np.cumsum(bits) + rng.laplace(scale=len(bits), size=(size, len(bits)))


TOTALS, MORE_TOTALS = [0.0, 0.0], [1.0, 5.0]
"""Of a column of bits and one of numbers up to 5: one row adds to both."""
COLUMNS = LaplaceVector((2.0, 10.0), (1.0, 5.0))


def _tail_ratio(outputs: Floats) -> Floats:
    """Log ratio of Lap(0, 1) to Lap(1/2, 1/2), up to a constant."""
    return 2 * np.abs(outputs - 0.5) - np.abs(outputs)


WRONG = (
    Entry("Laplace, half the scale", False, PURE, 0.0, 1.0, 2.0, 3_000, noisy(0.5), CURVE,
          Identity()),
    Entry("Laplace, 0.9 of the scale", False, PURE, 0.0, 1.0, 1 / 0.9, 60_000, noisy(0.9), CURVE,
          Identity()),
    Entry("histogram, scale ε for 1/ε", False, Claim(0.5), HISTOGRAM, NEIGHBOUR, 2.0, 3_000,
          noisy(0.5), Laplace(2.0).pair(1.0).delta,
          WhiteBox(Laplace(2.0), HISTOGRAM, NEIGHBOUR)),
    Entry("sum/n + Lap(1/n), n private", False, PURE, [0.0], [0.0, 1.0], math.inf, 10_000,
          mean_of_private_number, None, FixedScore(_tail_ratio)),
    Entry("sensitivity max(|lower|, |lower|)", False, PURE, 0.0, 100.0, math.inf, 1_000,
          bounds_sensitivity, None, Identity()),
    Entry("two columns, noise for the larger change in both", False, PURE, TOTALS,
          MORE_TOTALS, 6 / 5, 20_000, noisy(5.0), None,
          WhiteBox(Laplace(5.0), TOTALS, MORE_TOTALS)),
    Entry("two columns, each with noise as if it were alone", False, PURE, TOTALS, MORE_TOTALS, 2.0,
          10_000, LaplaceVector((1.0, 5.0), (1.0, 5.0)).release_many, None,
          WhiteBox(LaplaceVector((1.0, 5.0), (1.0, 5.0)), TOTALS, MORE_TOTALS)),
    Entry("clip computed and not used", False, PURE, [0.0], [30.0], 30.0, 1_000, forgotten_clip,
          CURVE, Identity()),
)  # fmt: skip

RIGHT = (
    Entry("Laplace", True, PURE, 0.0, 1.0, 1.0, 10_000, noisy(1.0), CURVE, Identity()),
    Entry("Laplace, vector", True, PURE, [0.0, 0.0, 0.0], [0.5, -0.25, 0.25], 1.0, 10_000,
          noisy(1.0), CURVE, WhiteBox(Laplace(1.0), [0.0] * 3, [0.5, -0.25, 0.25])),
    Entry("two columns, ε/2 each", True, PURE, TOTALS, MORE_TOTALS, 1.0, 10_000,
          COLUMNS.release_many, None, WhiteBox(COLUMNS, TOTALS, MORE_TOTALS)),
    Entry("discrete Laplace", True, PURE, 0, 1, 1.0, 10_000, DiscreteLaplace(1.0).release_many,
          DiscreteLaplace(1.0).pair(1).delta, Identity()),
    Entry("truncated geometric", True, PURE, 3, 4, 1.0, 10_000, truncated_geometric, None,
          Identity()),
    Entry("histogram", True, PURE, HISTOGRAM, NEIGHBOUR, 1.0, 10_000, noisy(1.0), CURVE,
          WhiteBox(Laplace(1.0), HISTOGRAM, NEIGHBOUR)),
    Entry("prefix sums, Lap(T/ε)", True, PURE, [0, 1, 0, 1], [1, 1, 0, 1], 1.0, 10_000,
          prefix_sums, None, WhiteBox(Laplace(4.0), [0.0, 1, 1, 2], [1.0, 2, 2, 3])),
    Entry("noisy-count mean", True, PURE, RECORDS * 3, RECORDS * 4, 1.0, 10_000, noisy_count_mean,
          None, Identity(), limit=True),
)  # fmt: skip
