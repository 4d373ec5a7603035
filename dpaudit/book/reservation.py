"""A reserved release at the door of its ledger: it admits, and keeps the journal's head.

The book makes it and a ledger takes it, as budget and as anchor. It begins once, in one process,
and whatever the database answers, nothing is drawn that was not reserved.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from dpaudit.base.errors import (
    BudgetExceededError,
    DpAuditError,
    InputError,
    JournalError,
    PlanMismatchError,
)
from dpaudit.base.validate import shown
from dpaudit.book.records import Release, Status
from dpaudit.book.store import Page, Store, Transaction, releases
from dpaudit.ledger import AnchorState
from dpaudit.plan import Invocation, Plan


class Reservation:
    """The budget and the anchor of one ledger: ``Ledger(plan, budget=r, anchor=r, journal=…)``.

    It begins once. With a journal every line is entered in the book before its noise is drawn, so
    that of two copies only one goes on, and none after the release has ended.

    Attributes:
        release: as it was when it was asked for.
        plan: what was reserved.
    """

    def __init__(self, store: Store, release: Release, plan: Plan, by: str) -> None:
        self.release = release
        self.plan = plan
        self._store = store
        self._by = by or release.by
        self._declared = {each.at: each for each in plan.invocations}
        self._used: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._anchored = False
        self._resumes = False
        """Whether its ledger goes on with a journal, whose first line began the release."""
        self._holder = 0
        """The process with the one ledger that it serves, once there is one."""

    @property
    def id(self) -> str:
        """The id of the release."""
        return self.release.id

    def admit(self, invocation: Invocation) -> None:
        """Admit one use of what was reserved.

        Raises:
            BudgetExceededError: if it was not reserved, or the release ended or began elsewhere.
        """
        declared = self._declared.get(invocation.at)
        whole = None if declared is None else (declared.count, declared.total)
        if whole is None or replace(invocation, count=whole[0], total=whole[1]) != declared:
            raise BudgetExceededError(
                f"{invocation.describe()} is not what release {self.id} reserved; nothing was "
                "drawn."
            )
        if self._used[invocation.at] >= declared.releases:
            raise BudgetExceededError(
                f"{invocation.describe()} was reserved {declared.releases} times and is used up."
            )
        if not self._holder and not self._resumes:  # also where its ledger could not be opened
            self.begin(self.plan, anchored=False)
        if self._holder not in (0, os.getpid()):
            raise BudgetExceededError(
                f"release {self.id} runs in another process; nothing was drawn."
            )
        if not self._anchored and self._now().status is not Status.RUNNING:
            raise BudgetExceededError(f"release {self.id} has ended; nothing was drawn.")
        self._used[invocation.at] += 1

    def begin(self, plan: Plan, *, anchored: bool) -> None:
        """Serve one ledger; without a journal that is anchored here, the release begins at once.

        Args:
            plan: of the ledger.
            anchored: whether this keeps the head of its journal, with whose first line it begins.

        Raises:
            PlanMismatchError: if the plan is not the one that was reserved.
            BudgetExceededError: if the release has begun, here or elsewhere.
        """
        if plan != self.plan:
            raise PlanMismatchError(
                f"the ledger's plan is not the one that release {self.id} reserved; reserve "
                "this plan too."
            )
        with self._lock:
            if self._holder:
                raise BudgetExceededError(
                    f"release {self.id} already has a ledger; a release begins only once."
                )
            if not anchored:
                self._change(self._begin, BudgetExceededError)
                self._holder = os.getpid()
            self._anchored = anchored
            self._resumes = anchored and self._now().status is Status.RUNNING

    def _begin(self, page: Page) -> None:
        known = page.state.release(self.id)
        if known.status is not Status.RESERVED:
            waits = known.status is Status.REQUESTED
            why = "it waits for approval" if waits else "it begins once"
            raise BudgetExceededError(
                f"release {self.id} is {known.status}; {why}, and nothing was drawn."
            )
        page.write("started", self._by, release=self.id, journal="")

    def state(self, journal: str) -> AnchorState | None:
        """Return what is known of its journal; None before there is one.

        Raises:
            InputError: if the release has begun without it, or was withdrawn.
        """
        known = self._now()
        if known.status in (Status.REQUESTED, Status.RESERVED):
            return None
        if known.withdrawn:
            raise InputError(f"release {self.id} was withdrawn; no ledger can be opened for it.")
        if not known.journal or known.journal != journal:
            raise InputError(
                f"release {self.id} has begun with another journal than {shown(journal)}, or "
                "without one; a release begins only once."
            )
        return _anchored(known)

    def advance(self, state: AnchorState, after: AnchorState | None = None) -> None:
        """Enter how far the journal has come; with its first line the release begins.

        Raises:
            JournalError: if the release has ended, or another copy of its journal went on.
        """

        def run(page: Page) -> None:
            known = page.state.release(self.id)
            if known.status is Status.RESERVED:
                page.write("started", self._by, release=self.id, journal=state.journal)
            elif known.status is not Status.RUNNING:
                raise JournalError(f"release {self.id} is {known.status}; nothing was drawn.")
            elif after != _anchored(known) or known.journal != state.journal:
                raise JournalError(
                    f"release {self.id} continued in another copy of its journal; nothing was "
                    "drawn."
                )
            facts = {"release": self.id, "lines": state.lines, "head": state.head}
            page.write("anchored", self._by, **facts)

        if self._holder not in (0, os.getpid()):
            raise JournalError(f"release {self.id} runs in another process; nothing was drawn.")
        self._change(run, JournalError)
        self._anchored, self._holder = True, os.getpid()

    def _change(self, run: Callable[[Page], None], failure: type[DpAuditError]) -> None:
        """Make a change; whatever stops it stops the ledger, in the words that it knows."""
        try:
            self._store.change(Transaction(run, releases=(self.id,)))
        except DpAuditError as error:
            raise failure(str(error)) from None

    def _now(self) -> Release:
        known = self._store.seen  # before the state that the transaction sees
        with self._store.transaction(writes=False) as connection:
            self._store.look(connection, known)
            return next(releases(connection, "id = :id", id=self.id))


def _anchored(known: Release) -> AnchorState:
    return AnchorState(known.journal, known.lines, known.head)
