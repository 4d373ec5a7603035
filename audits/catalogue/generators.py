"""What the draws themselves tell: generators with too few states, and samplers whose bits leak.

The samplers are a verdict class of their own, as nothing is refuted of the law that is declared.
"""

from __future__ import annotations

import math
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from audits.catalogue.entry import APPROXIMATE, PURE, ROW, SIGMA, Entry, FloatEntry, Floats, Release
from dpaudit import AddRemove, DiscreteLaplace, Invocation, Laplace, Mechanism, TrustModel
from dpaudit.auditing.distinguishing.scores import FixedScore, Identity

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


def inverse_cdf(value: Any, size: int, rng: np.random.Generator) -> Floats:
    """Textbook Laplace by inversion of one uniform number."""
    centred = rng.random(size) - 0.5
    return np.asarray(value - np.sign(centred) * np.log(1 - 2 * np.abs(centred)))


def normal(value: Any, size: int, rng: np.random.Generator) -> Floats:
    """Normal noise of numpy's generator, whose last bits tell the value."""
    return value + rng.normal(scale=SIGMA, size=size)


def secure(mechanism: Mechanism) -> Release:
    """The same mechanism with secure noise."""
    call = Invocation(mechanism, 1.0, ROW, AddRemove(), TrustModel.CENTRAL)

    def release(value: Any, size: int, rng: np.random.Generator) -> Floats:
        from dpaudit.ledger import SecureNoise

        return SecureNoise().release_many(call, value, size)

    return release


RIGHT = ()

FLOATS = (
    FloatEntry("numpy Laplace", True, PURE, 100, Laplace(1.0).release_many),
    FloatEntry("inverse-CDF Laplace", True, PURE, 1_000, inverse_cdf),
    FloatEntry("numpy normal", True, APPROXIMATE, 5_000, normal),
    FloatEntry("discrete Laplace", False, PURE, 1_000_000, DiscreteLaplace(1.0).release_many),
    *(
        [FloatEntry("secure Laplace", False, PURE, 1_000_000, secure(Laplace(1.0)))]
        if find_spec("opendp")
        else []
    ),
)
