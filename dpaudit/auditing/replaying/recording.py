"""Ledgers that remember what passed through them, for audits of one's own code on test data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.errors import UnsupportedError
from dpaudit.ledger import Entry, ExternalDraw, Ledger
from dpaudit.mechanisms import Mechanism
from dpaudit.mechanisms.base import Released
from dpaudit.plan import Invocation, Plan

__all__ = [
    "DivergedError",
    "RecordingLedger",
    "ReplayableDraw",
    "ReplayingLedger",
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


class RecordingLedger(Ledger):
    """A ledger that keeps private values and noise. For audits on test data, never in production.

    Attributes:
        steps: what was released, in order.
    """

    def __init__(self, plan: Plan, rng: np.random.Generator) -> None:
        super().__init__(plan, rng=rng)
        self.steps: list[Step] = []
        self._pending: tuple[NDArray[Any], Released] | None = None

    def _sample(self, invocation: Invocation, value: ArrayLike) -> Released:
        released = self._drawn(invocation, value)
        self._pending = prepared(invocation.mechanism, value), released
        return released

    def _drawn(self, invocation: Invocation, value: ArrayLike) -> Released:
        return super()._sample(invocation, value)

    def _draw(self, invocation: Invocation, external: ExternalDraw) -> None:
        if not isinstance(external, ReplayableDraw):
            raise UnsupportedError(
                f"{invocation.describe()} draws its noise in {external.sampler}, which cannot be "
                "recorded; give what draws it the methods of ReplayableDraw."
            )
        value = prepared(invocation.mechanism, external.value())
        external.draw()
        self._settle(external)
        self._pending = value, external.released()

    def _settle(self, external: ReplayableDraw) -> None:
        """A first run keeps what was drawn."""

    def _append(self, entry: Entry) -> None:
        super()._append(entry)
        assert self._pending is not None
        self.steps.append(Step(entry.invocation, entry.unit, entry.source, *self._pending))


class ReplayingLedger(RecordingLedger):
    """Gives out what a first run released, as long as the control flow is the same.

    Raises:
        DivergedError: at the first release that the first run did not make, or made elsewhere; it
            is then the last of ``steps``.
    """

    def __init__(self, plan: Plan, rng: np.random.Generator, first: Sequence[Step]) -> None:
        super().__init__(plan, rng)
        self._first = first

    def _drawn(self, invocation: Invocation, value: ArrayLike) -> Released:
        turn = len(self.steps)
        return self._first[turn].released if turn < len(self._first) else np.nan

    def _settle(self, external: ReplayableDraw) -> None:
        turn = len(self.steps)
        if turn < len(self._first):
            earlier = np.asarray(self._first[turn].released)
            if earlier.shape == external.released().shape:
                external.impose(earlier)

    def _append(self, entry: Entry) -> None:
        super()._append(entry)
        turn, step = len(self.steps) - 1, self.steps[-1]
        if turn >= len(self._first) or not step.follows(self._first[turn]):
            self._diverge()

    @staticmethod
    def _diverge() -> NoReturn:
        raise DivergedError


def prepared(mechanism: Mechanism, value: ArrayLike) -> NDArray[Any]:
    """The private value as noise is added to it: after validation and clipping."""
    return np.array(mechanism._prepare(value))
