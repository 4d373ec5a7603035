"""A running continual release, seen through the ledger's door."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from numpy.typing import ArrayLike

from dpaudit.base import validate
from dpaudit.base.errors import PlanMismatchError
from dpaudit.ledger.account import Account
from dpaudit.ledger.door import ReleaseGate
from dpaudit.ledger.entry import Entry
from dpaudit.ledger.process_bound import Uncopied
from dpaudit.ledger.samplers.streams import PrefixSums
from dpaudit.ledger.units import name_of
from dpaudit.mechanisms.continual.release import Continual
from dpaudit.mechanisms.pairs import Floats


class Stream(Uncopied):
    """Add a private value, receive the noisy sum of all so far. Made by :meth:`Ledger.stream`.

    The whole stream is charged when it is opened. A contribution with a unit is held against the
    declared participations; without one, that they are kept is an assumption. Where one unit was
    charged for the stream, every contribution is that unit's.
    """

    called: ClassVar[str] = "a stream"

    def __init__(
        self,
        door: ReleaseGate,
        account: Account,
        write: Callable[[str, int, str], None],
        entry: Entry,
        sums: PrefixSums,
    ) -> None:
        self._door = door
        self._account = account
        self._write = write
        self._invocation = entry.invocation
        self._owner = entry.unit
        self._sums = sums
        self._steps: dict[str, list[int]] = {}

    @property
    def taken(self) -> int:
        """How many steps have been released."""
        return self._sums.noise.taken

    @property
    def steps(self) -> int:
        """How many there can be."""
        return self._sums.noise.steps

    @property
    def state_arrays(self) -> int:
        """How many arrays of the shape of a step the noise keeps."""
        return self._sums.noise.state_arrays

    def require(self, value: ArrayLike) -> None:
        """Refuse a step that :meth:`add` would refuse, whoever contributes; nothing is counted.

        Raises:
            InputError: as :meth:`add` does.
            ClosedLedgerError: if the ledger belongs to another process.
        """
        self._door.require_own_process()
        self._sums.require(validate.private(value))

    def add(self, value: ArrayLike, *, unit: str | None = None) -> Floats:
        """Count one more value and release the prefix sum.

        Args:
            value: shape of one step.
            unit: who contributes; None where that is not said, or one unit was charged.

        Returns:
            A new array of the same shape.

        Raises:
            InputError: if all declared steps have been released, or the value has another shape,
                is not finite, or not symmetric where it must be, or the unit is no text.
            PlanMismatchError: if the unit contributes more often, or sooner again, than declared,
                belongs to another group, or is not the one that was charged.
            ClosedLedgerError: if the ledger is closed, or belongs to another process.
        """
        self._door.require_own_process()
        own = validate.private(value)
        unit = self._owner if unit is None else name_of(unit)
        with self._door.lock, self._door:
            self._sums.require(own)
            if unit is not None:
                self._admit(unit)
            self._door.unfinished = True  # a step that was cut off may not be added again
            if unit is not None:
                self._participate(unit)
            released = self._sums.add(own, unit=unit)
            self._door.unfinished = False
            return released

    def _admit(self, unit: str) -> None:
        """Refuse one participation too many."""
        invocation, step = self._invocation, self.taken
        mechanism = invocation.mechanism
        assert isinstance(mechanism, Continual)
        if self._owner not in (None, unit):
            raise PlanMismatchError(
                f"{invocation.describe()} is the stream of one {invocation.unit}, and only that "
                f"one was charged; open a stream for each {invocation.unit}, or one for all."
            )
        self._account.require_member(invocation, unit)
        earlier = self._steps.get(unit, [])
        if len(earlier) >= mechanism.participations:
            raise PlanMismatchError(
                f"{invocation.describe()} is declared with {mechanism.participations} "
                f"participations; this {invocation.unit} has used all of them."
            )
        if not mechanism.may_take_part([*earlier, step]):
            far = f"{'exactly' if mechanism.cyclic else 'at least'} {mechanism.min_separation}"
            raise PlanMismatchError(
                f"{invocation.describe()} is declared with participations {far} steps apart; this "
                f"{invocation.unit} has taken part {step - earlier[-1]} steps before."
            )

    def _participate(self, unit: str) -> None:
        """Write one participation down."""
        self._write(self._invocation.at, self.taken, unit)
        self._account.join(self._invocation, unit)
        self._steps[unit] = [*self._steps.get(unit, []), self.taken]
