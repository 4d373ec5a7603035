"""What an accountant proves."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, Self

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.base.fields import Checked, NonNegative, Probability, Record
from dpaudit.base.validate import shown


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
class Guarantee(Record):
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
