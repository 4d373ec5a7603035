"""The ledger: the one door through which private data leave, and the record of what did.

>>> from dpaudit import Invocation, Laplace, Plan, PrivacyUnit, ReplaceOne, TrustModel
>>> laplace = Laplace(scale=2.0, clip=(-1.0, 1.0))
>>> plan = Plan.of(Invocation(laplace, 2.0, PrivacyUnit("response"), ReplaceOne(),
...                           TrustModel.LOCAL, total=2, at="answer"))
>>> with Ledger(plan, rng=np.random.default_rng(0)) as ledger:
...     answers = [ledger.release(laplace, y, unit=user, at="answer")
...                for user, y in [("ann", 0.4), ("bob", -3.0)]]
>>> [len(ledger), ledger.spent().invocations[0].count]
[2, 1]
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from dpaudit import validate
from dpaudit.errors import ClosedLedgerError, InputError, PlanMismatchError
from dpaudit.ledger.charges import charged, require_covered
from dpaudit.ledger.journal import Journal, read_journal
from dpaudit.mechanisms import Mechanism
from dpaudit.mechanisms.base import Released
from dpaudit.mechanisms.continual import PrefixSums
from dpaudit.mechanisms.continual.release import Continual
from dpaudit.plan import Invocation, Plan

__all__ = ["Budget", "Entry", "ExternalDraw", "Ledger", "NoiseBackend"]

_PASSED_OVER = ("dpaudit.ledger", "dpaudit.auditing", "dpaudit.integrations", "opacus.", "torch.")


class Budget(Protocol):
    """A privacy filter: it admits an invocation or raises before any noise is drawn."""

    def admit(self, invocation: Invocation) -> None:
        """Charge the invocation, or raise BudgetExceededError and charge nothing."""


class NoiseBackend(Protocol):
    """Draws the noise in place of a generator, such as a sampler without floating-point leaks."""

    def require(self, plan: Plan) -> None:
        """Raise UnsupportedError if a mechanism of the plan cannot be drawn."""

    def release(self, invocation: Invocation, value: ArrayLike) -> Released:
        """One release, with a guarantee of at most that of the declared mechanism."""


class ExternalDraw(Protocol):
    """Noise that another library is about to add to a private value of its own."""

    @property
    def sampler(self) -> str:
        """The library and its version."""

    def draw(self) -> None:
        """Add the noise; if this raises, nothing has been released."""


@dataclass(frozen=True)
class Entry:
    """One release that happened.

    Attributes:
        invocation: as declared, with ``count`` and ``total`` of the whole plan.
        unit: the unit that was touched; None where every unit was.
        source: module and line that asked for the release.
        sampler: the library that drew the noise; None where the ledger did.
    """

    invocation: Invocation
    unit: str | None
    source: str
    sampler: str | None = None


class Ledger:
    """Draws the noise of every release and appends the invocation that it was.

    A release that the plan does not declare is refused before any noise is drawn. Private values
    and noise are never stored.

    Args:
        plan: what the algorithm declared.
        rng: source of the noise; without it, fresh entropy of the operating system. A seeded
            generator lets whoever knows the seed subtract the noise: use it for experiments only.
        journal: path of a JSON-lines file to append to; it must not exist yet.
        budget: a privacy filter that every release must pass.
        noise: draws all noise instead of ``rng``, such as
            :class:`~dpaudit.ledger.secure.SecureNoise`.

    Raises:
        InputError: if both ``rng`` and ``noise`` are given.
        UnsupportedError: if ``noise`` cannot draw a mechanism of the plan.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        rng: np.random.Generator | None = None,
        journal: Path | str | None = None,
        budget: Budget | None = None,
        noise: NoiseBackend | None = None,
    ) -> None:
        if not isinstance(plan, Plan):
            raise InputError(f"plan is {plan!r:.60}; it must be a Plan.")
        if rng is not None and not isinstance(rng, np.random.Generator):
            raise InputError(f"rng is {rng!r:.60}; it must be a numpy.random.Generator.")
        if noise is not None:
            if rng is not None:
                raise InputError("rng and noise are both given; the noise comes from one of them.")
            noise.require(plan)
        self.plan = plan
        self.noise = noise
        self.seeded = rng is not None
        self._rng = np.random.default_rng() if rng is None else rng
        self._declared = {invocation.at: invocation for invocation in plan.invocations}
        self._charges: dict[str, Counter[Hashable]] = {at: Counter() for at in self._declared}
        self._most = dict.fromkeys(self._declared, 0)  # releases that one named unit has had
        self._entries: list[Entry] = []
        self._budget = budget
        self._closed = False
        self._journal = None if journal is None else Journal.create(journal, plan)

    @classmethod
    def resume(
        cls,
        journal: Path | str,
        *,
        rng: np.random.Generator | None = None,
        budget: Budget | None = None,
        noise: NoiseBackend | None = None,
    ) -> Self:
        """Go on where a run was interrupted: the same plan, and what was charged stays charged.

        Args:
            journal: file of a ledger that was not closed; its plan is taken up, its chain goes on.
            rng: as for a new ledger.
            budget: a fresh privacy filter; it is charged with what the journal holds.
            noise: as for a new ledger.

        Raises:
            TamperedError: if the chain is broken.
            InputError: if the journal is closed, or is none.
            BudgetExceededError: if the journal holds more than the budget admits.
        """
        content = read_journal(journal)
        ledger = cls(content.plan, rng=rng, noise=noise)
        for entry in content.entries:
            invocation = ledger._declared[entry["at"]]
            if budget is not None:
                budget.admit(replace(invocation, count=1, total=1))
            ledger._append(
                Entry(invocation, entry["unit"], entry.get("source", ""), entry.get("sampler"))
            )
        ledger._budget = budget
        ledger._journal = Journal.resume(journal)
        return ledger

    def within(self, budget: Budget) -> Self:
        """Put every further release under a privacy filter.

        Raises:
            InputError: if there is one already; a filter cannot be undone.
        """
        if self._budget is not None:
            raise InputError("ledger has a budget already; a filter cannot be replaced or undone.")
        self._budget = budget
        return self

    def release(
        self, mechanism: Mechanism, value: ArrayLike, *, unit: str | None = None, at: str = ""
    ) -> Released:
        """Release a private value through a declared mechanism.

        Args:
            mechanism: must equal the one declared at ``at``.
            value: the private value, before noise.
            unit: whom it belongs to; None where it depends on every unit.
            at: label of the declared invocation; may be left out if the plan has only one.

        Returns:
            The noisy value: a number for a number, an array of the same shape for an array.

        Raises:
            PlanMismatchError: if the plan does not declare it, or not so often.
            BudgetExceededError: if the budget refuses it.
            InputError: if the value is invalid.
            ClosedLedgerError: if the ledger is closed.
        """
        invocation = self._admissible(mechanism, unit, at)
        mechanism.checked(value)
        require_covered(invocation, value)
        if self._budget is not None:
            self._budget.admit(replace(invocation, count=1, total=1))
        released = self._sample(invocation, value)
        self._append(Entry(invocation, unit, _caller()))
        return released

    def stream(
        self, mechanism: Continual, shape: Sequence[int], *, unit: str | None = None, at: str = ""
    ) -> PrefixSums:
        """Open a continual release, which is one invocation whatever the number of its steps.

        Args:
            mechanism: must equal the one declared at ``at``.
            shape: shape of one step; () for numbers.
            unit: as for :meth:`release`.
            at: label of the declared invocation; may be left out if the plan has only one.

        Returns:
            The running release; it refuses more steps than declared before any noise is drawn.

        Raises:
            PlanMismatchError: if the plan does not declare it, or not so often.
            BudgetExceededError: if the budget refuses it.
            ClosedLedgerError: if the ledger is closed.
        """
        invocation = self._admissible(mechanism, unit, at)
        if self._budget is not None:
            self._budget.admit(replace(invocation, count=1, total=1))
        stream = mechanism.start(shape, self._rng)
        self._append(Entry(invocation, unit, _caller()))
        return stream

    def observe(
        self, mechanism: Mechanism, external: ExternalDraw, *, unit: str | None = None, at: str = ""
    ) -> None:
        """Let another library draw the noise of a declared release, and record that it did.

        The door is the same as for :meth:`release`: nothing is drawn that the plan or the budget
        refuses. Nothing is recorded if drawing fails (a budget stays charged). The ledger cannot
        know what was drawn, so the entry names the sampler.

        Args:
            mechanism: must equal the one declared at ``at``.
            external: draws the noise.
            unit: as for :meth:`release`.
            at: label of the declared invocation; may be left out if the plan has only one.

        Raises:
            PlanMismatchError: if the plan does not declare it, or not so often.
            BudgetExceededError: if the budget refuses it.
            ClosedLedgerError: if the ledger is closed.
        """
        invocation = self._admissible(mechanism, unit, at)
        if self._budget is not None:
            self._budget.admit(replace(invocation, count=1, total=1))
        self._draw(invocation, external)
        self._append(Entry(invocation, unit, _caller(), external.sampler))

    def _admissible(self, mechanism: Mechanism, unit: str | None, at: str) -> Invocation:
        """The declared invocation, if one more use of it is within the plan."""
        if self._closed:
            raise ClosedLedgerError("the ledger is closed; open a new one for further releases.")
        if not isinstance(mechanism, Mechanism):
            raise InputError(f"mechanism is {mechanism!r:.60}; it must be a Mechanism.")
        if unit is not None:
            _require_name(unit)
        if not at and len(self._declared) == 1:
            at = next(iter(self._declared))
        invocation = self._declared.get(at)
        if invocation is None:
            places = ", ".join(repr(place) for place in self._declared)
            raise PlanMismatchError(
                f"{mechanism.kind} at {at!r} is not declared; the plan declares {places}."
            )
        if mechanism is not invocation.mechanism and mechanism != invocation.mechanism:
            raise PlanMismatchError(
                f"the plan declares {invocation.mechanism!r} at {at!r}, but {mechanism!r} ran."
            )
        charges = self._charges[at]
        # A release that touches everybody charges every unit, named or not.
        own = self._most[at] if unit is None else charges[unit]
        if own + charges[None] >= invocation.count:
            whom = f"{invocation.unit} {unit!r}" if unit is not None else "any one unit"
            raise PlanMismatchError(
                f"{invocation.describe()} is declared {invocation.count} times for one "
                f"{invocation.unit}; {whom} has been charged that often."
            )
        if charges.total() >= invocation.releases:
            raise PlanMismatchError(
                f"{invocation.describe()} is declared {invocation.releases} times in all and has "
                "been released that often."
            )
        return invocation

    def _sample(self, invocation: Invocation, value: ArrayLike) -> Released:
        """Draw the noise; the one place where a generator meets a private value."""
        if self.noise is not None:
            return self.noise.release(invocation, value)
        return invocation.mechanism.release(value, self._rng)

    def _draw(self, invocation: Invocation, external: ExternalDraw) -> None:
        """The one place where noise of another library meets a private value."""
        external.draw()

    def _append(self, entry: Entry) -> None:
        if self._journal is not None:
            self._journal.append(entry.invocation.at, entry.unit, entry.source, entry.sampler)
        self._entries.append(entry)
        at, unit = entry.invocation.at, entry.unit
        self._charges[at][unit] += 1
        if unit is not None:
            self._most[at] = max(self._most[at], self._charges[at][unit])

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    def spent(self) -> Plan:
        """What really ran, as a plan: each unit's charges, equal units merged into one group.

        Raises:
            PlanMismatchError: if nothing ran yet.
        """
        if not self._entries:
            raise PlanMismatchError("nothing has been released yet, so nothing has been spent.")
        return charged(self._declared, self._charges)

    def check(self) -> None:
        """Compare what ran with what was declared.

        Raises:
            PlanMismatchError: naming the first invocation that ran less often than declared. (One
                that is undeclared, different or too frequent is refused when it is asked for.)
        """
        for at, invocation in self._declared.items():
            ran = self._charges[at].total()
            if ran != invocation.releases:
                raise PlanMismatchError(
                    f"{invocation.describe()} is declared {invocation.releases} times and ran "
                    f"{ran} times; declare what runs."
                )

    def close(self) -> None:
        """Take no more releases; the journal gets its closing line. Closing twice is harmless."""
        if not self._closed and self._journal is not None:
            self._journal.close()
        self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
        if error is None:
            self.check()


def _require_name(unit: object) -> None:
    """Refuse names that a journal could not keep apart, before anything is drawn."""
    try:
        name = validate.text(unit=unit)
        name.encode()
    except UnicodeEncodeError:
        raise InputError(f"unit is {unit!r}; it must be a text of whole characters.") from None


def _caller() -> str:
    """Module and line outside this package, and outside what it observes, that asked for it."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_PASSED_OVER):
        frame = frame.f_back
    return f"{frame.f_globals.get('__name__', '?')}:{frame.f_lineno}"
