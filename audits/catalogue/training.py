"""Private training of two parameters by steps of DP-SGD, and defects that have been shipped.

Data are gradients, one row for each example. A right step clips every row to norm 1, adds them up
and adds N(0, σ²); σ makes one step (1, δ)-private. No score is told.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from audits.catalogue.entry import APPROXIMATE, SIGMA, Entry, Floats, Release, gaussian_epsilon
from dpaudit.mechanisms import GaussianPair

CURVE = GaussianPair(1 / SIGMA).delta
OTHERS = [[0.3, -0.2], [-0.1, 0.4], [0.2, 0.1]]
WITH, WITHOUT = [*OTHERS, [30.0, 40.0]], OTHERS


def clipped(rows: Floats) -> Floats:
    """Each row, shortened to norm 1 if it is longer."""
    lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
    return np.asarray(rows / np.maximum(1.0, lengths))


def step(gradient: Callable[[Floats], Floats], sigma: float = SIGMA) -> Release:
    """What a step shows: a gradient of all rows, and noise on each parameter."""

    def release(rows: Any, size: int, rng: np.random.Generator) -> Floats:
        return gradient(np.array(rows)) + sigma * rng.standard_normal((size, 2))

    return release


def shared(rows: Any, size: int, rng: np.random.Generator) -> Floats:
    """One draw of noise for both parameters."""
    return clipped(np.array(rows)).sum(axis=0) + SIGMA * rng.standard_normal((size, 1))


def reused(rows: Any, size: int, rng: np.random.Generator) -> Floats:
    """Two steps with the same noise; the second gradient is twice the first."""
    total = clipped(np.array(rows)).sum(axis=0)
    noise = SIGMA * rng.standard_normal((size, 2))
    return np.column_stack([total + noise, 2 * total + noise])


def normalised(rows: Any, size: int, rng: np.random.Generator) -> Floats:
    """A right step, and the largest length of a gradient for the log."""
    whole = np.array(rows)
    total = clipped(whole).sum(axis=0) + SIGMA * rng.standard_normal((size, 2))
    return np.column_stack([total, np.full(size, np.linalg.norm(whole, axis=1).max())])


def steps(count: int, sigma: float) -> Release:
    """Full-batch steps, each with noise of its own."""

    def release(rows: Any, size: int, rng: np.random.Generator) -> Floats:
        total = clipped(np.array(rows)).sum(axis=0)
        return np.concatenate(
            [total + sigma * rng.standard_normal((size, 2)) for _ in range(count)], axis=1
        )

    return release


def _total(rows: Floats) -> Floats:
    return np.asarray(clipped(rows).sum(axis=0))


WRONG = (
    Entry("DP-SGD, batch clipped in place of examples", False, APPROXIMATE, WITH, WITHOUT,
          gaussian_epsilon(10 / SIGMA), 10_000,
          step(lambda rows: 10 * clipped(rows.mean(axis=0))), limit=True),
    Entry("DP-SGD, each parameter clipped alone", False, APPROXIMATE, WITH, WITHOUT,
          gaussian_epsilon(math.sqrt(2) / SIGMA), 60_000,
          step(lambda rows: np.clip(rows, -1, 1).sum(axis=0)), CURVE),
    Entry("DP-SGD, noise for clip 1 at clip 3", False, APPROXIMATE, WITH, WITHOUT,
          gaussian_epsilon(3 / SIGMA), 5_000,
          step(lambda rows: 3 * clipped(rows / 3).sum(axis=0))),
    Entry("DP-SGD, noise divided by the batch twice", False, APPROXIMATE, WITH, WITHOUT,
          gaussian_epsilon(4 / SIGMA), 5_000, step(_total, SIGMA / 4)),
    Entry("DP-SGD, one noise for all parameters", False, APPROXIMATE, WITH, WITHOUT, math.inf,
          5_000, shared),
    Entry("DP-SGD, noise of the last step again", False, APPROXIMATE, WITH, WITHOUT, math.inf,
          5_000, reused),
    Entry("DP-SGD, largest gradient in the log", False, APPROXIMATE, WITH, WITHOUT, math.inf,
          2_000, normalised),
    Entry("DP-SGD, mean over the private batch size", False, APPROXIMATE, WITH, WITHOUT,
          math.inf, 20_000,
          lambda rows, size, rng: step(_total)(rows, size, rng) / len(rows)),
    Entry("DP-SGD, 4 steps accounted as 1", False, APPROXIMATE, WITH, WITHOUT,
          gaussian_epsilon(2 / SIGMA), 20_000, steps(4, SIGMA), CURVE),
)  # fmt: skip

RIGHT = (
    Entry("DP-SGD step", True, APPROXIMATE, WITH, WITHOUT, 1.0, 10_000, step(_total), CURVE),
    Entry("DP-SGD, 4 full batches", True, APPROXIMATE, WITH, WITHOUT, 1.0, 10_000,
          steps(4, 2 * SIGMA), CURVE),
)  # fmt: skip
