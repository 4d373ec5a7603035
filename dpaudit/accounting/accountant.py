"""The interface of every accountant, and the registry of their names.

Guarantees and ``best`` ask accountants by name. An upper end is a proof; a lower one must hold for
some neighbours, and is None where nobody knows.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.base.errors import InputError
from dpaudit.base.fields import Kinded
from dpaudit.mechanisms.pairs import Floats
from dpaudit.plan import Invocation


@dataclass(frozen=True)
class Interval:
    """A number that is proved to lie between two others.

    Attributes:
        lower: rounded down; None where the accountant gives no lower end.
        upper: rounded up; the end that a guarantee states. What is no number bounds nothing: it
            becomes infinity, and a lower end None.
    """

    lower: float | None
    upper: float

    def __post_init__(self) -> None:
        if math.isnan(self.upper):
            object.__setattr__(self, "upper", math.inf)
        if self.lower is not None and math.isnan(self.lower):
            object.__setattr__(self, "lower", None)

    @property
    def width(self) -> float | None:
        """``upper − lower``; None where there is no lower end."""
        if self.lower is None:
            return None
        return 0.0 if self.upper == self.lower else self.upper - self.lower


def upper_ends(values: ArrayLike) -> Floats:
    """Upper ends, of which those that are no numbers bound nothing: they become infinity."""
    found = np.asarray(values, dtype=np.float64)
    bounds: Floats = np.where(np.isnan(found), np.inf, found)
    return bounds


class Composition(ABC):
    """The privacy of invocations that all touch the same unit, one after the other."""

    @abstractmethod
    def epsilon(self, delta: float) -> Interval:
        """The least ε at that δ in [0, 1); the upper end is infinity where there is none."""

    @abstractmethod
    def delta(self, epsilon: float) -> Interval:
        """The least δ at that ε ≥ 0."""

    def epsilons(self, deltas: ArrayLike) -> Floats:
        """Upper ends of :meth:`epsilon`, of any shape."""
        asked = np.asarray(deltas, dtype=np.float64)
        found = [self.epsilon(float(value)).upper for value in asked.ravel()]
        return np.array(found, dtype=np.float64).reshape(asked.shape)

    def deltas(self, epsilons: ArrayLike) -> Floats:
        """Upper ends of :meth:`delta`, of any shape."""
        asked = np.asarray(epsilons, dtype=np.float64)
        found = [self.delta(float(value)).upper for value in asked.ravel()]
        return np.array(found, dtype=np.float64).reshape(asked.shape)

    @property
    def is_exact(self) -> bool:
        """Whether the curve is that of the exact composition, so that no other can be tighter."""
        return False

    @property
    @abstractmethod
    def native(self) -> Mapping[str, Any]:
        """The accountant's own parameters, as JSON values."""


@dataclass(frozen=True)
class Accountant(Kinded, ABC):
    """Turns invocations on one unit into a :class:`Composition`.

    A subclass is one file: its ``kind``, which is the name that ``guarantee(plan, delta, name)``
    and ``dpaudit certify --accountant`` know it by, and :meth:`compose`. To import the file
    registers it; a name that is taken is refused. Its tests inherit the conformance suite of the
    accounting tests: monotone in δ and ε, order does not matter, ``count=n`` equals n invocations,
    more invocations never cost less, and no accountant is below the lower end of another.
    """

    family: ClassVar[str] = "accountant"
    homes: ClassVar[tuple[str, ...]] = (
        "dpaudit.accounting.closed_forms",
        "dpaudit.accounting.pld",
        "dpaudit.accounting.best",
    )

    def __init_subclass__(cls) -> None:
        if "in_best" in cls.__dict__:
            raise InputError(
                f"accountant {cls.kind!r} has in_best; 'best' asks those of dpaudit alone, so "
                "leave it out, and name the accountant where its proof is wanted."
            )
        super().__init_subclass__()

    @abstractmethod
    def compose(self, invocations: Sequence[Invocation]) -> Composition:
        """Compose sequentially, all on one unit.

        Raises:
            UnsupportedError: if the accountant has no theorem for one of them; it names which.
        """

    def epsilon_after_rounds(
        self, invocations: Sequence[Invocation], delta: float, rounds: ArrayLike
    ) -> Floats:
        """Upper ends of ε after each number of rounds, all rounds alike.

        Args:
            invocations: one round.
            delta: δ of every guarantee.
            rounds: whole numbers of rounds of at least 1, shape (n,).

        Returns:
            Shape (n,).

        Raises:
            UnsupportedError: if the accountant has no theorem for one of them; it names which.
        """
        found = []
        for number in np.asarray(rounds):
            repeated = [
                replace(each, count=each.count * int(number), total=None) for each in invocations
            ]
            found.append(self.compose(repeated).epsilon(delta).upper)
        return np.array(found, dtype=np.float64)


def accountant_of(name: str) -> Accountant:
    """The accountant of that name.

    Raises:
        InputError: if there is none; with the nearest name.
    """
    return Accountant.named(name)()
