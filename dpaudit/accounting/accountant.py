"""The interface of accountants: what they prove, and the registry of their names.

``guarantee`` and ``best`` ask accountants by name. An upper end is a proof; a lower one must hold
for some neighbours, and is None where nobody knows.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.base import validate
from dpaudit.base.displayed import Displayed
from dpaudit.base.errors import InputError
from dpaudit.base.fields import Checked, Kinded, NonNegative, Probability, Record
from dpaudit.base.validate import shown
from dpaudit.mechanisms.pairs import Floats
from dpaudit.plan import Invocation


class AccountantName(StrEnum):
    """The accountants of this package, and ``BEST`` for the least valid ε of all that apply.

    Others are known by their name as text.
    """

    BEST = "best"
    PURE = "pure"
    GAUSSIAN = "gaussian"
    ZCDP = "zcdp"
    RDP = "rdp"
    MOMENTS = "moments"
    BOUNDED_RANGE = "bounded-range"
    PLD = "pld"


FILTER = "filter"
"""Stands for an accountant where a privacy filter proves the ε, and no plan's composition."""


def _epsilon(**given: Any) -> float:
    """A number of at least 0, or infinity."""
    (value,) = given.values()
    return math.inf if value == math.inf else validate.non_negative(**given)


def _accountant(**given: Any) -> str:
    """The name of an accountant: a member of :class:`AccountantName` where it is one."""
    name = validate.text(**given)
    return AccountantName(name) if name in [*AccountantName] else name


@dataclass(frozen=True)
class CurvePoint(Checked):
    """One point of a privacy curve: the ledger is (epsilon, delta)-private.

    Attributes:
        epsilon: ε of at least 0, or infinity.
        delta: δ in [0, 1].
    """

    epsilon: Annotated[float, _epsilon]
    delta: NonNegative

    def to_dict(self) -> list[float]:
        """The two numbers."""
        return [self.epsilon, self.delta]

    @classmethod
    def from_dict(cls, record: object) -> Self:
        """The point that :meth:`to_dict` wrote.

        Raises:
            InputError: if the record is no pair of numbers.
        """
        if not isinstance(record, list | tuple) or len(record) != 2:
            raise InputError(f"curve has the point {shown(record)}; it must be a pair [ε, δ].")
        return cls(*record)


@dataclass(frozen=True)
class Guarantee(Displayed, Record):
    """A proved (ε, δ), rounded up.

    Attributes:
        epsilon: the proved ε; infinity where there is none at this δ, written as null.
        delta: the δ it holds at.
        accountant: whose theorem proves it.
        error_bound: the tightest ε of the same composition is proved to lie in
            [epsilon − error_bound, epsilon]; None where the accountant gives no lower end.
        native: the accountant's own parameters (ρ, orders and divergences, μ, grid …), JSON values.
        curve: the proved δ(ε), by increasing ε.
        compared: ε of every accountant that applies, for reports.
    """

    epsilon: Annotated[float, _epsilon]
    delta: Probability
    accountant: Annotated[str, _accountant]
    error_bound: NonNegative | None
    native: Mapping[str, Any] = field(default_factory=dict, repr=False)
    curve: tuple[CurvePoint, ...] = field(default=(), repr=False)
    compared: Mapping[str, float] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        return f"ε = {self.epsilon} at δ = {self.delta}, by {self.accountant}"

    def to_dict(self) -> dict[str, Any]:
        """A JSON record; an infinite ε becomes null."""
        compared = {name: _finite(value) for name, value in self.compared.items()}
        return super().to_dict() | {"epsilon": _finite(self.epsilon), "compared": compared}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """The guarantee that :meth:`to_dict` wrote.

        Raises:
            InputError: if a field is unknown, missing or invalid.
        """
        if isinstance(record, Mapping) and record.get("epsilon", 0.0) is None:
            record = {**record, "epsilon": math.inf}
        read = super().from_dict(record)
        compared = {k: math.inf if v is None else v for k, v in read.compared.items()}
        read._set("compared", compared)
        return read


def _finite(value: float) -> float | None:
    return None if value == math.inf else value


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
                f"accountant {cls.kind!r} sets in_best; 'best' asks only accountants of dpaudit, "
                "so leave in_best out, and name the accountant where you want its proof."
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
