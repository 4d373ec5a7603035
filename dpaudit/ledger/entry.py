"""What a ledger keeps of a release, and what it asks of whoever draws the noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpaudit.ledger.anchor import Anchor
from dpaudit.ledger.samplers.streams import PrefixSums
from dpaudit.mechanisms.base import Released
from dpaudit.plan import Invocation, Plan

Key = str | int


@dataclass(frozen=True)
class Entry:
    """One release that was charged.

    Attributes:
        invocation: as declared, with ``count`` and ``total`` of the whole plan.
        unit: the unit that was touched; None where every unit (of its group) was.
        source: module and line that asked for the release.
        sampler: what drew the noise, as it calls itself.
        external: whether it stands outside of this package: its name is its own word then.
    """

    invocation: Invocation
    unit: str | None
    source: str
    sampler: str
    external: bool = False


class Budget(Protocol):
    """A privacy filter: it admits an invocation or raises before any noise is drawn."""

    def admit(self, invocation: Invocation) -> None:
        """Charge the invocation, or raise BudgetExceededError and charge nothing."""

    # ``begin(plan, anchored=)``, where a budget or an anchor has it, is called with the plan of
    # each ledger that takes it, before anything is drawn, and raises if it may not serve that one.


def begin(plan: Plan, budget: Budget | None, anchor: Anchor | None) -> None:
    """Tell budget and anchor, where they want to know, that a ledger of a plan takes them."""
    taken: dict[int, Any] = {id(each): each for each in (budget, anchor)}
    for each in taken.values():
        if told := getattr(each, "begin", None):
            told(plan, anchored=each is anchor)


class NoiseBackend(Protocol):
    """Draws the noise of a ledger, after the release has been charged."""

    @property
    def sampler(self) -> str:
        """The library and its version, for the record."""

    def require(self, plan: Plan) -> None:
        """Raise UnsupportedError if a mechanism of the plan cannot be drawn."""

    def release(self, entry: Entry, value: NDArray[Any]) -> Released:
        """One release of a value, with a guarantee of at most that of the declared mechanism."""

    def stream(self, entry: Entry, shape: Sequence[int]) -> PrefixSums:
        """A running continual release."""

    def observe(self, entry: Entry, external: ExternalDraw) -> None:
        """Let another library draw."""

    def sample(self, invocation: Invocation, units: Sequence[str]) -> list[int]:
        """Places of those who take part, in ascending order; for runs that sample by the ledger."""


@runtime_checkable
class BatchNoise(Protocol):
    """A noise backend that draws faster for many releases of one invocation at once."""

    def release_each(
        self, entries: Sequence[Entry], values: Sequence[NDArray[Any]]
    ) -> list[Released]:
        """One release for each entry, as that many calls of ``release``."""


@runtime_checkable
class SizedNoise(Protocol):
    """A noise backend that cannot draw for values of every size."""

    def require_size(self, invocation: Invocation, entries: int) -> None:
        """Raise UnsupportedError if a value of so many entries cannot be drawn for."""


@runtime_checkable
class KeyedNoise(Protocol):
    """A noise backend that looks at the keys of private counts, which others need not know."""

    def release_keyed(self, entry: Entry, counts: Mapping[Key, int]) -> dict[Key, int]:
        """What is told of the counts, by key."""


@runtime_checkable
class SummingNoise(Protocol):
    """A noise backend that looks at the bounded parts of a sum, which others need not know."""

    def release_sum(
        self, entry: Entry, value: NDArray[Any], parts: NDArray[np.float64]
    ) -> Released:
        """One release of the sum of all units' parts, shape (units, d)."""


class ExternalDraw(Protocol):
    """Noise that another library is about to add to a private value of its own."""

    @property
    def sampler(self) -> str:
        """The library and its version."""

    def draw(self) -> None:
        """Add the noise; if this raises, nothing has been released."""

    # ``packages``, where given, names the top-level packages that stand between the user's code and
    # the draw, so that the record shows the line of the user.
