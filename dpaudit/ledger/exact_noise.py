"""Noise without floating-point leaks, drawn with entropy of the operating system.

How each mechanism is released exactly is in :mod:`dpaudit.ledger.samplers.exact`; here are the
samplers that it asks for: OpenDP's for integer noise, and the ``secrets`` of the standard library.

What exact noise guarantees, and what not:

* The law of what is released is that of integers drawn without rounding, on a grid where the
  mechanism is continuous; its guarantee is at most the declared one, and the bits of a released
  float hold nothing beside the integer.
* Randomness cannot be predicted by who knows earlier noise: OpenDP asks OpenSSL's generator, which
  the operating system seeds; ``secrets`` asks the operating system itself. There is no seed.
* Time is not constant. Integer noise and choices are drawn by rejection, so that the time of a
  release depends on the noise that was drawn, and that of a choice on the utilities too. Whoever
  measures it learns something that no accountant counts: release where nobody can.
* Memory is not wiped: values, noise and the state of the generator stay in the process until they
  are overwritten, and may reach a swap file or a core dump.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from importlib import import_module, metadata
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.base.errors import UnsupportedError
from dpaudit.base.optional_import import optional_import
from dpaudit.base.provenance import EXACT
from dpaudit.ledger.entry import Entry, ExternalDraw
from dpaudit.ledger.process_bound import ProcessBound
from dpaudit.ledger.samplers import exact, floats  # noqa: F401  # before a release, not within it
from dpaudit.ledger.samplers.grid import WIDEST
from dpaudit.ledger.samplers.streams import PrefixSums
from dpaudit.mechanisms import Mechanism, Norm, Released
from dpaudit.mechanisms.base import as_released
from dpaudit.plan import FixedSizeSampling, Invocation, Plan, TruncatedPoissonSampling

GRID_BITS = 40
"""The grid has between 2^40 and 2^41 steps to the scale of the noise."""


class SecureNoise(ProcessBound):
    """Draws all noise of a ledger from exact samplers with entropy of the operating system.

    ``Ledger(plan, noise=SecureNoise())``. There is no seed, on purpose. It draws in the process
    that made it alone, and cannot be copied or sent.

    Raises:
        UnsupportedError: if opendp is not installed.
    """

    called: ClassVar[str] = "noise"

    def __init__(self) -> None:
        super().__init__()
        _opendp()

    # -- for the ledger --------------------------------------------------------------------------

    def require(self, plan: Plan) -> None:
        """Check that every mechanism of a plan can be drawn.

        Raises:
            UnsupportedError: naming the first invocation that cannot be drawn.
        """
        for invocation in plan.invocations:
            self._require(invocation)

    def require_size(self, invocation: Invocation, entries: int) -> None:
        """Check that a value of so many entries can be drawn for.

        Raises:
            UnsupportedError: if it cannot.
        """
        self._require(invocation, entries)

    def _require(self, invocation: Invocation, entries: int = 1) -> None:
        self.require_own_process()
        mechanism = invocation.mechanism
        if not mechanism.has_exact_sampler():
            known = Mechanism.kinds().items()
            names = ", ".join(name for name, kind in known if kind.has_exact_sampler())
            raise UnsupportedError(
                f"{invocation.describe()} has no exact sampler; secure noise draws {names}."
            )
        try:
            mechanism.require_exact(invocation.sensitivity, self, entries)
        except UnsupportedError as error:
            raise UnsupportedError(f"{invocation.describe()}: {error}") from None

    @property
    def sampler(self) -> str:
        """Opendp and its version."""
        return f"opendp {_version()}{EXACT}"

    def release(self, entry: Entry, value: ArrayLike) -> Released:
        """One noisy release, as :meth:`dpaudit.mechanisms.Mechanism.release`."""
        return as_released(self.release_many(entry.invocation, value, 1)[0])

    def release_each(
        self, entries: Sequence[Entry], values: Sequence[NDArray[Any]]
    ) -> list[Released]:
        """One noisy release for each entry, all of one invocation; values of one shape in one draw.

        The noise of every entry is independent of all others, as one draw of many is.
        """
        invocation = entries[0].invocation
        self._require(invocation)
        mechanism, sensitivity = invocation.mechanism, invocation.sensitivity
        prepared = [mechanism.prepare(value) for value in values]
        if len({np.shape(each) for each in prepared}) != 1:
            return [self.release(*each) for each in zip(entries, values, strict=True)]
        drawn = mechanism.sample_exactly(np.stack(prepared), sensitivity, self)
        return [as_released(each) for each in drawn]

    def stream(self, entry: Entry, shape: Sequence[int]) -> PrefixSums:
        """No continual release has an exact sampler.

        Raises:
            UnsupportedError: always.
        """
        raise UnsupportedError(f"{entry.invocation.describe()} has no exact sampler.")

    def observe(self, entry: Entry, external: ExternalDraw) -> None:
        """Another library draws."""
        external.draw()

    def sample(self, invocation: Invocation, units: Sequence[str]) -> list[int]:
        """Places of those who take part, of exactly the declared law."""
        self.require_own_process()
        sampling = invocation.sampling
        if isinstance(sampling, FixedSizeSampling):
            return sorted(secrets.SystemRandom().sample(range(len(units)), sampling.size))
        drawn: list[int] = np.flatnonzero(self.events(invocation.inclusion, (len(units),))).tolist()
        if isinstance(sampling, TruncatedPoissonSampling) and len(drawn) > sampling.size:
            return sorted(secrets.SystemRandom().sample(drawn, sampling.size))
        return drawn

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
        return invocation.mechanism.release_exactly(value, invocation.sensitivity, size, self)

    # -- for mechanisms --------------------------------------------------------------------------

    def step(self, scale: float) -> float:
        """The grid step for continuous noise of that scale, a power of two.

        Raises:
            UnsupportedError: if no float is so small a step.
        """
        step = math.ldexp(0.5, math.frexp(scale)[1] - GRID_BITS)
        if not step:
            raise UnsupportedError(
                f"scale is {scale:g}; no grid is that fine, so the scale must be larger."
            )
        return step

    def laplace(self, scale: float, values: NDArray[Any]) -> NDArray[Any]:
        """Whole numbers plus noise of mass proportional to exp(−|k|/scale), as Python's integers.

        Raises:
            UnsupportedError: if the scale is above 2^52.
        """
        return _noisy(_sampler(Norm.L1, scale), values)

    def normal(self, sigma: float, values: NDArray[Any]) -> NDArray[Any]:
        """The same with noise of mass proportional to exp(−k²/2σ²)."""
        return _noisy(_sampler(Norm.L2, sigma), values)

    def integers(self, bound: int, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """Uniform integers in 0…bound − 1."""
        drawn = [secrets.randbelow(bound) for _ in range(math.prod(shape))]
        return np.array(drawn, dtype=np.int64).reshape(shape)

    def events(self, probability: float, shape: tuple[int, ...]) -> NDArray[np.bool_]:
        """Independent events of exactly that probability, as the float is.

        64 bits decide each event but those at the edge, of which exact fractions decide.
        """
        edge = Fraction(probability) * 2**64
        whole = math.floor(edge)
        drawn = np.frombuffer(secrets.token_bytes(8 * math.prod(shape)), dtype=np.uint64)
        happened = drawn <= np.uint64(min(whole, 2**64 - 1))
        if whole < 2**64:
            rest = edge - whole
            for place in np.flatnonzero(drawn == np.uint64(whole)):
                happened[place] = secrets.randbelow(rest.denominator) < rest.numerator
        return happened.reshape(shape)

    def below(self, bound: int) -> int:
        """One uniform integer in 0…bound − 1, of any size."""
        return secrets.randbelow(bound)


Sampler = Callable[[list[int]], list[int]]


def _noisy(sampler: Sampler, values: NDArray[Any]) -> NDArray[Any]:
    """Sums of Python's integers, which do not wrap; nothing else adds noise to a value."""
    noise = sampler([0] * values.size)
    total = [value + drawn for value, drawn in zip(values.ravel().tolist(), noise, strict=True)]
    return np.array(total, dtype=object).reshape(values.shape)


@lru_cache(maxsize=512)
def _sampler(norm: Norm, scale: float) -> Sampler:
    """OpenDP's measurement of integer vectors with discrete Laplace, or discrete normal, noise.

    Raises:
        UnsupportedError: if its 64 bits do not hold the noise.
    """
    if scale > WIDEST:
        raise UnsupportedError(f"scale is {scale:g}; exact noise takes at most 2^52, {WIDEST:g}.")
    dp = _opendp()
    domain = dp.domains.vector_domain(dp.domains.atom_domain(T="i64"))
    if norm is Norm.L1:
        made = dp.measurements.make_laplace(domain, dp.metrics.l1_distance(T="i64"), scale=scale)
    else:
        made = dp.measurements.make_gaussian(domain, dp.metrics.l2_distance(T="f64"), scale=scale)
    return cast(Sampler, made)


@lru_cache(maxsize=1)
def _version() -> str:
    """That of OpenDP; to look it up takes longer than to draw."""
    return metadata.version("opendp")


def _opendp() -> Any:
    """OpenDP without its prelude, which loads scikit-learn and takes three times as long."""
    optional_import("secure", "opendp.measurements", what="secure noise")
    dp = import_module("opendp")
    dp.mod.enable_features("contrib")
    return dp
