"""Exact tests of drawn noise against a declared law.

Every draw is turned into its *tail*, the declared probability of noise at least as large, and its
sign. Under the declared law tails are independent and uniform (for discrete laws after breaking
ties at random), so that

* the sum of −ln tail is Gamma(n, 1) (for Gaussian noise, the sum of squares is χ² with n degrees of
  freedom): the most powerful test of a wrong scale, and
* the signed tails follow the uniform law, which Kolmogorov's test checks for any other difference.

Both are exact at every n; the smaller p-value is doubled for there being two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.errors import UnsupportedError
from dpaudit.mechanisms import (
    ContinualGaussian,
    ContinualLaplace,
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    Gaussian,
    Laplace,
    Mechanism,
    RandomizedResponse,
)

__all__ = ["Tails", "difference_tails", "noise_tails", "scale_of"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Tails:
    """Draws as the declared law sees them.

    Attributes:
        tails: declared probability of noise as large as each draw, shape (n,).
        positive: the sign of each draw, shape (n,).
        normal: absolute standardised draws where the law is normal, shape (n,), else None.
        sizes: absolute draws in units of the scale, shape (n,); empty where that has no meaning.
    """

    tails: Floats
    positive: NDArray[np.bool_]
    normal: Floats | None
    sizes: Floats

    @classmethod
    def joined(cls, parts: list[Tails]) -> Tails:
        """All draws of several parts of one law."""
        normal = [part.normal for part in parts if part.normal is not None]
        return cls(
            np.concatenate([part.tails for part in parts]),
            np.concatenate([part.positive for part in parts]),
            np.concatenate(normal) if len(normal) == len(parts) else None,
            np.concatenate([part.sizes for part in parts]),
        )

    def scale_p_value(self) -> float:
        """Two-sided exact p-value of the scale."""
        from scipy.stats import chi2, gamma

        if self.normal is not None:
            freedom, total = self.normal.size, float(np.square(self.normal).sum())
            sides = chi2.cdf(total, freedom), chi2.sf(total, freedom)
        else:
            with np.errstate(divide="ignore"):
                total = float(-np.log(self.tails).sum())
            sides = gamma.cdf(total, self.tails.size), gamma.sf(total, self.tails.size)
        return min(1.0, 2 * float(min(sides)))

    def shape_p_value(self) -> float:
        """Kolmogorov's test of the signed tails."""
        from scipy.stats import kstest

        signed = np.where(self.positive, 1 - self.tails / 2, self.tails / 2)
        return float(kstest(signed, "uniform").pvalue)

    def p_value(self) -> float:
        """The smaller of both, doubled."""
        return min(1.0, 2 * min(self.scale_p_value(), self.shape_p_value()))

    def ratio(self) -> float | None:
        """Estimated scale over the declared one; None where a law has no scale."""
        if self.normal is not None:
            return math.sqrt(float(np.square(self.normal).mean()))
        return float(self.sizes.mean()) if self.sizes.size else None


def scale_of(mechanism: Mechanism) -> float | None:
    """The scale of additive noise, or None."""
    if isinstance(mechanism, Laplace | DiscreteLaplace):
        return mechanism.scale
    if isinstance(mechanism, Gaussian | DiscreteGaussian):
        return mechanism.sigma
    return None


def noise_tails(
    mechanism: Mechanism, released: ArrayLike, value: NDArray[Any], rng: np.random.Generator
) -> Tails:
    """The noise of one release.

    Args:
        mechanism: as declared.
        released: what came out.
        value: what went in, after the mechanism's clip.
        rng: breaks ties of discrete laws.

    Raises:
        UnsupportedError: if the mechanism declares no law that could be tested.
    """
    if isinstance(mechanism, ContinualGaussian | ContinualLaplace):
        if not mechanism.factorization.is_square:
            raise UnsupportedError(
                f"{mechanism.kind} with that factorisation hides its node noise."
            )
        nodes, _ = mechanism._whitened(np.asarray(released)[None], value)
        if isinstance(mechanism, ContinualGaussian):
            return _normal(nodes / mechanism.noise_sigma)
        return _laplace(nodes / mechanism.scale)
    if isinstance(mechanism, RandomizedResponse | ExponentialMechanism):
        return _choices(mechanism, released, value, rng)
    noise = np.asarray(released, dtype=np.float64) - value
    if isinstance(mechanism, Laplace):
        return _laplace(noise / mechanism.scale)
    if isinstance(mechanism, Gaussian):
        return _normal(noise / mechanism.sigma)
    if isinstance(mechanism, DiscreteLaplace | DiscreteGaussian):
        return _integers(mechanism, noise.ravel(), rng)
    raise UnsupportedError(f"{mechanism.kind} declares no law of noise that could be tested.")


def difference_tails(mechanism: Mechanism, differences: ArrayLike) -> Tails:
    """Differences of two independent releases of one value: no need to know the value.

    Raises:
        UnsupportedError: if the mechanism is neither Laplace nor Gaussian.
    """
    change = np.asarray(differences, dtype=np.float64).ravel()
    if isinstance(mechanism, Gaussian):
        return _normal(change / (mechanism.sigma * math.sqrt(2)))
    if isinstance(mechanism, Laplace):
        z = np.abs(change) / mechanism.scale
        # |difference| has density (1 + z) exp(−z) / 2, whose mean is 3/2.
        return Tails((1 + z / 2) * np.exp(-z), change > 0, None, z / 1.5)
    raise UnsupportedError(f"{mechanism.kind}: differences are tested for laplace and gaussian.")


def _laplace(standard: Floats) -> Tails:
    z = np.abs(standard.ravel())
    return Tails(np.exp(-z), standard.ravel() > 0, None, z)


def _normal(standard: Floats) -> Tails:
    from scipy.special import erfc

    z = np.abs(standard.ravel())
    return Tails(erfc(z / math.sqrt(2)), standard.ravel() > 0, z, z)


def _integers(
    mechanism: DiscreteLaplace | DiscreteGaussian, noise: Floats, rng: np.random.Generator
) -> Tails:
    """Between P(|k| > size) and P(|k| ≥ size), at random; a noise of 0 has a random sign."""
    size = np.abs(noise)
    if (size != np.floor(size)).any():
        return Tails(np.zeros_like(size), noise > 0, None, size / mechanism_spread(mechanism))
    beyond, mass = np.empty_like(size), np.empty_like(size)
    top = int(size.max(initial=0))
    masses = np.exp(mechanism.log_density(np.arange(top + 1), 0))
    both = masses * np.where(np.arange(top + 1) == 0, 1, 2)
    index = size.astype(np.int64)
    mass = both[index]
    beyond = np.maximum(1 - np.cumsum(both), 0.0)[index]
    sign = np.where(noise == 0, rng.random(noise.size) < 0.5, noise > 0)
    tails = beyond + rng.random(noise.size) * mass
    return Tails(tails, sign, None, size / mechanism_spread(mechanism))


def mechanism_spread(mechanism: DiscreteLaplace | DiscreteGaussian) -> float:
    """E|k| of a discrete law."""
    if isinstance(mechanism, DiscreteLaplace):
        return 1 / math.sinh(1 / mechanism.scale)
    reach = math.ceil(12 * mechanism.sigma) + 2
    k = np.arange(1, reach)
    return float(2 * (k * np.exp(mechanism.log_density(k, 0))).sum())


def _choices(
    mechanism: RandomizedResponse | ExponentialMechanism,
    released: ArrayLike,
    value: NDArray[Any],
    rng: np.random.Generator,
) -> Tails:
    """Choices, ordered by their declared probability: too little noise favours the probable."""
    if isinstance(mechanism, ExponentialMechanism):
        rows, chosen = [value], list(np.ravel(released))
        outcomes = value.size
    else:
        rows, chosen = list(value.ravel()), list(np.ravel(released))
        outcomes = mechanism.k
    tails = np.empty(len(rows))
    for place, (row, choice) in enumerate(zip(rows, chosen, strict=True)):
        masses = np.exp(mechanism.log_density(np.arange(outcomes), row))
        mass = masses[int(choice)]
        more = float(masses[masses > mass * (1 + 1e-12)].sum())
        same = float(masses[np.abs(masses - mass) <= mass * 1e-12].sum())
        tails[place] = more + rng.random() * same
    return Tails(np.clip(tails, 0.0, 1.0), rng.random(tails.size) < 0.5, None, np.empty(0))
