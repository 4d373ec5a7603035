"""The book: data sets, budgets on them, and every release, charged before any noise is drawn.

Nothing is given away that could not be refused: a release is reserved, with all that its plan
declares, in one transaction that holds the lock of the book. What was reserved stays charged,
whatever becomes of it, unless the journal of its ledger proves that less ran.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path
from typing import Any, Self

from sqlalchemy import text

from dpaudit import files
from dpaudit.book import schema, store
from dpaudit.book.limits import Cost
from dpaudit.book.records import BudgetRecord, DataSet, Release, Status, checked_text
from dpaudit.book.reservation import Reservation
from dpaudit.book.state import Place, State
from dpaudit.book.store import Page, Store, Wish
from dpaudit.book.windows import charged, checked_window, span_of, together
from dpaudit.errors import (
    BudgetExceededError,
    DpAuditError,
    InputError,
    PlanMismatchError,
    TamperedError,
)
from dpaudit.ledger import JournalSummary, summarise_journal
from dpaudit.plan import Plan
from dpaudit.validate import shown

FORMAT = "dpaudit-book/1"
Charges = dict[str, tuple[list[str], list[int]]]


class Book:
    """An organisation's privacy budget, in a database that several machines may share.

    Whoever asks is named by ``by``; a server that knows its users passes their names on.

    Args:
        url: ``postgresql://USER@HOST/NAME``, or the path of a SQLite file on a local disk.
        clock: in place of the database's, for tests.

    Raises:
        InputError: if there is no book, or its tables are of another version.
    """

    def __init__(self, url: str, *, clock: Callable[[], datetime] | None = None) -> None:
        self._store = Store(url, clock)
        if not store.exists(self._store.url):
            raise InputError(f"book {shown(url)} does not exist; make it with dpaudit book init.")
        with self._store.transaction(writes=False) as connection:
            schema.require_current(connection)

    @classmethod
    def create(cls, url: str, *, by: str, clock: Callable[[], datetime] | None = None) -> Self:
        """Make a book, or bring the tables of one up to date.

        Raises:
            InputError: if the database cannot be used.
        """
        made = Store(url, clock)
        now = (clock or (lambda: datetime.now(UTC)))().astimezone(UTC)
        at = now.isoformat(timespec="microseconds")
        with made.transaction(writes=True) as connection:
            versions = tuple(schema.migrate(connection, at))
            if 1 in versions:
                page = Page(State(), "", 0, at)
                identifier = secrets.token_hex(16)
                page.write("opened", checked_text(by=by), format=FORMAT, book=identifier)
                head = {"book": identifier, "hash": page.head, "made": at}
                connection.execute(_OPENED, head)
                connection.execute(store.LOG, page.lines)
        made.close()
        return cls(url, clock=clock)

    @property
    def today(self) -> date:
        """The day by this machine's clock, or the one that was given, in UTC."""
        return self._store.now().date()

    @property
    def budgets(self) -> dict[str, BudgetRecord]:
        """All budgets by name, those that were retired included."""
        with self.reading() as connection:
            return store.catalogue(connection)[1]

    def close_connections(self) -> None:
        """Let the database go; the book may still be used afterwards."""
        self._store.close()

    def add_dataset(self, dataset: DataSet, *, by: str) -> DataSet:
        """Enter a data set; the same one again is no change.

        Raises:
            InputError: if there is another one of that name.
        """

        def run(page: Page) -> DataSet:
            if not _is_known(page.state.datasets, dataset):
                page.write("dataset", checked_text(by=by), record=dataset.to_dict())
            return dataset

        made: DataSet = self._store.change(Wish(run))
        return made

    def add_budget(self, budget: BudgetRecord, *, by: str) -> BudgetRecord:
        """Enter a budget, which counts what was released before, too; the same one is no change.

        Raises:
            InputError: if there is another one of that name, no such data set, or the window is not
                that of the data set.
            UnsupportedError: if an earlier release costs what this kind of limit cannot count.
        """

        def run(page: Page) -> BudgetRecord:
            budget.require_for(page.state.dataset(budget.dataset))
            if not _is_known(page.state.budgets, budget):
                carried = self._carried(budget)
                page.write("budget", checked_text(by=by), record=budget.to_dict(), carried=carried)
            return budget

        made: BudgetRecord = self._store.change(Wish(run))
        return made

    def _carried(self, budget: BudgetRecord) -> dict[str, list[int]]:
        """What earlier releases cost, each in full; the caller holds the lock."""
        state, cost = State(), cache(lambda digest: budget.limit.cost(self.plan(digest)))
        with self._store.transaction(writes=False) as connection:
            for release in store.releases(connection, "dataset = :name", name=budget.dataset):
                day = datetime.fromisoformat(release.made).date()
                for bucket in charged(budget.window, span_of(release.period, day), day):
                    state.add(budget.name, bucket, cost(release.plan))
        return {bucket: list(total) for (_, bucket), total in state.spent.items()}

    def retire(self, name: str, *, by: str, why: str) -> None:
        """Let a budget no longer count, as when another one takes its place.

        Raises:
            InputError: if there is none, or it was retired.
        """
        reason = checked_text(why=why)

        def run(page: Page) -> None:
            known = page.state.budgets.get(name)
            if known is None or known.retired:
                raise InputError(f"budget is {shown(name)}; it must be one that counts.")
            page.write("retired", checked_text(by=by), budget=name, why=reason)

        self._store.change(Wish(run))

    def reserve(
        self,
        dataset: str,
        plan: Plan,
        *,
        by: str,
        purpose: str,
        approved: str = "",
        request: str | None = None,
        period: str | None = None,
    ) -> Reservation:
        """Charge a plan to all budgets of a data set, before any of it runs.

        Args:
            dataset: name of the data set.
            plan: all that is to be released.
            by: who asks.
            purpose: what it is for.
            approved: who approved it.
            request: chosen by who asks: however often it is sent, it is charged once.
            period: the days whose data are read, as ``2026-11-16..2026-11-22``; today by default.

        Returns:
            The budget and the anchor of a ledger; in the state that it has, if it was asked before.

        Raises:
            BudgetExceededError: if a budget refuses; that is logged, and nothing is charged.
            InputError: if the plan does not protect what the data set asks for, there is no budget,
                or the request was one for something else.
            UnsupportedError: if a budget cannot count what the plan declares.
        """
        own = request or secrets.token_hex(16)
        wanted = {"dataset": dataset, "plan": plan.hash, "purpose": checked_text(purpose=purpose)}
        wanted |= {"by": checked_text(by=by), "request": checked_text(request=own)}
        wanted["approved"] = checked_text(approved=approved) if approved else ""
        plan_text = files.canonical_json(plan.to_dict())
        self._estimate(dataset, plan)

        def places(page: Page) -> Iterable[Place]:
            charges = _charges(page, dataset, plan, period)
            return _together(page.state, charges)

        def run(page: Page) -> Release | BudgetExceededError:
            known = next((r for r in page.state.releases.values() if r.request == own), None)
            if known is not None:
                return _same(known, wanted)
            charges = _charges(page, dataset, plan, period)
            if refusing := page.state.refusing(charges):
                budget, bucket = refusing
                why = f"budget {budget.name!r} ({budget.limit}, {bucket}) has not that much left"
                page.write("refused", by, why=why, **{k: wanted[k] for k in _REFUSED})
                return BudgetExceededError(f"{why}; nothing is charged, and nothing may run.")
            made = Release(
                id=f"R{page.number}", period=period or "", made=page.now, charged=charges, **wanted
            )
            page.plans[plan.hash] = plan_text
            page.write("reserved", by, record=made.to_dict())
            return page.state.releases[made.id]

        made: Release = self._store.change(Wish(run, requests=(own,), places=places))
        return Reservation(self._store, made, plan, by)

    def _estimate(self, dataset: str, plan: Plan) -> None:
        """What the plan costs, before others wait for it; it is remembered."""
        known = self._store.known_budgets
        for budget in known.values():
            if budget.dataset == dataset and not budget.retired:
                budget.limit.cost(plan)

    def reservation(self, release: str, *, by: str) -> Reservation:
        """A release again, to go on with its journal."""
        known = self.release(release)
        return Reservation(self._store, known, self.plan(known.plan), by)

    def close(
        self, release: str, *, by: str, journal: Path | str | None = None, certificate: str = ""
    ) -> Release:
        """Say that a release ran, and that nothing more of it may.

        Args:
            release: its id.
            by: who says so.
            journal: of its ledger, closed; what it proves not to have run is given back.
            certificate: digest of its certificate.

        Raises:
            TamperedError: if the journal is not the one that the book anchors, or its end is gone.
            InputError: if the release ended otherwise, or the journal is not closed.
        """
        return self._end(release, Status.CLOSED, by, journal, certificate=certificate)

    def abandon(
        self, release: str, *, by: str, why: str, journal: Path | str | None = None
    ) -> Release:
        """Say that a release ended early; it stays charged, but for what its journal disproves.

        Raises:
            TamperedError: if the journal is not the one that the book anchors, or its end is gone.
            InputError: if the release was closed.
        """
        reason = checked_text(why=why)
        return self._end(release, Status.ABANDONED, by, journal, why=reason)

    def _end(
        self,
        release: str,
        status: Status,
        by: str,
        journal: Path | str | None,
        *,
        certificate: str = "",
        why: str = "",
    ) -> Release:
        who = checked_text(by=by)
        held = None if journal is None else self.check_journal(journal, release)
        if held is not None and status is Status.CLOSED and not held.closed:
            raise InputError(f"the journal of release {release} is open; resume or abandon it.")

        def places(page: Page) -> Iterable[Place]:
            known = page.state.release(release)
            return ((name, b) for name, (buckets, _) in known.charged.items() for b in buckets)

        def run(page: Page) -> Release:
            known = page.state.release(release)
            if known.status is status:
                return known
            if known.status.ended:
                raise InputError(f"release {release} is {known.status}; it stays so.")
            ended = {"lines": known.lines, "head": known.head, "ran": "", "returned": {}}
            if held is not None:
                if held.lines - known.lines not in (0, 1):
                    raise InputError(f"the journal of {release} went on meanwhile; try again.")
                ended |= {"lines": held.lines, "head": held.head} | _returned(page, known, held)
            facts = ended | {"status": str(status), "why": why, "certificate": certificate}
            page.write("ended", who, release=release, **facts)
            return page.state.releases[release]

        ended: Release = self._store.change(Wish(run, releases=(release,), places=places))
        return ended

    def check_journal(self, path: Path | str, release: str | None = None) -> JournalSummary:
        """A journal that is the one of a release, to its last line.

        Args:
            path: of the journal.
            release: its id; found by the journal where not given.

        Raises:
            TamperedError: if the chain is broken, lines at its end are missing, it is a copy that
                went another way, or its plan is not the one that was reserved.
            InputError: if it is no journal, or not of that release.
        """
        if release is None:
            identifier = summarise_journal(path).identifier
            found = next(self.releases("journal = :journal", journal=identifier), None)
            if found is None:
                raise InputError("the book knows nothing of this journal; give the right one.")
            release = found.id
        reservation = self.reservation(release, by="")
        content = summarise_journal(path, anchor=reservation)
        if content.plan != reservation.plan:
            raise TamperedError(f"the journal has another plan than release {release}.")
        return content

    def release(self, release: str) -> Release:
        """A release as it is now.

        Raises:
            InputError: if there is none of that id.
        """
        found = next(self.releases("id = :id", id=release), None)
        if found is None:
            raise InputError(f"release is {shown(release)}, which the book does not have.")
        return found

    def releases(self, where: str = "1 = 1", **wanted: Any) -> Iterator[Release]:
        """The releases, or those of which something is so (SQL, with named values)."""
        with self._store.transaction(writes=False) as connection:
            yield from store.releases(connection, where, **wanted)

    def plan(self, digest: str) -> Plan:
        """A plan by its hash.

        Raises:
            TamperedError: if it is not there, or not the one that was written.
        """
        with self.reading() as connection:
            found = connection.execute(
                text("SELECT record FROM plan WHERE hash = :hash"), {"hash": digest}
            ).scalar()
        return checked_plan(found, digest)

    @contextmanager
    def reading(self) -> Iterator[Any]:
        """A transaction that reads, for what reports of the whole book."""
        with self._store.transaction(writes=False) as connection:
            yield connection


_OPENED = text(
    "INSERT INTO head (one, book, lines, hash, made, catalogue) "
    "VALUES (1, :book, 1, :hash, :made, 0)"
)
_REFUSED = ("dataset", "plan", "purpose", "approved", "request")


def checked_plan(record: str | None, digest: str) -> Plan:
    """A plan from its text.

    Raises:
        TamperedError: if it is not the one of that hash.
    """
    try:
        plan = Plan.from_dict(json.loads(record or ""))
    except (ValueError, DpAuditError):
        plan = None
    if plan is None or plan.hash != digest:
        raise TamperedError(f"plan {digest[:12]} of the book is missing, or was edited.")
    return plan


def _is_known(kept: Mapping[str, Any], record: DataSet | BudgetRecord) -> bool:
    known = kept.get(record.name)
    if known is not None and known != record:
        raise InputError(f"the book has another {shown(record.name)}; give a new name.")
    return known is not None


def _charges(page: Page, dataset: str, plan: Plan, period: str | None) -> Charges:
    """What a plan takes from each budget of a data set, and from which buckets."""
    about = page.state.dataset(dataset)
    about.require(plan)
    if period and not about.per:
        raise InputError(f"period is given; data set {shown(dataset)} protects all data of a unit.")
    budgets = page.state.budgets_of(dataset)
    if not budgets:
        raise InputError(f"data set {shown(dataset)} has no budget; give it one first.")
    span = span_of(period, page.today)
    return {
        budget.name: (
            list(charged(budget.window, span, page.today)),
            list(budget.limit.cost(plan)),
        )
        for budget in budgets
    }


def _together(state: State, charges: Charges) -> Iterator[Place]:
    for name, (buckets, _) in charges.items():
        for bucket in buckets:
            for each in together(state.budgets[name].window, bucket):
                yield name, each


def _same(known: Release, wanted: Mapping[str, str]) -> Release:
    for name, value in wanted.items():
        if getattr(known, name) != value:
            raise InputError(
                f"request {shown(known.request)} was one with another {name}; give a new request."
            )
    return known


def _returned(page: Page, known: Release, held: JournalSummary) -> dict[str, Any]:
    """What a journal proves not to have run, and the plan that ran."""
    ran: Plan | None = None
    try:
        ran = held.account.spent()
        costs = {name: page.state.budgets[name].limit.cost(ran) for name in known.charged}
    except PlanMismatchError:  # nothing ran
        costs = {name: (0,) * len(known.cost(name)) for name in known.charged}
    except InputError:  # what ran cannot be counted by itself
        return {}
    given = {name: given_back(known.cost(name), costs[name]) for name in known.charged}
    if not any(any(each) for each in given.values()):
        return {}
    if ran is not None:
        page.plans[ran.hash] = files.canonical_json(ran.to_dict())
    return {"ran": "nothing" if ran is None else ran.hash, "returned": given}


def given_back(charged: Cost, ran: Cost) -> list[int]:
    """What was charged beyond what ran, in each number."""
    return [max(0, a - b) for a, b in zip(charged, ran, strict=True)]
