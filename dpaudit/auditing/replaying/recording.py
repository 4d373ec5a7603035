"""Noise that remembers what passed through a ledger, for audits of one's own code on test data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.errors import UnsupportedError
from dpaudit.ledger import Entry, ExternalDraw, FloatNoise, Ledger
from dpaudit.mechanisms import Mechanism
from dpaudit.mechanisms.base import Released
from dpaudit.mechanisms.continual.release import PrefixSums
from dpaudit.plan import Invocation, Plan

__all__ = [
    "DivergedError",
    "RecordingNoise",
    "ReplayableDraw",
    "ReplayingNoise",
    "Routine",
    "Runnable",
    "Step",
]


class Runnable(Protocol):
    """What can be replayed: every :class:`~dpaudit.project.subject.Subject` that can be run."""

    def plan(self) -> Plan:
        """What it declares."""

    def run(self, data: Any, ledger: Ledger, rng: np.random.Generator) -> Any:
        """Run on data, which leave only through the ledger."""


@runtime_checkable
class ReplayableDraw(ExternalDraw, Protocol):
    """Noise of another library that can be looked at, and replaced by an earlier release."""

    def value(self) -> NDArray[Any]:
        """The private value before noise."""

    def released(self) -> NDArray[Any]:
        """What came out of :meth:`draw`."""

    def impose(self, released: ArrayLike) -> None:
        """Put an earlier release in place of the one just drawn."""


@dataclass(frozen=True)
class Routine:
    """A plan and a function ``f(data, ledger, rng)`` that is to follow it.

    Attributes:
        declared: the plan.
        function: the code.
    """

    declared: Plan
    function: Any

    def plan(self) -> Plan:
        """The declared plan."""
        return self.declared

    def run(self, data: Any, ledger: Ledger, rng: np.random.Generator) -> Any:
        """Call the function."""
        return self.function(data, ledger, rng)


@dataclass(frozen=True)
class Step:
    """One release, with what a ledger forgets.

    Attributes:
        invocation: as declared.
        unit: whom the value belongs to; None for all.
        source: module and line that asked for the release.
        value: the private value after the mechanism's own clip, before noise.
        released: what came out.
    """

    invocation: Invocation
    unit: str | None
    source: str
    value: NDArray[Any]
    released: Released

    @property
    def place(self) -> str:
        """Label, unit and place in the code."""
        whom = "" if self.unit is None else f" for {self.invocation.unit} {self.unit!r}"
        return f"{self.invocation.at!r}{whom} ({self.source})"

    def follows(self, other: Step) -> bool:
        """Whether the control flow that led here is the same."""
        return (self.invocation.at, self.unit) == (other.invocation.at, other.unit)


class DivergedError(BaseException):
    """Control flow differs from the first run. Not an ``Exception``, so that none swallows it."""


class RecordingNoise:
    """Noise that keeps private values and what came out. For audits on test data, never else.

    Attributes:
        steps: what was released, in order.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self.steps: list[Step] = []
        self._noise = FloatNoise(rng)

    @property
    def sampler(self) -> str:
        """That of the noise."""
        return self._noise.sampler

    def require(self, plan: Plan) -> None:
        """Every mechanism can be drawn."""

    def release(self, entry: Entry, value: NDArray[Any]) -> Released:
        """One release, kept."""
        released = self._drawn(entry, value)
        self._keep(entry, prepared(entry.invocation.mechanism, value), released)
        return released

    def stream(self, entry: Entry, shape: Sequence[int]) -> PrefixSums:
        """Not recorded.

        Raises:
            UnsupportedError: always.
        """
        raise UnsupportedError(f"{entry.invocation.describe()} is a stream; none is recorded.")

    def observe(self, entry: Entry, external: ExternalDraw) -> None:
        """Noise of another library, kept if it can be looked at.

        Raises:
            UnsupportedError: if it cannot.
        """
        if not isinstance(external, ReplayableDraw):
            raise UnsupportedError(
                f"{entry.invocation.describe()} draws its noise in {external.sampler}, which "
                "cannot be recorded; give what draws it the methods of ReplayableDraw."
            )
        value = prepared(entry.invocation.mechanism, external.value())
        external.draw()
        self._settle(external)
        self._keep(entry, value, external.released())

    def _drawn(self, entry: Entry, value: NDArray[Any]) -> Released:
        return self._noise.release(entry, value)

    def _settle(self, external: ReplayableDraw) -> None:
        """A first run keeps what was drawn."""

    def _keep(self, entry: Entry, value: NDArray[Any], released: Released) -> None:
        self.steps.append(Step(entry.invocation, entry.unit, entry.source, value, released))


class ReplayingNoise(RecordingNoise):
    """Gives out what a first run released, as long as the control flow is the same.

    Raises:
        DivergedError: at the first release that the first run did not make, or made elsewhere; it
            is then the last of ``steps``.
    """

    def __init__(self, rng: np.random.Generator, first: Sequence[Step]) -> None:
        super().__init__(rng)
        self._first = first

    def _drawn(self, entry: Entry, value: NDArray[Any]) -> Released:
        turn = len(self.steps)
        return self._first[turn].released if turn < len(self._first) else np.nan

    def _settle(self, external: ReplayableDraw) -> None:
        turn = len(self.steps)
        if turn < len(self._first):
            earlier = np.asarray(self._first[turn].released)
            if earlier.shape == external.released().shape:
                external.impose(earlier)

    def _keep(self, entry: Entry, value: NDArray[Any], released: Released) -> None:
        super()._keep(entry, value, released)
        turn, step = len(self.steps) - 1, self.steps[-1]
        if turn >= len(self._first) or not step.follows(self._first[turn]):
            raise DivergedError


def prepared(mechanism: Mechanism, value: ArrayLike) -> NDArray[Any]:
    """The private value as noise is added to it: after validation and clipping."""
    return np.array(mechanism.prepare(value))
