"""The database: one lock, one transaction for what several ask at once, one sync to the disk.

Whoever changes anything holds the row ``head`` until the change is committed: in PostgreSQL by
``SELECT … FOR UPDATE``, in SQLite by ``BEGIN IMMEDIATE``. What threads of one process ask while it
waits for the lock is done in the same transaction of the database, one after the other.
"""

from __future__ import annotations

import json
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from itertools import chain
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, bindparam, text
from sqlalchemy.exc import SQLAlchemyError

from dpaudit.base import files
from dpaudit.base.chain import chained_line
from dpaudit.base.errors import DpAuditError, InputError
from dpaudit.book import databases
from dpaudit.book.databases import Seen, engine_of, read_log, read_url, require_time, shown_url
from dpaudit.book.records import (
    NOTHING,
    BudgetRecord,
    DataSet,
    People,
    Release,
    Status,
    TableRecord,
)
from dpaudit.book.state import Place, State
from dpaudit.plan import Plan

_MOST_AT_ONCE = 256
_Named = TypeVar("_Named", bound=TableRecord)


class Page:
    """The view of one transaction, and the lines that it adds to the log.

    Attributes:
        state: data sets, budgets, and what was asked for of sums and releases.
        now: the time, which never goes back in a book.
    """

    def __init__(self, state: State, head: str, number: int, now: str) -> None:
        self.state = state
        self.now = now
        self.head = head
        self.number = number
        self.lines: list[dict[str, Any]] = []
        self.plans: dict[str, str] = {}
        self.refused: dict[Place, tuple[str, int]] = {}
        """By data set and who asked the last day on which it was refused, and how often then."""
        self.counted: set[Place] = set()

    @property
    def today(self) -> date:
        """The day, in UTC."""
        return datetime.fromisoformat(self.now).date()

    def keep(self, plan: Plan) -> None:
        """Store a plan that a line is about to name."""
        self.plans[plan.hash] = files.canonical_json(plan.to_dict())

    def write(self, event: str, by: str, **facts: Any) -> None:
        """Add a line, and change what it says."""
        record = {"event": event, "at": self.now, "by": by, **facts}
        line, self.head = chained_line(record, self.number, self.head)
        self.lines.append({"number": self.number, "line": line.decode().rstrip("\n")})
        self.number += 1
        self.state.apply(record)

    def end_unused(self, release: Release, by: str, *, status: Status, why: str) -> None:
        """End a release for which no ledger was begun, and give its whole charge back."""
        ended = {"status": str(status), "why": why, "certificate": "", "ran": NOTHING}
        left = {"lines": release.lines, "head": release.head, "returned": release.whole_charge()}
        self.write("ended", by, release=release.id, **ended, **left)

    def refuse(self, why: str, **wanted: str) -> None:
        """Log a refusal; of many on one day the 1st, 2nd, 4th …, so that no flood fills the log."""
        who = wanted["dataset"], wanted["by"]
        day, times = self.refused.get(who, ("", 0))
        times = times + 1 if day == self.now[:10] else 1
        self.refused[who] = self.now[:10], times
        self.counted.add(who)
        if not times & (times - 1):
            self.write("refused", why=why, times=times, **wanted)


@dataclass
class Transaction:
    """A change that somebody asks for.

    Attributes:
        run: checks all and then writes; an error that it raises changes nothing, one that it
            returns is raised when what it wrote is committed.
        requests: of releases that it may concern.
        releases: ids of releases that it concerns.
        places: the sums that it needs, once data sets, budgets and releases are known.
        asks: the data set and who asks, where it may be refused.
        people: whether it concerns budgets of each unit.
        alone: whether it looks at what is committed, so that nothing else may share its turn.
        sets_time: whether it is somebody's word for the time, however long the book rested.
    """

    run: Callable[[Page], Any]
    requests: Sequence[str] = ()
    releases: Sequence[str] = ()
    places: Callable[[Page], Iterable[Place]] = lambda _: ()
    asks: Place | None = None
    people: bool = False
    alone: bool = False
    sets_time: bool = False
    answer: Any = field(default=None, init=False)
    done: bool = field(default=False, init=False)

    def needed(self, page: Page) -> tuple[Place, ...]:
        """Return the places; of one that is wrong none, as it says so when it is run."""
        try:
            return tuple(self.places(page))
        except DpAuditError:
            return ()


class Store:
    """A database with a book in it.

    Args:
        url: of the database, or the path of a SQLite file.
        clock: in place of that of the server (or, with SQLite, of this machine), for tests.
    """

    def __init__(self, url: str, clock: Callable[[], datetime] | None = None) -> None:
        self.url = read_url(url)
        self.is_file = self.url.get_backend_name() == "sqlite"
        self._clock = clock
        self.seen: Seen | None = None
        """The end of the log, as this process saw it last."""
        self._renew()

    def _renew(self) -> None:
        """Return a fresh start, also in a forked process: connections belong to one."""
        self._process = os.getpid()
        self._inherited = getattr(self, "_engine", None)  # closed by the process that opened it
        self._engine = engine_of(self.url)
        weakref.finalize(self, _dispose, self._engine, self._process)
        self._queue: list[Transaction] = []
        self._queueing, self._turn = threading.Lock(), threading.Lock()
        self._catalogue: tuple[int, dict[str, DataSet], dict[str, BudgetRecord]] | None = None
        self._plans: set[str] = set()

    def now(self, server: datetime | None = None) -> datetime:
        """Return the time in UTC: that of the server, where it is told."""
        known = server or datetime.now(UTC)
        return (known if self._clock is None else self._clock()).astimezone(UTC)

    def known_budgets(self, dataset: str) -> list[BudgetRecord]:
        """Return the budgets of a data set, as this process saw them last."""
        return [] if self._catalogue is None else State(*self._catalogue[1:]).budgets_of(dataset)

    def look(self, connection: Connection, known: Seen | None) -> None:
        """Remember the end of the log; a TamperedError if it does not continue what was known."""
        self.seen = read_log(connection, known, shown_url(self.url)).later(self.seen)

    def close(self) -> None:
        """Give the connections back."""
        self._engine.dispose()

    @contextmanager
    def transaction(self, *, writes: bool) -> Iterator[Connection]:
        """Yield one transaction: of a reader it sees one state of the book, however long it takes.

        Raises:
            InputError: if the database does not do what it is asked.
        """
        if os.getpid() != self._process:
            self._renew()
        try:
            with self._engine.connect() as connection:
                if not writes and not self.is_file:
                    connection.execution_options(isolation_level="REPEATABLE READ")
                connection.execution_options(immediate=writes)
                with connection.begin():
                    yield connection
        except SQLAlchemyError as error:
            reason = str(getattr(error, "orig", None) or error).partition("\n")[0]
            given = chain.from_iterable(self.url.normalized_query.values())
            for secret in filter(None, (self.url.password, *given)):
                reason = reason.replace(str(secret), "***")
            again = "; ask again with the same request" if writes else ""
            if self.is_file and ("unable to open" in reason or "readonly" in reason):
                again = "; it must be in a folder that exists and can be written"
            raise InputError(
                f"{shown_url(self.url)} does not answer: {reason:.200}{again}."
            ) from None

    def change(self, transaction: Transaction) -> Any:
        """Do what is asked, together with what other threads ask meanwhile.

        Raises:
            DpAuditError: what the transaction raised or returned.
            InputError: if the database fails; whether it is done is then not known.
        """
        if os.getpid() != self._process:
            self._renew()
        with self._queueing:
            self._queue.append(transaction)
        with self._turn:
            while not transaction.done:
                self._run_waiting(transaction)
        if isinstance(transaction.answer, DpAuditError):
            raise transaction.answer
        return transaction.answer

    def write(self, connection: Connection, transaction: Transaction) -> Any:
        """Do what is asked at the end of a transaction of the caller's, which it must not outlive.

        Raises:
            DpAuditError: what the transaction raised; the caller's transaction is then to end too.
        """
        page = self._page(connection, self._lock_head(connection), [transaction])
        answer = transaction.run(page)
        self._save(connection, page)
        return answer

    def _run_waiting(self, first: Transaction) -> None:
        """Do what waits; where nothing could be begun, the others try for themselves."""
        taken: list[Transaction] = []
        try:
            with self.transaction(writes=True) as connection:
                head = self._lock_head(connection)
                with self._queueing:
                    taken = self._take_waiting()
                page = self._page(connection, head, taken)
                for transaction in taken:
                    try:
                        transaction.answer = transaction.run(page)
                    except DpAuditError as error:
                        transaction.answer = error
                self._save(connection, page)
            self.seen = Seen(head.book, page.number, page.head).later(self.seen)
            self._plans |= page.plans.keys()
        except BaseException as error:
            self._catalogue = None
            if not taken:
                with self._queueing:
                    self._queue.remove(first)
                taken = [first]
            failed = error
            if not isinstance(error, DpAuditError):  # what it says may be of another one
                kind = type(error).__name__
                failed = InputError(f"the book cannot write this ({kind}); nothing was changed.")
                if len(taken) > 1 and isinstance(error, Exception):  # each then fails for itself
                    taken = self._put_back(taken)
            for transaction in taken:
                transaction.answer = failed
            if not isinstance(error, Exception):
                raise
        finally:
            for transaction in taken:
                transaction.done = True

    def _take_waiting(self) -> list[Transaction]:
        """Take from the queue what one transaction does: one to be alone, or those before it."""
        apart = [
            n for n, transaction in enumerate(self._queue[:_MOST_AT_ONCE]) if transaction.alone
        ]
        many = max(1, apart[0]) if apart else _MOST_AT_ONCE
        taken, self._queue = self._queue[:many], self._queue[many:]
        return taken

    def _put_back(self, taken: list[Transaction]) -> list[Transaction]:
        """Put transactions back, to be done one by one; those that are left."""
        for transaction in taken:
            transaction.alone = True
        with self._queueing:
            self._queue = taken + self._queue
        return []

    def _lock_head(self, connection: Connection) -> Any:
        """Return the head of the log, which nobody else changes until the transaction ends."""
        lock = "" if self.is_file else " FOR UPDATE"
        clock = "NULL" if self.is_file else "clock_timestamp()"
        found = connection.execute(text(f"SELECT head.*, {clock} AS clock FROM head{lock}")).one()
        self.look(connection, self.seen)
        return found

    def _page(self, connection: Connection, head: Any, transactions: Sequence[Transaction]) -> Page:
        if self._catalogue is None or self._catalogue[0] != head.catalogue:
            self._catalogue = head.catalogue, *catalogue(connection)
        _, datasets, budgets = self._catalogue
        made = max(self.now(head.clock).isoformat(timespec="microseconds"), head.made)
        if not any(transaction.sets_time for transaction in transactions):
            require_time(head.made, made, budgets.values())
        page = Page(State(dict(datasets), dict(budgets)), head.hash, head.lines, made)
        requests = [each for transaction in transactions for each in transaction.requests]
        ids = [each for transaction in transactions for each in transaction.releases]
        for column, wanted in (("request", requests), ("id", ids)):
            if wanted:
                for found in releases(connection, f"{column} IN :wanted", wanted=wanted):
                    page.state.releases[found.id] = found
        page.state.spent = spent(
            connection, [p for transaction in transactions for p in transaction.needed(page)]
        )
        if any(transaction.people for transaction in transactions):
            page.state.people = people(connection)
        for transaction in transactions:
            if transaction.asks is not None and transaction.asks not in page.refused:
                named = dict(zip(("dataset", "who"), transaction.asks, strict=True))
                for found in connection.execute(_REFUSED, named):
                    page.refused[transaction.asks] = found.day, found.times
        return page

    def _save(self, connection: Connection, page: Page) -> None:
        for dataset, who in page.counted:
            day, times = page.refused[dataset, who]
            counted = {"dataset": dataset, "who": who, "day": day, "times": times}
            connection.execute(_COUNT, counted)
        if not page.lines:
            return
        connection.execute(LOG, page.lines)
        new = [{"hash": h, "record": r} for h, r in page.plans.items() if h not in self._plans]
        if new:
            connection.execute(_PLAN, new)
        for table, upsert in databases.UPSERT.items():
            keys = sorted(key for name, key in page.state.changed if name == table)
            if keys:
                connection.execute(upsert, [row(page.state, table, key) for key in keys])
        head = {"lines": page.number, "hash": page.head, "made": page.now}
        connection.execute(_HEAD, head)
        if any(table in ("dataset", "budget") for table, _ in page.state.changed):
            connection.execute(text("UPDATE head SET catalogue = lines"))


LOG = text("INSERT INTO log (number, line) VALUES (:number, :line)")
"""Adds lines to the log."""
_PLAN = text("INSERT INTO plan (hash, record) VALUES (:hash, :record) ON CONFLICT DO NOTHING")
_REFUSED = text("SELECT day, times FROM refused WHERE dataset = :dataset AND who = :who")
_COUNT = text(
    "INSERT INTO refused (dataset, who, day, times) VALUES (:dataset, :who, :day, :times) "
    "ON CONFLICT (dataset, who) DO UPDATE SET day = excluded.day, times = excluded.times"
)
_HEAD = text("UPDATE head SET lines = :lines, hash = :hash, made = :made")


def row(state: State, table: str, key: Any) -> dict[str, Any]:
    """Return what a table has for something that the state holds."""
    if table == "spent":
        total = files.canonical_json(state.spent[key])
        return {"budget": key[0], "bucket": key[1], "record": total}
    kept: dict[str, Any] = {
        "dataset": state.datasets,
        "budget": state.budgets,
        "release": state.releases,
        "people": state.people,
        "token": state.tokens,
    }
    record: dict[str, Any] = kept[table][key].to_dict()
    named = {column: record[column] for column in databases.KEYS[table]}
    return named | {"record": files.canonical_json(record)}


def catalogue(connection: Connection) -> tuple[dict[str, DataSet], dict[str, BudgetRecord]]:
    """Return all data sets and all budgets, by name."""
    return _by_name(connection, DataSet), _by_name(connection, BudgetRecord)


def people(connection: Connection) -> dict[str, People]:
    """Return all budgets of each unit, by name."""
    return _by_name(connection, People)


def _by_name(connection: Connection, kind: type[_Named]) -> dict[str, _Named]:
    rows = connection.execute(text(f"SELECT record FROM {kind.kind}"))
    found = [kind.from_dict(json.loads(each.record)) for each in rows]
    return {each.key: each for each in found}


def releases(connection: Connection, where: str, **wanted: Any) -> Iterator[Release]:
    """Yield the releases of which something is so, in their order; one after the other."""
    asked = text(f"SELECT record FROM release WHERE {where}")
    for name, value in wanted.items():
        if isinstance(value, list):
            asked = asked.bindparams(bindparam(name, expanding=True))
    for found in connection.execute(asked, wanted):
        yield Release.from_dict(json.loads(found.record))


def spent(connection: Connection, places: Sequence[Place]) -> dict[Place, tuple[int, ...]]:
    """Return the sums at these places, and perhaps at others of the same budgets."""
    budgets, buckets = {budget for budget, _ in places}, {bucket for _, bucket in places}
    if not budgets:
        return {}
    found = connection.execute(_SPENT, {"budgets": sorted(budgets), "buckets": sorted(buckets)})
    return {(each.budget, each.bucket): tuple(json.loads(each.record)) for each in found}


_SPENT = text(
    "SELECT budget, bucket, record FROM spent WHERE budget IN :budgets AND bucket IN :buckets"
).bindparams(bindparam("budgets", expanding=True), bindparam("buckets", expanding=True))


def _dispose(engine: Engine, process: int) -> None:
    if os.getpid() == process:
        engine.dispose()
