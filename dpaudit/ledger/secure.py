"""Noise without floating-point leaks: exact samplers on a grid, in place of a generator.

Samples of continuous noise in floating point reveal the value through their least significant bits
(Mironov 2012). :class:`SecureNoise` rounds the value to a grid, adds integer noise of OpenDP's
exact samplers, and scales back. What is released is a function of an integer, so its bits hold
nothing that is not in that integer.

**What the grid costs, and who pays.** Let γ be the grid step, Δ the declared sensitivity, d the
number of entries. Rounding moves every entry by at most γ/2, so neighbours come to lie at most
Δ + dγ (in L1) or Δ + √d γ (in L2) apart. The noise is widened, so that the guarantee is *not above*
the declared one:

* *Laplace.* Let K be an integer shift and t the scale, both in grid steps. At the losses
  e_j = (2j − K)/t discrete Laplace noise has δ(e_j) = 1 − exp((j − K)/t), and δ falls in between.
  A continuous pair of ε = (K + 2)/t has δ(e_{j+1}) = 1 − exp((j − K)/t), no less. So it dominates,
  entry by entry; and over d entries, with K ≤ Δ/γ + d in all, one pair of ε = (Δ/γ + 3d)/t does
  (composition, and the walk of :class:`~dpaudit.mechanisms.LaplacePair`). The scale is therefore
  b (Δ + 3dγ)/Δ: ε and the whole δ(ε) curve are at most the declared ones.
* *Gaussian.* The discrete normal law satisfies ρ = Δ²/2σ² exactly (Canonne, Kamath and Steinke
  2020, Theorem 4), and σ (Δ + (√d + 1)γ)/Δ pays for the rounding and one step more. That step pays
  for the curve: rounding a *continuous* normal release to the grid only loses information
  (post-processing), and within 40 σ its masses and the discrete ones differ by a factor of at most
  exp(68 γ²/σ²) an entry. That is far below what the step gains in δ(ε), at any δ above 1e-300,
  for 2^-16 ≤ Δ/σ ≤ 10 and d ≤ 2^14. Outside those limits a release is refused.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from importlib import metadata
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit import validate
from dpaudit.errors import InputError, UnsupportedError
from dpaudit.ledger.entry import Entry, ExternalDraw
from dpaudit.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Mechanism,
    RandomizedResponse,
)
from dpaudit.mechanisms.base import Released
from dpaudit.mechanisms.continual.release import PrefixSums

if TYPE_CHECKING:
    from dpaudit.plan import Invocation, Plan

__all__ = ["SecureNoise"]

GRID_BITS = 40
"""The default grid has between 2^40 and 2^41 steps to the scale of the noise."""

_SAMPLED = (Laplace, Gaussian, DiscreteLaplace, DiscreteGaussian, RandomizedResponse)
_MOST_ENTRIES = 2**14
_EXACT_INT64 = 2**61


@dataclass(frozen=True)
class SecureNoise:
    """Draws all noise of a ledger from exact samplers with entropy of the operating system.

    ``Ledger(plan, noise=SecureNoise())``. There is no seed, on purpose.

    Attributes:
        granularity: grid step for continuous mechanisms, a power of two of at most 2^-40 of the
            scale; by default the largest such.

    Raises:
        InputError: if the granularity is not a power of two.
        UnsupportedError: if opendp is not installed.
    """

    granularity: float | None = None

    def __post_init__(self) -> None:
        if self.granularity is not None:
            step = validate.positive(granularity=self.granularity)
            if math.frexp(step)[0] != 0.5:
                raise InputError(f"granularity is {step}; it must be a power of two.")
        _opendp()

    def require(self, plan: Plan) -> None:
        """Check that every mechanism of a plan can be drawn.

        Raises:
            UnsupportedError: naming the first invocation that cannot.
        """
        for invocation in plan.invocations:
            self._require(invocation)

    def _require(self, invocation: Invocation) -> None:
        mechanism = invocation.mechanism
        if type(mechanism) not in _SAMPLED:
            names = ", ".join(sampled.kind for sampled in _SAMPLED)
            raise UnsupportedError(
                f"{invocation.describe()} has no exact sampler; secure noise draws {names}."
            )
        if isinstance(mechanism, Laplace | Gaussian):
            self.step(mechanism)
        if isinstance(mechanism, Gaussian) and invocation.sensitivity > 0:
            ratio = invocation.sensitivity / mechanism.sigma
            if not 2.0**-16 <= ratio <= 10:
                raise UnsupportedError(
                    f"{invocation.describe()} has sensitivity {ratio:g} sigma; secure noise is "
                    "proved for 2^-16 to 10."
                )

    def step(self, mechanism: Laplace | Gaussian) -> float:
        """The grid step for a continuous mechanism.

        Raises:
            InputError: if :attr:`granularity` is too coarse for it.
        """
        scale = mechanism.scale if isinstance(mechanism, Laplace) else mechanism.sigma
        largest = math.ldexp(0.5, math.frexp(scale)[1] - GRID_BITS)
        if self.granularity is None:
            return largest
        if self.granularity > largest:
            raise InputError(
                f"granularity is {self.granularity:g}; for noise of scale {scale:g} it must be at "
                f"most {largest:g}."
            )
        return self.granularity

    @property
    def sampler(self) -> str:
        """Opendp and its version."""
        return f"opendp {metadata.version('opendp')}, exact"

    def release(self, entry: Entry, value: ArrayLike) -> Released:
        """One noisy release, as :meth:`dpaudit.mechanisms.Mechanism.release`."""
        released = self.release_many(entry.invocation, value, 1)[0]
        scalar: Released = released.item() if np.ndim(released) == 0 else released
        return scalar

    def stream(self, entry: Entry, shape: Sequence[int]) -> PrefixSums:
        """No continual release has an exact sampler.

        Raises:
            UnsupportedError: always.
        """
        raise UnsupportedError(f"{entry.invocation.describe()} has no exact sampler.")

    def observe(self, entry: Entry, external: ExternalDraw) -> None:
        """Another library draws."""
        external.draw()

    def release_many(self, invocation: Invocation, value: ArrayLike, size: int) -> NDArray[Any]:
        """``size`` independent releases of the same value, shape (size, *shape of value).

        Args:
            invocation: what is declared; its sensitivity says how much the grid costs.
            value: the private value.
            size: number of releases.

        Raises:
            InputError: if the mechanism refuses the value.
            UnsupportedError: if the mechanism has no exact sampler.
        """
        self._require(invocation)
        mechanism = invocation.mechanism
        size = validate.integer_at_least(0, size=size)
        prepared = mechanism._prepare(value)
        shape = (size, *prepared.shape)
        if isinstance(mechanism, RandomizedResponse):
            return _answers(mechanism, np.broadcast_to(prepared, shape))
        if isinstance(mechanism, Laplace | Gaussian):
            step = self.step(mechanism)
            scale = widened(mechanism, invocation.sensitivity, prepared.size, step)
            noise = _integers(isinstance(mechanism, Gaussian), scale, size * prepared.size)
            return _on_grid(prepared, step, noise.reshape(shape))
        return prepared + _discrete(mechanism, size * prepared.size).reshape(shape)


def widened(mechanism: Laplace | Gaussian, sensitivity: float, entries: int, step: float) -> float:
    """Scale of the integer noise, in grid steps, that pays for the grid; rounded up.

    Raises:
        UnsupportedError: if a Gaussian release has too many entries for the proof.
    """
    if isinstance(mechanism, Laplace):
        scale, steps = mechanism.scale, 3 * entries
    else:
        scale, steps = mechanism.sigma, math.isqrt(entries) + 2
        if entries > _MOST_ENTRIES:
            raise UnsupportedError(
                f"value has {entries} entries; secure Gaussian noise takes at most {_MOST_ENTRIES}."
            )
    exact = Fraction(scale) / Fraction(step)
    if sensitivity > 0:
        exact *= 1 + steps * Fraction(step) / Fraction(sensitivity)
    rounded = float(exact)
    return rounded if rounded >= exact else math.nextafter(rounded, math.inf)


def _on_grid(value: NDArray[Any], step: float, noise: NDArray[np.int64]) -> NDArray[np.float64]:
    """(Rounded value + noise) in grid steps, scaled back; integers are never rounded on the way."""
    with np.errstate(over="ignore"):
        places = np.rint(np.asarray(value, dtype=np.float64) / step)  # step is a power of two
    if not np.isfinite(places).all():
        raise InputError(f"value is too large for a grid of step {step:g}.")
    if np.abs(places).max(initial=0.0) < _EXACT_INT64:
        total: NDArray[Any] = places.astype(np.int64) + noise
    else:
        whole = np.array([int(place) for place in places.ravel()], dtype=object)
        total = whole.reshape(places.shape) + noise.astype(object)
    return total.astype(np.float64) * step


def _discrete(mechanism: Mechanism, size: int) -> NDArray[np.int64]:
    """Noise of an integer mechanism, whose law is the sampler's own."""
    if isinstance(mechanism, DiscreteLaplace):
        return _integers(False, mechanism.scale, size)
    assert isinstance(mechanism, DiscreteGaussian)
    return _integers(True, mechanism.sigma, size)


def _integers(gaussian: bool, scale: float, size: int) -> NDArray[np.int64]:
    return np.array(_sampler(gaussian, scale)([0] * size), dtype=np.int64)


@lru_cache(maxsize=256)
def _sampler(gaussian: bool, scale: float) -> Callable[[list[int]], list[int]]:
    """OpenDP's measurement of integer vectors with noise of that scale."""
    dp = _opendp()
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    if gaussian:
        return dp.m.make_gaussian(domain, dp.l2_distance(T="f64"), scale=scale)  # type: ignore[no-any-return]
    return dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=scale)  # type: ignore[no-any-return]


def _opendp() -> Any:
    try:
        import opendp.prelude as dp
    except ImportError:
        raise UnsupportedError(
            "secure noise needs opendp, which is not installed; install dpaudit[secure]."
        ) from None
    dp.enable_features("contrib")
    return dp


def _answers(mechanism: RandomizedResponse, values: NDArray[Any]) -> NDArray[Any]:
    """Randomised response with coins whose bias is exactly the float p."""
    share = Fraction(mechanism.p)
    answers = [
        secrets.randbelow(mechanism.k)
        if secrets.randbelow(share.denominator) < share.numerator
        else value
        for value in values.ravel().tolist()
    ]
    return np.array(answers, dtype=values.dtype).reshape(values.shape)
