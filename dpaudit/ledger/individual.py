"""Noisy sums in which every unit has a budget, seen through the ledger's door."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.ledger.account import Account
from dpaudit.ledger.bounding import bounded_parts, grid_step, numbers_of
from dpaudit.ledger.checks import unshown
from dpaudit.ledger.door import ReleaseGate
from dpaudit.ledger.process_bound import Uncopied
from dpaudit.ledger.samplers.streams import PrefixSums
from dpaudit.ledger.units import Name, Units, distinct_names
from dpaudit.mechanisms import Norm
from dpaudit.mechanisms.pairs import Floats
from dpaudit.plan import Invocation


class IndividualSums(Uncopied):
    """Add rows of units step by step, and receive each step's noisy sum.

    Made by :meth:`Ledger.individual`. Budgets are counted exactly, in squares of grid steps. Which
    units have nothing left is private, and no method tells it.
    """

    called: ClassVar[str] = "a run of sums"

    def __init__(
        self, door: ReleaseGate, account: Account, invocation: Invocation, sums: PrefixSums
    ) -> None:
        assert invocation.contribution is not None
        self._door = door
        self._account = account
        self._invocation = invocation
        self._contribution = invocation.contribution
        self._sums = sums
        self._grid = grid_step(self._contribution.bound)
        self._whole = int((Fraction(self._contribution.bound) / Fraction(self._grid)) ** 2)
        self._left: dict[Name, int] = {}

    @property
    def taken(self) -> int:
        """How many steps have been released."""
        return self._sums.noise.taken

    def add(
        self, rows: ArrayLike, *, units: Sequence[str] | ArrayLike, most: float | None = None
    ) -> Floats:
        """Release the noisy sum of the rows of this step.

        Rows of one unit are added up; a part longer than ``most``, or than what is left of its
        unit's budget, is scaled down to it; NaN counts as 0.

        Args:
            rows: private numbers, shape (n, …) with the shape of a step at the end.
            units: to whom each row belongs, n texts or n whole numbers. A unit has the same name at
                every step, and 7 and "7" are two, of which a ledger takes one kind.
            most: how long a part may be at this step, so that no unit spends all at once; chosen
                from what is public or was released. The contribution's bound where not given.

        Returns:
            A new array of the shape of a step.

        Raises:
            InputError: if all declared steps have been released, or the rows have another shape or
                are no numbers, or there is not one unit for each. Nothing is charged then.
            PlanMismatchError: if a unit belongs to another group.
            ClosedLedgerError: if the ledger is closed, or belongs to another process.
        """
        self._door.require_own_process()
        values, (names, members) = numbers_of(rows), distinct_names(units)
        bound = self._contribution.bound
        longest = bound if most is None else min(unshown(validate.positive, most=most), bound)
        if len(values) != members.size:
            raise InputError(
                f"units has {members.size} entries and rows {len(values)}; give equally many."
            )
        with self._door.lock, self._door:
            self._sums.require(np.zeros(values.shape[1:]))
            for name in names:
                self._account.require_member(self._invocation, name)
            left = np.array([self._left.get(name, self._whole) for name in names], dtype=np.int64)
            bounds = np.minimum(np.sqrt(left) * self._grid, longest)
            drawn_from = Units(members, len(names))
            parts = bounded_parts(
                values, drawn_from, self._contribution, Norm.L2, self._grid, bounds, left
            )
            self._door.unfinished = True  # a step that was cut off may not be added again
            left -= np.einsum("ij,ij->i", parts, parts).astype(np.int64)
            for name, squares in zip(names, left.tolist(), strict=True):
                self._account.join(self._invocation, name)
                self._left[name] = squares
            total = parts.sum(axis=0) * self._grid
            released = self._sums.add(total.reshape(values.shape[1:]))
            self._door.unfinished = False
            return released
