"""The book: data sets, budgets on them, and every release, charged before any noise is drawn.

A release is reserved, with all that its plan declares, in one transaction that holds the lock of
the book. What was reserved stays charged, whatever becomes of it, unless the journal of its ledger
proves that less ran; that is given back when the release ends. A release for which no ledger was
begun may be withdrawn, which gives all of it back.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime
from functools import cache
from pathlib import Path
from typing import Any, Self

from sqlalchemy import Connection, text

from dpaudit.base.chain import require_new
from dpaudit.base.errors import BudgetExceededError, InputError, TamperedError
from dpaudit.base.names import checked_name, looks_alike
from dpaudit.base.validate import shown
from dpaudit.book import databases, store
from dpaudit.book.databases import last_seen
from dpaudit.book.limits import Cost, charged_buckets, joint_buckets, span_of
from dpaudit.book.records import NOTHING, BudgetRecord, DataSet, Release, Status, checked_text
from dpaudit.book.reservation import Reservation
from dpaudit.book.state import Place, State
from dpaudit.book.store import Page, Store, Transaction
from dpaudit.ledger import JournalSummary, summarise_journal
from dpaudit.plan import Plan


def refund_facts(page: Page, known: Release, held: JournalSummary) -> dict[str, Any]:
    """Give what a journal proves not to have run, and the plan that ran, for a line of the log."""
    if not known.journal:  # of what ran without one, no text can tell
        return {}
    nothing = {name: (0,) * len(known.cost(name)) for name in known.charged}
    try:
        ran = _ran(held)
        spent = {name: page.state.budgets[name].limit.cost(ran) for name in nothing} if ran else {}
    except InputError:  # what ran cannot be counted by itself
        return {}
    costs = nothing | spent
    given = {name: unspent(known.cost(name), costs[name]) for name in known.charged}
    if not any(any(each) for each in given.values()):
        return {}
    if ran is not None:
        page.keep(ran)
    return {"ran": NOTHING if ran is None else ran.hash, "returned": given}


def _ran(held: JournalSummary) -> Plan | None:
    """Return what ran, whoever is named: names of units prove nothing to be disjoint."""
    ran = ((each, held.account.charged(each.at)) for each in held.plan.invocations)
    found = [replace(own, count=min(own.count, n), total=n) for own, n in ran if n]
    return Plan.of(*found) if found else None


def _require_unlike(name: str, known: Iterable[str]) -> None:
    """Refuse a data set that would pass for another one, and have budgets of its own."""
    checked_name(dataset=name)
    if other := next((each for each in known if looks_alike(name, each)), None):
        raise InputError(
            f"dataset is {shown(name)}, which looks like the data set {shown(other)} of the book; "
            "use that one, or choose a name that differs in letters, digits or punctuation."
        )


def unspent(charged: Cost, ran: Cost) -> list[int]:
    """Return what was charged beyond what ran, in each number."""
    return [max(0, a - b) for a, b in zip(charged, ran, strict=True)]


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
        if not databases.exists(self._store.url):
            raise InputError(
                f"{databases.shown_url(self._store.url)} does not exist; make it with dpaudit book "
                "init."
            )
        with self.reading() as connection:
            databases.require_current(connection)
            self._store.seen = last_seen(connection)

    @classmethod
    def create(cls, url: str, *, by: str, clock: Callable[[], datetime] | None = None) -> Self:
        """Make a book, or bring the tables of one up to date.

        Raises:
            InputError: if the database cannot be used.
        """
        made = Store(url, clock)
        at = made.now().isoformat(timespec="microseconds")
        with made.transaction(writes=True) as connection:
            if 1 in list(databases.migrate(connection, at)):
                page = Page(State(), "", 0, at)
                identifier = secrets.token_hex(16)
                page.write("opened", checked_text(by=by), format=FORMAT, book=identifier)
                connection.execute(_OPENED, {"book": identifier, "hash": page.head, "made": at})
                connection.execute(store.LOG, page.lines)
        made.close()
        return cls(url, clock=clock)

    @property
    def today(self) -> date:
        """The day by this machine's clock, or the one that was given, in UTC."""
        return self._store.now().date()

    @property
    def store(self) -> Store:
        """Its database, for other rooms of this package."""
        return self._store

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Yield one state of the database, for whoever reports of it."""
        with self._store.transaction(writes=False) as connection:
            yield connection

    def change(self, transaction: Transaction) -> Any:
        """Do what is asked, in one transaction of the database with its lines of the log."""
        return self._store.change(transaction)

    def change_release(self, release: str, run: Callable[[Page], Release]) -> Release:
        """Change a release, with the sums that it was charged to."""
        changed: Release = self.change(
            Transaction(run, releases=(release,), places=lambda page: page.state.places(release))
        )
        return changed

    def disconnect(self) -> None:
        """Let the database go; the book may still be used afterwards."""
        self._store.close()

    def add(self, record: DataSet | BudgetRecord, *, by: str) -> None:
        """Enter a data set, or a budget, which counts earlier releases too; the same is no change.

        Raises:
            InputError: if there is another one of that name, or a data set whose name looks like
                it, or a budget's data set is missing or has another period.
            UnsupportedError: if an earlier release costs what this kind of limit cannot count.
        """

        def run(page: Page) -> None:
            more: dict[str, Any] = {}
            known: Mapping[str, Any] = page.state.datasets
            if isinstance(record, BudgetRecord):
                known = page.state.budgets
                record.require_for(page.state.dataset(record.dataset))
            held = known.get(record.name, record)
            if isinstance(held, DataSet):
                held = replace(
                    held, public=getattr(record, "public", None)
                )  # which is declared apart
            if held != record:
                raise InputError(
                    f"the book already has another {shown(record.name)}; choose a new name."
                )
            if record.name not in known:
                if isinstance(record, DataSet):
                    _require_unlike(record.name, known)
                if isinstance(record, BudgetRecord):
                    more = {"carried": self._carried(record)}
                page.write(record.kind, checked_text(by=by), record=record.to_dict(), **more)

        self._store.change(Transaction(run, alone=True))

    def _carried(self, budget: BudgetRecord) -> dict[str, list[int]]:
        """Return what earlier releases cost, each in full unless withdrawn; under the lock."""
        state, cost = State(), cache(lambda digest: budget.limit.cost(self.plan(digest)))
        asked = "dataset = :name AND status != 'denied'"
        for release in self.releases(asked, name=budget.dataset):
            if release.withdrawn:
                continue
            day = datetime.fromisoformat(release.made).date()
            for bucket in charged_buckets(budget.window, span_of(release.period, day), day):
                state.add(budget.name, bucket, cost(release.plan))
        return {bucket: list(total) for (_, bucket), total in state.spent.items()}

    def retire(self, budget: str, *, by: str, why: str) -> None:
        """Let a budget no longer count, as when another one takes its place.

        Raises:
            InputError: if there is none, or it was retired.
        """

        def run(page: Page) -> None:
            known = page.state.budgets.get(budget)
            if known is None or known.retired:
                raise InputError(
                    f"budget is {shown(budget)}; it must be a budget that is not retired."
                )
            told = {"budget": budget, "why": checked_text(why=why)}
            page.write("retired", checked_text(by=by), **told)

        self._store.change(Transaction(run))

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
        journal: Path | str | None = None,
    ) -> Reservation:
        """Charge a plan to all budgets of a data set, before any of it runs.

        Args:
            dataset: name of the data set.
            plan: all that is to be released.
            by: who asks.
            purpose: what it is for.
            approved: who approved it; where a budget asks for approval it then waits, and who
                approves it says so to the book (:func:`dpaudit.book.decide`).
            request: chosen by who asks: however often it is sent, it is charged once.
            period: the days whose data are read, as ``2026-11-16..2026-11-22``; today by default.
            journal: where the ledger's journal is to be; nothing is charged if it cannot be made.

        Returns:
            The budget and the anchor of a ledger; in the state that it has, if it was asked before.

        Raises:
            BudgetExceededError: if a budget refuses; that is logged, and nothing is charged.
            InputError: if the plan does not protect what the data set asks for, there is no budget,
                the request was one for something else, or the journal cannot be made.
            UnsupportedError: if a budget cannot count what the plan declares.
        """
        if journal is not None:
            require_new(journal)
        own = request or secrets.token_hex(16)
        told = {"dataset": dataset, "by": by, "purpose": purpose, "request": own}
        wanted: dict[str, Any] = {k: checked_text(**{k: value}) for k, value in told.items()}
        wanted["approved"] = checked_text(approved=approved) if approved else ""
        wanted |= {"plan": plan.hash, "period": period or ""}
        for budget in self._store.known_budgets(dataset):
            budget.limit.cost(plan)  # which is remembered, before others wait for it

        def places(page: Page) -> Iterator[Place]:
            for name, (buckets, _) in _charges(page, dataset, plan, period).items():
                window = page.state.budgets[name].window
                yield from ((name, each) for own in buckets for each in joint_buckets(window, own))

        def run(page: Page) -> Release | BudgetExceededError:
            known = next((r for r in page.state.releases.values() if r.request == own), None)
            if known is not None:
                return _same(page, known, wanted)
            waits = any(budget.approval for budget in page.state.budgets_of(dataset))
            if waits and approved:
                raise InputError(
                    "approved is given, but a budget requires approval through the book; "
                    "leave it out."
                )
            charges = _charges(page, dataset, plan, period)
            if refusing := page.state.refusing_budget(charges):
                budget, bucket = refusing
                why = f"budget {budget.name!r} ({budget.limit}, {bucket}) has too little left"
                page.refuse(why, **wanted)
                described, total = budget.limit.described, page.state.total(budget, bucket)
                taken = (
                    f"the plan costs {described(charges[budget.name][1])}; used: {described(total)}"
                )
                said = f"{why}; nothing was charged, and nothing may run"
                return BudgetExceededError(f"{said}: as {budget.limit.kind} counts, {taken}.")
            first = Status.REQUESTED if waits else Status.RESERVED
            facts: dict[str, Any] = {"made": page.now, "charged": charges, "status": first}
            made = Release(id=f"R{page.number}", **facts, **wanted)
            page.keep(plan)
            page.write("reserved", by, record=made.to_dict())
            return page.state.releases[made.id]

        made: Release = self._store.change(
            Transaction(run, requests=(own,), places=places, asks=(dataset, by))
        )
        return Reservation(self._store, made, plan, by)

    def reservation(self, release: str, *, by: str) -> Reservation:
        """Return a release again, to go on with its journal."""
        known = self.release(release)
        return Reservation(self._store, known, self.plan(known.plan), by)

    def close(
        self,
        release: str,
        *,
        by: str,
        journal: Path | str | None = None,
        certificate: str = "",
        abandoned: str = "",
    ) -> Release:
        """Say that a release ran, or was abandoned, and that nothing more of it may run.

        Args:
            release: its id.
            by: who says so.
            journal: of its ledger; what it proves not to have run is given back.
            certificate: digest of its certificate.
            abandoned: why it ended early, if it did; its journal may then be open. Without a
                journal it stays charged; :meth:`withdraw` is for a release of which nothing ran.

        Raises:
            TamperedError: if the journal is not the one that the book anchors, or its end is gone.
            InputError: if the release ended otherwise, or the journal is not closed.
        """
        who, why = checked_text(by=by), abandoned and checked_text(abandoned=abandoned)
        certificate = certificate and checked_text(certificate=certificate)
        status = Status.ABANDONED if abandoned else Status.CLOSED
        before = self.release(release)
        held = None if journal is None else self.check_journal(journal, release)
        if held is not None and not (held.closed or abandoned):
            raise InputError(f"the journal of release {release} is open; resume or abandon it.")

        def run(page: Page) -> Release:
            known = page.state.release(release)
            if known.status is status:
                return known
            if known.status is Status.REQUESTED:
                raise InputError(f"release {release} waits for approval; deny it instead.")
            if known.status.ended:
                raise InputError(f"release {release} is {known.status}, and stays {known.status}.")
            ended = {"lines": known.lines, "head": known.head, "ran": "", "returned": {}}
            if held is not None:
                meanwhile = (known.lines, known.head) != (before.lines, before.head)
                if meanwhile or held.lines < known.lines:
                    raise InputError(f"the journal of {release} has grown meanwhile; try again.")
                if held.lines > known.lines + 1:  # of a write that was cut off before its anchor
                    ahead = {"release": release, "lines": held.lines, "head": held.head}
                    page.write("anchored", who, **ahead)
                ended |= {"lines": held.lines, "head": held.head} | refund_facts(page, known, held)
            facts = ended | {"status": str(status), "why": why, "certificate": certificate}
            page.write("ended", who, release=release, **facts)
            return page.state.releases[release]

        return self.change_release(release, run)

    def withdraw(self, release: str, *, by: str, why: str) -> Release:
        """Say that nothing ran of a reserved release, and give its whole charge back.

        No ledger takes a reservation before the book has the line that it was begun, so the book
        knows that none was. A run that took no reservation is known to whoever made it alone.

        Args:
            release: its id.
            by: who says so.
            why: a remark.

        Raises:
            InputError: if a ledger was begun for it, it waits for approval, or it ended.
        """
        who, said = checked_text(by=by), checked_text(why=why)

        def run(page: Page) -> Release:
            known = page.state.release(release)
            if known.status is Status.REQUESTED:
                raise InputError(f"release {release} waits for approval; deny it instead.")
            if known.status is Status.RUNNING:
                raise InputError(
                    f"a ledger was begun for release {release}; close it with its journal, which "
                    "gives back what did not run."
                )
            if known.status is Status.RESERVED:
                page.end_unused(known, who, status=Status.ABANDONED, why=said)
            elif not (known.status is Status.ABANDONED and known.withdrawn):
                raise InputError(f"release {release} is {known.status}, and stays {known.status}.")
            return page.state.releases[release]

        return self.change_release(release, run)

    def check_journal(self, path: Path | str, release: str | None = None) -> JournalSummary:
        """Return a journal that is the one of a release, to its last line.

        Args:
            path: of the journal.
            release: its id; found by the journal where not given.

        Raises:
            TamperedError: if the chain is broken, lines at its end are missing, it is a copy that
                went another way, or its plan is not the one that was reserved.
            InputError: if it is no journal, or not of that release.
        """
        if release is None:
            own = summarise_journal(path).identifier
            found = next(self.releases("journal = :own", own=own), None)
            if found is None:
                raise InputError("the book does not know this journal; give the right one.")
            release = found.id
        reservation = self.reservation(release, by="")
        content = summarise_journal(path, anchor=reservation)
        if content.plan != reservation.plan:
            raise TamperedError(f"the journal has another plan than release {release}.")
        return content

    def release(self, release: str) -> Release:
        """Return a release as it is now.

        Raises:
            InputError: if there is none of that id.
        """
        found = {known.id: known for known in self.releases("id = :id", id=release)}
        return State(releases=found).release(release)

    def releases(self, where: str = "1 = 1", **wanted: Any) -> Iterator[Release]:
        """Yield the releases, or those of which something is so (SQL, with named values)."""
        with self.reading() as connection:
            yield from store.releases(connection, where, **wanted)

    def plan(self, digest: str) -> Plan:
        """Return a plan by its hash.

        Raises:
            TamperedError: if it is not there, or not the one that was written.
        """
        asked = text("SELECT record FROM plan WHERE hash = :hash")
        with self.reading() as connection:
            return checked_plan(connection.execute(asked, {"hash": digest}).scalar(), digest)


_OPENED = text(
    "INSERT INTO head (one, book, lines, hash, made, catalogue) "
    "VALUES (1, :book, 1, :hash, :made, 0)"
)


def checked_plan(record: str | None, digest: str) -> Plan:
    """Return a plan from its text.

    Raises:
        TamperedError: if it is not the one of that hash.
    """
    try:
        plan = Plan.from_dict(json.loads(record or ""))
    except ValueError:  # an InputError is one
        plan = None
    if plan is None or plan.hash != digest:
        raise TamperedError(f"plan {digest[:12]} of the book is missing, or was edited.")
    return plan


def _charges(page: Page, dataset: str, plan: Plan, period: str | None) -> Charges:
    """Return what a plan takes from each budget of a data set, and from which buckets."""
    about = page.state.dataset(dataset)
    about.require(plan)
    if period and not about.per:
        raise InputError(
            f"period is given; data set {shown(dataset)} protects all data of a unit, so leave "
            "period out."
        )
    budgets = page.state.budgets_of(dataset)
    if not budgets:
        raise InputError(f"data set {shown(dataset)} has no budget; give it one first.")
    span = span_of(period, page.today)
    return {
        b.name: (list(charged_buckets(b.window, span, page.today)), list(b.limit.cost(plan)))
        for b in budgets
    }


def _same(page: Page, known: Release, wanted: Mapping[str, str]) -> Release:
    decided = any(page.state.budgets[name].approval for name in known.charged)
    for name, value in wanted.items():
        if getattr(known, name) != value and not (decided and name == "approved" and not value):
            raise InputError(
                f"request {shown(known.request)} was sent with another {name}; use a new request."
            )
    return known


def set_clock(book: Book, day: date, *, by: str) -> None:
    """Say in the log that the clock is right, however long the book rested.

    Args:
        book: the book.
        day: the day that it is, in UTC.
        by: who says so.

    Raises:
        InputError: if the clock says another day.
    """

    def run(page: Page) -> None:
        if page.today != day:
            raise InputError(f"day is {day}; it must be the clock's day, {page.today}.")
        page.write("clock", checked_text(by=by))

    book.change(Transaction(run, alone=True, sets_time=True))
