"""Released noise as its declared law sees it, for tests of whether it was drawn as declared.

Every draw is turned into its *tail*, the declared probability of noise at least as large, and its
sign. Under the declared law tails are independent and uniform; ties of discrete laws are broken at
random, so that this is exact for them too.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpaudit.mechanisms.pairs import Floats


@dataclass(frozen=True, eq=False)
class Tails:
    """Draws as the declared law sees them.

    Attributes:
        tails: declared probability of noise as large as each draw, shape (n,).
        positive: the sign of each draw, shape (n,).
        sizes: absolute draws over their declared mean, shape (n,); empty where that has no meaning.
        normal: absolute standardised draws where the law is normal, shape (n,), else None.
    """

    tails: Floats
    positive: NDArray[np.bool_]
    sizes: Floats
    normal: Floats | None = None

    @classmethod
    def joined(cls, parts: Sequence[Tails]) -> Tails:
        """All draws of several parts of one law."""
        normal = [part.normal for part in parts if part.normal is not None]
        return cls(
            np.concatenate([part.tails for part in parts]),
            np.concatenate([part.positive for part in parts]),
            np.concatenate([part.sizes for part in parts]),
            np.concatenate(normal) if len(normal) == len(parts) else None,
        )


def laplace_tails(standard: Floats) -> Tails:
    """Tails of noise that is declared as Laplace of scale 1, of any shape."""
    z = np.abs(standard.ravel())
    return Tails(np.exp(-z), standard.ravel() > 0, z)


def normal_tails(standard: Floats) -> Tails:
    """Tails of noise that is declared as standard normal, of any shape."""
    from scipy.special import erfc

    z = np.abs(standard.ravel())
    mean = math.sqrt(2 / math.pi)
    return Tails(erfc(z / math.sqrt(2)), standard.ravel() > 0, z / mean, normal=z)


def integer_tails(
    noise: Floats, at_least: Callable[[Floats], Floats], mean: float, rng: np.random.Generator
) -> Tails:
    """Tails of noise on the integers, symmetric about 0.

    Between P(|k| > size) and P(|k| ≥ size), at random; a noise of 0 has a random sign, and one that
    is not whole a tail of 0.

    Args:
        noise: draws, of any shape.
        at_least: P[noise ≥ n] for integers, entry by entry.
        mean: declared mean of |k|, of at least 0.
        rng: breaks ties.
    """
    noise = noise.ravel()
    size = np.abs(noise)
    with np.errstate(over="ignore"):
        sizes = size / max(mean, sys.float_info.min)
    if (size != np.floor(size)).any():
        return Tails(np.zeros_like(size), noise > 0, sizes)
    weak = np.where(size > 0, 2 * at_least(size), 1.0)
    strict = 2 * at_least(size + 1)
    sign = np.where(noise == 0, rng.random(noise.size) < 0.5, noise > 0)
    return Tails(strict + rng.random(noise.size) * (weak - strict), sign, sizes)


def choice_tails(masses: Floats, chosen: NDArray[np.int64], rng: np.random.Generator) -> Tails:
    """Tails of choices, ordered by declared probability: too little noise favours the probable.

    Args:
        masses: declared probabilities, one row for each choice, shape (n, outcomes).
        chosen: number of the outcome of each choice, shape (n,).
        rng: breaks ties, and gives the signs, which mean nothing here.
    """
    mass = np.take_along_axis(masses, chosen[:, None], axis=1)
    more = (masses * (masses > mass * (1 + 1e-12))).sum(axis=1)
    same = (masses * (np.abs(masses - mass) <= mass * 1e-12)).sum(axis=1)
    tails = np.clip(more + rng.random(len(masses)) * same, 0.0, 1.0)
    return Tails(tails, rng.random(len(masses)) < 0.5, np.empty(0))
