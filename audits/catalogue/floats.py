"""Samplers whose bits leak, and samplers whose bits do not: a verdict class of its own."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit import AddRemove, DiscreteLaplace, Invocation, Laplace, Mechanism, TrustModel

from .claims import APPROXIMATE, PURE, ROW, SIGMA
from .measuring_floats import FloatEntry

Release = Callable[[Any, int, np.random.Generator], Any]


def inverse_cdf(value: Any, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Textbook Laplace by inversion of one uniform number."""
    centred = rng.random(size) - 0.5
    return np.asarray(value - np.sign(centred) * np.log(1 - 2 * np.abs(centred)))


def normal(value: Any, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Normal noise of numpy's generator, whose last bits tell the value."""
    return value + rng.normal(scale=SIGMA, size=size)


def secure(mechanism: Mechanism) -> Release:
    """The same mechanism with secure noise."""
    call = Invocation(mechanism, 1.0, ROW, AddRemove(), TrustModel.CENTRAL)

    def release(value: Any, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
        from dpaudit.ledger import SecureNoise

        return SecureNoise().release_many(call, value, size)

    return release


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
