"""What an accountant proves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from dpaudit import validate

__all__ = ["AccountantName", "CurvePoint", "Guarantee"]


class AccountantName(StrEnum):
    """The accountants, and ``BEST`` for the least valid ε of all of them."""

    BEST = "best"
    PURE = "pure"
    GAUSSIAN = "gaussian"
    ZCDP = "zcdp"
    RDP = "rdp"
    MOMENTS = "moments"
    PLD = "pld"

    @classmethod
    def parse(cls, value: object) -> AccountantName:
        """The accountant of that name.

        Raises:
            InputError: if there is none of that name.
        """
        return validate.member(cls, accountant=value)


@dataclass(frozen=True)
class CurvePoint:
    """One point of a privacy curve: the ledger is (epsilon, delta)-private."""

    epsilon: float
    delta: float


@dataclass(frozen=True)
class Guarantee:
    """A proved (ε, δ), rounded up.

    Attributes:
        epsilon: the proved ε; infinity where there is none at this δ.
        delta: the δ it holds at.
        accountant: whose theorem proves it.
        error_bound: the tightest ε of the same composition is proved to lie in
            [epsilon − error_bound, epsilon]; None where the accountant gives no lower end.
        native: the accountant's own parameters (ρ, orders and divergences, μ, grid …), JSON values.
        curve: the proved δ(ε), by increasing ε.
        compared: ε of every accountant that applies, for reports.
    """

    epsilon: float
    delta: float
    accountant: AccountantName
    error_bound: float | None
    native: Mapping[str, Any] = field(default_factory=dict)
    curve: tuple[CurvePoint, ...] = ()
    compared: Mapping[str, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """A JSON record; an infinite ε becomes null."""
        return {
            "epsilon": _json_number(self.epsilon),
            "delta": self.delta,
            "accountant": str(self.accountant),
            "error_bound": self.error_bound,
            "native": dict(self.native),
            "curve": [[point.epsilon, point.delta] for point in self.curve],
            "compared": {name: _json_number(value) for name, value in self.compared.items()},
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Guarantee:
        """The guarantee that :meth:`to_dict` wrote."""
        return cls(
            epsilon=_number(record["epsilon"]),
            delta=record["delta"],
            accountant=AccountantName(record["accountant"]),
            error_bound=record["error_bound"],
            native=record["native"],
            curve=tuple(CurvePoint(*point) for point in record["curve"]),
            compared={name: _number(value) for name, value in record["compared"].items()},
        )


def _json_number(value: float) -> float | None:
    return None if value == float("inf") else value


def _number(value: float | None) -> float:
    return float("inf") if value is None else value
