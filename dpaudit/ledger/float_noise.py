"""Noise of numpy's generators, in floating point: for experiments, or by explicit choice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.ledger.entry import Entry, ExternalDraw
from dpaudit.ledger.process_bound import ProcessBound
from dpaudit.ledger.samplers import floats  # noqa: F401  # before a release, not within it
from dpaudit.ledger.samplers.streams import PrefixSums
from dpaudit.mechanisms.base import Released
from dpaudit.mechanisms.continual.release import Stepwise
from dpaudit.plan import FixedSizeSampling, Invocation, Plan, TruncatedPoissonSampling


class FloatNoise(ProcessBound):
    """Draws every mechanism with a ``numpy.random.Generator``.

    It draws in the process that made it alone, and cannot be copied or sent.

    The guarantee of a mechanism with real-valued noise then holds for real numbers only: the least
    significant bits of a sample can reveal the value (Mironov 2012).

    Args:
        rng: source of the noise; without it, fresh entropy of the operating system. A seeded
            generator lets whoever knows the seed subtract the noise: use it for experiments only.

    Raises:
        InputError: if ``rng`` is no generator.
    """

    called: ClassVar[str] = "noise"

    def __init__(self, rng: np.random.Generator | None = None) -> None:
        if rng is not None:
            validate.instance(np.random.Generator, rng=rng)
        super().__init__()
        self.seeded = rng is not None
        self._rng = np.random.default_rng() if rng is None else rng

    @property
    def sampler(self) -> str:
        """Numpy and its version."""
        return f"numpy {np.__version__}" + (", seeded" if self.seeded else "")

    def require(self, plan: Plan) -> None:
        """Every mechanism can be drawn, by the process that made this."""
        self.require_own_process()

    def release(self, entry: Entry, value: NDArray[Any]) -> Released:
        """One release, as the mechanism draws it."""
        self.require_own_process()
        return entry.invocation.mechanism.release(value, self._rng)

    def stream(self, entry: Entry, shape: Sequence[int]) -> PrefixSums:
        """A running release, as the mechanism draws it."""
        self.require_own_process()
        mechanism = entry.invocation.mechanism
        if not isinstance(mechanism, Stepwise):
            raise InputError(f"{mechanism.kind} is not a continual release; use release for it.")
        sums: PrefixSums = mechanism.start(shape, self._rng)
        return sums

    def observe(self, entry: Entry, external: ExternalDraw) -> None:
        """Another library draws."""
        external.draw()

    def sample(self, invocation: Invocation, units: Sequence[str]) -> list[int]:
        """Places of those who take part."""
        self.require_own_process()
        sampling, rng = invocation.sampling, self._rng
        if isinstance(sampling, FixedSizeSampling):
            return sorted(rng.choice(len(units), sampling.size, replace=False).tolist())
        (drawn,) = (rng.random(len(units)) < invocation.inclusion).nonzero()
        if isinstance(sampling, TruncatedPoissonSampling) and drawn.size > sampling.size:
            drawn = np.sort(rng.choice(drawn, sampling.size, replace=False))
        return drawn.tolist()

    def continued(self, words: Sequence[int]) -> FloatNoise:
        """The same source with a state of its own that ``words`` determine beside its own."""
        self.require_own_process()
        own = self._rng.integers(2**32, size=8, dtype=np.uint64).tolist()
        fresh = FloatNoise(np.random.default_rng([*own, *words]))
        fresh.seeded = self.seeded
        return fresh
