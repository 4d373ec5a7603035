"""Problems of one's own, sealed: an objective that sees one user's records at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dpaudit import InputError, Table
from private_bo.gp.types import Array
from private_bo.own.studies import OwnStudy
from private_bo.sealed.study import SealedStudy


@dataclass(frozen=True)
class SealedProblem(SealedStudy, OwnStudy):
    """Base of studies whose objective sees one user's records, in a process of its own.

    The objective is a function ``objective(records, rng, point)`` at the top of a file of the code:
    ``records`` has a list of values for each column, ``rng`` is the user's own, and ``point`` is a
    list of coordinates. Whatever it keeps in a cache or a global is gone with its process. Where it
    fails, and where a user has no rows, the answer is the middle of the range.

    Fields as in the study, and:

    Attributes:
        columns: what each column of a user's rows holds, as those of a :class:`dpaudit.Table`.
    """

    default_data: str = "users.csv"  # type: ignore[misc]
    columns: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def people(self) -> int:
        """All users."""
        return self.users

    def not_covered(self) -> tuple[str, ...]:
        """As without a seal, but for what an objective follows from: here it sees no more."""
        *others, _ = super().not_covered()
        return (*others, "How long an objective takes.")

    @property
    def functions(self) -> tuple[Callable[..., Any], ...]:  # type: ignore[override]
        """The objective."""
        return () if self.objective is None else (self.objective.function,)

    @property
    def step(self) -> float:
        """To whose multiples answers are rounded: about a millionth of their range."""
        low, high = self.answers
        return float(f"{1e-6 * (high - low):.0e}")

    def table(self) -> Table:
        """Users and their columns."""
        return Table(self.default_data, "user", self.columns, roster=self.names)

    def measure(self, point: Array, record: Any) -> Any:
        """A handle of what a user answers."""
        if self.objective is None:
            raise InputError("objective is None; give a function of records, rng and a point.")
        low, high = self.answers
        return record.per_unit(
            self.objective.function, low=low, high=high, step=self.step, default=(low + high) / 2,
            parameters={"point": point.tolist()},
        )  # fmt: skip

    def scaled(self, answered: Any) -> Any:
        """Answers of a handle, scaled to [−½, ½]."""
        low, high = self.answers
        places = 15 + math.floor(math.log10(self.step))  # of what 2^53 steps hold
        factor = decimal(1.0 / (high - low), places)
        return answered.rows().vector(f"(value - {decimal((low + high) / 2)}) * {factor}")


def decimal(number: float, places: int = 12) -> str:
    """A number as a constant of an expression."""
    return f"({number:.{places}f})"
