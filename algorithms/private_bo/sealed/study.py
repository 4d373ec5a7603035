"""What sealed studies have in common: a table, a roster, and a policy that meets releases alone."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit import InputError, RunResult, SealedSubject
from dpaudit.base.validate import shown
from private_bo.base import Study


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
