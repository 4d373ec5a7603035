"""What sealed studies have in common: a table, a roster, and a policy that meets releases alone.

Studies of one's own have beside it an objective that sees one user's records at a time.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpaudit import InputError, RunResult, SealedSubject, Table
from dpaudit.base.validate import shown
from private_bo.base import Study
from private_bo.gp.types import Array
from private_bo.own.studies import OwnStudy


@dataclass(frozen=True)
class SealedStudy(SealedSubject, Study):
    """Base of studies whose data are a table that no code of theirs holds.

    A sealed study is its study with this base before it: ``class X(SealedStudy, study.X)``. Fields,
    plan, claim, findings, policy and result are those of the study, and nothing of them is written
    again. What changes is *who is asked*: in place of a private value stands a handle.

    1. ``table`` declares the columns that a unit's rows have, from the fields alone.
    2. ``run`` gives the study's own ``search`` a problem that hands out handles: of the rows of the
       unit that is asked, ``data.of_units([user])``, or of a group of them.
    3. The method of the study through which a value leaves is replaced by one that makes the value
       of the handle, by an expression (``rows.vector``) or by a function of the unit's records
       (``rows.per_unit``, listed in ``functions``), and releases it through the sealed ledger.

    The study's own generator decides as it did, so that at one seed the releases are those of the
    study on the same table, but for the step to which a value is rounded before its noise.

    Attributes:
        default_data: the table, a file of CSV, Parquet or JSON with the column ``user``.
        roster: names of the users in the order in which they are asked, which is public; where none
            are given, user 1, user 2, ….
    """

    default_data: str = "users.csv"  # type: ignore[misc]
    roster: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.roster and len(self.roster) < self.people:
            raise InputError(
                f"roster is {shown(self.roster)}, {len(self.roster)} names; it must have one for "
                f"each of the {self.people} users that are asked."
            )

    @abstractmethod
    def run(self, data: Any, ledger: Any, rng: np.random.Generator) -> RunResult:
        """Let the study's own search ask for handles of these rows, and tell its result."""

    @property
    @abstractmethod
    def people(self) -> int:
        """How many users are asked."""

    @property
    def names(self) -> tuple[str, ...]:
        """All users, in the order in which they are asked."""
        return self.roster or tuple(f"user {number + 1}" for number in range(self.people))


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
    def asked(self) -> Callable[..., Any]:
        """The objective.

        Raises:
            InputError: if there is none.
        """
        if self.objective is None:
            raise InputError("objective is None; give a function of records, rng and a point.")
        return self.objective.function

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
        low, high = self.answers
        return record.per_unit(
            self.asked, low=low, high=high, step=self.step, default=(low + high) / 2,
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
