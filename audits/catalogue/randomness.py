"""Generators with too few states."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.auditing.distinguishing.scores import FixedScore, Identity

from .claims import PURE
from .entry import Entry

Floats = NDArray[np.float64]
SEEDS = 2**16


def fixed_seed(value: Any, size: int, rng: np.random.Generator) -> Floats:
    """Laplace noise from a seed in the code."""
    return np.full(size, value + np.random.default_rng(2024).laplace())


@cache
def noise_of_seeds() -> Floats:
    """The first Laplace draw of every 16-bit seed."""
    return np.array([np.random.default_rng(seed).laplace() for seed in range(SEEDS)])


def short_seed(value: Any, size: int, rng: np.random.Generator) -> Floats:
    """Laplace noise of a generator with a 16-bit seed, which itself is secret."""
    return value + noise_of_seeds()[rng.integers(SEEDS, size=size)]


def _listed(outputs: Floats) -> Floats:
    """Whether 0 plus the noise of some seed gives the output, to the last bit."""
    return np.isin(outputs, noise_of_seeds()).astype(np.float64)


WRONG = (
    Entry("fixed seed", False, PURE, 0.0, 1.0, math.inf, 1_000, fixed_seed, None, Identity()),
    Entry("16-bit seed", False, PURE, 0.0, 1.0, math.inf, 1_000, short_seed, None,
          FixedScore(_listed, "output can be listed from 0")),
)  # fmt: skip
