"""SQLite and PostgreSQL: where a book may be, its tables, and that it goes on as it was seen.

What is committed is on the disk, and no error shows a password. The log is the truth; the other
tables hold what it adds up to, in the SQL that both databases have. A database that is restored in
place keeps its name and its file, and would grant again what was charged since: a process that
remembers the last line that it saw refuses it.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, make_url, text
from sqlalchemy.exc import ArgumentError

from dpaudit.base.errors import InputError, TamperedError
from dpaudit.base.optional_import import require
from dpaudit.base.validate import shown
from dpaudit.book.limits import longest_pause
from dpaudit.book.records import BudgetRecord

_SECONDS = 60
"""How long a change waits for its turn in SQLite."""


def read_url(given: str) -> URL:
    """Return the URL of a database, of which two kinds will do; no error shows a password.

    Raises:
        InputError: if it is of another kind, or the driver is missing.
    """
    try:
        url = make_url(given if "://" in given else f"sqlite:///{given}")
        backend = url.get_backend_name()
    except (ArgumentError, ValueError):
        raise InputError(f"the book's URL cannot be read; {_WANTED}") from None
    if backend in ("postgresql", "postgres"):
        if "@" in f"{url.host}{url.database}":
            raise InputError("the book's URL has an extra @ or /; write %40, %2F in a password.")
        require("book", "psycopg", what="a book in PostgreSQL")
        return url.set(drivername="postgresql+psycopg")
    if backend != "sqlite" or url.database in (None, "", ":memory:") or url.host or "?" in given:
        raise InputError(f"the book's URL is of an unknown kind, or has a ?; {_WANTED}")
    return url


_WANTED = "it must be a file, or postgresql://USER@HOST/NAME."


def shown_url(url: URL) -> str:
    """Name a book in errors: its file, or the server; nothing that may hold a password."""
    if url.get_backend_name() != "sqlite":
        return f"book {shown('postgresql://' + (url.host or ''))}"
    path = str(url.database)
    plain = unquote(path).lower()
    return "the book" if "@" in plain or "passw" in plain else f"book {shown(path)}"


def exists(url: URL) -> bool:
    """Tell whether there may be something to open: SQLite would make what is not there."""
    return url.get_backend_name() != "sqlite" or Path(str(url.database)).is_file()


def engine_of(url: URL) -> Engine:
    """Make connections that write to the disk before they answer."""
    if url.get_backend_name() == "sqlite":
        engine = create_engine(url, connect_args={"timeout": _SECONDS})
        event.listen(engine, "connect", _durable_file)
        event.listen(engine, "begin", _begin)
        _watch(engine)
    else:
        engine = create_engine(url, isolation_level="READ COMMITTED", pool_pre_ping=True)
        event.listen(engine, "connect", _durable_server)
    return engine


def _durable_file(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # so that "begin" below is all that begins
    for setting in ("journal_mode=WAL", "synchronous=FULL", "fullfsync=1"):
        _set(connection, setting)


def _watch(engine: Engine) -> None:
    """Commit nothing into files that are no longer those at the path, as after a restore.

    Beside the database lie its log and an index of it, which a connection keeps while it is open.
    """
    path, known = Path(str(engine.url.database)), set[tuple[int, int]]()
    beside = {name: Path(f"{path}{name}") for name in ("-wal", "-shm")}

    def identify(*_: Any) -> None:
        with suppress(OSError):
            known.add(_identity(path))

    def begin(connection: Connection) -> None:
        for name, each in beside.items():
            with suppress(OSError):
                connection.info.setdefault(name, _identity(each))

    def is_kept(connection: Connection) -> bool:
        with suppress(OSError):
            held = {name: each for name, each in beside.items() if name in connection.info}
            return all(connection.info[name] == _identity(each) for name, each in held.items())
        return False

    def check(connection: Connection) -> None:
        identify()
        if len(known) != 1 or not path.exists() or not is_kept(connection):
            raise InputError(
                f"{shown_url(engine.url)} does not answer: its file was removed or replaced while "
                "it was open, and nothing was changed; put the right database there and "
                "start again."
            )

    event.listen(engine, "connect", identify)
    event.listen(engine, "begin", begin)
    event.listen(engine, "commit", check)


def _identity(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino


def _set(connection: Any, setting: str) -> None:
    """Set a pragma; SQLite itself waits for nobody who is making the file at that moment."""
    end = time.monotonic() + _SECONDS
    while True:
        try:
            connection.execute(f"PRAGMA {setting}")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise
            time.sleep(0.01)
        else:
            return


def _begin(connection: Connection) -> None:
    immediate = connection.get_execution_options().get("immediate")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")


def _durable_server(connection: Any, _: Any) -> None:
    cursor = connection.cursor()
    cursor.execute("SET synchronous_commit TO on")
    cursor.execute("SHOW fsync")
    synced = cursor.fetchone()[0]
    connection.commit()
    if synced != "on":
        raise InputError("the database runs with fsync off, which can lose a charge; turn it on.")


STEPS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE head (one INTEGER PRIMARY KEY, book TEXT NOT NULL, lines BIGINT NOT NULL, "
        "hash TEXT NOT NULL, made TEXT NOT NULL, catalogue BIGINT NOT NULL)",
        "CREATE TABLE log (number BIGINT PRIMARY KEY, line TEXT NOT NULL)",
        "CREATE TABLE dataset (name TEXT PRIMARY KEY, record TEXT NOT NULL)",
        "CREATE TABLE budget (name TEXT PRIMARY KEY, dataset TEXT NOT NULL, record TEXT NOT NULL)",
        "CREATE TABLE spent (budget TEXT NOT NULL, bucket TEXT NOT NULL, record TEXT NOT NULL, "
        "PRIMARY KEY (budget, bucket))",
        "CREATE TABLE plan (hash TEXT PRIMARY KEY, record TEXT NOT NULL)",
        "CREATE TABLE release (id TEXT PRIMARY KEY, request TEXT NOT NULL UNIQUE, "
        "dataset TEXT NOT NULL, status TEXT NOT NULL, journal TEXT NOT NULL, record TEXT NOT NULL)",
        "CREATE INDEX release_dataset ON release (dataset, status)",
        "CREATE INDEX release_journal ON release (journal)",
    ),
    (
        "CREATE TABLE refused (dataset TEXT NOT NULL, who TEXT NOT NULL, day TEXT NOT NULL, "
        "times BIGINT NOT NULL, PRIMARY KEY (dataset, who))",
        "CREATE TABLE people (name TEXT PRIMARY KEY, record TEXT NOT NULL)",
    ),
    (
        "CREATE TABLE token (name TEXT PRIMARY KEY, hash TEXT NOT NULL, record TEXT NOT NULL)",
        "CREATE INDEX token_hash ON token (hash)",
        "CREATE INDEX release_number ON release ((CAST(substr(id, 2) AS BIGINT)))",
    ),
)
"""What makes version 1, 2, … of the tables; a step is never changed, only followed by others."""


def version(connection: Connection) -> int:
    """Return the version of the tables; 0 where there are none."""
    if not inspect(connection).has_table("version"):
        return 0
    return int(connection.execute(text("SELECT MAX(number) FROM version")).scalar() or 0)


def require_current(connection: Connection) -> None:
    """Refuse tables of another version.

    Raises:
        InputError: saying what to do.
    """
    found = version(connection)
    if not found:
        raise InputError("there is no book in this database; make one with dpaudit book init.")
    if found != len(STEPS):
        what = "older; dpaudit book init updates them" if found < len(STEPS) else "newer"
        raise InputError(
            f"the book has tables of version {found}, not {len(STEPS)}: they are {what}."
        )


def migrate(connection: Connection, made: str) -> Iterator[int]:
    """Bring the tables up to date, within the caller's transaction; the versions that were made."""
    if connection.dialect.name == "postgresql":  # where two at once would both make the tables
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('dpaudit.book'))"))
    connection.execute(
        text("CREATE TABLE IF NOT EXISTS version (number INTEGER PRIMARY KEY, made TEXT NOT NULL)")
    )
    for number in range(version(connection) + 1, len(STEPS) + 1):
        for step in STEPS[number - 1]:
            connection.execute(text(step))
        connection.execute(
            text("INSERT INTO version (number, made) VALUES (:number, :made)"),
            {"number": number, "made": made},
        )
        yield number


KEYS: dict[str, tuple[str, ...]] = {
    "dataset": ("name",),
    "budget": ("name", "dataset"),
    "spent": ("budget", "bucket"),
    "release": ("id", "request", "dataset", "status", "journal"),
    "people": ("name",),
    "token": ("name", "hash"),
}
"""The columns of each table that are looked up, beside its record."""
_UNIQUE = {"spent": "budget, bucket", "release": "id"}


def _upsert(table: str) -> Any:
    columns = (*KEYS[table], "record")
    changed = {"record", "status", "journal", "hash"} & set(columns)
    return text(
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES (:{', :'.join(columns)}) ON CONFLICT "
        f"({_UNIQUE.get(table, 'name')}) DO UPDATE SET "
        + ", ".join(f"{each} = excluded.{each}" for each in sorted(changed))
    )


UPSERT = {table: _upsert(table) for table in KEYS}
"""Puts a row in its place, by table."""


@dataclass(frozen=True)
class Seen:
    """The log as a process saw it last.

    Attributes:
        book: identifier of the book.
        lines: how many lines it had.
        head: hash of the last of them.
    """

    book: str
    lines: int
    head: str

    def later(self, other: Seen | None) -> Seen:
        """Return the longer of the two."""
        return self if other is None or self.lines > other.lines else other


def last_seen(connection: Connection) -> Seen:
    """Return the end of the log as the book states it, of which nothing is checked."""
    head = connection.execute(_HEAD).one()
    return Seen(head.book, head.lines, head.hash)


def read_log(connection: Connection, known: Seen | None, book: str) -> Seen:
    """Return the end of the log, which must continue what was seen of it.

    Args:
        connection: in the transaction that charges, or admits.
        known: what this process saw before the transaction began, if anything.
        book: what errors call it.

    Raises:
        TamperedError: if the log is shorter than what was seen, or another one.
    """
    now = last_seen(connection)
    due = {each.lines - 1: each.head for each in (now, known) if each is not None}
    found = connection.execute(_LINES, {"first": min(due), "last": max(due)})
    hashes = {each.number: _hash(each.line) for each in found}
    same = known is None or (known.book == now.book and known.lines <= now.lines)
    if not same or hashes != due:
        raise TamperedError(
            f"{book} does not answer: its log is shorter than before, or is another log, as after "
            "a restore. Nothing was changed; put the right database there, check it with "
            "dpaudit book verify --anchor, and start again."
        )
    return now


_HEAD = text("SELECT book, lines, hash FROM head")
_LINES = text("SELECT number, line FROM log WHERE number IN (:first, :last)")


def _hash(line: str) -> Any:
    try:
        return json.loads(line)["hash"]
    except (ValueError, LookupError, TypeError):
        return None


def require_time(last: str, now: str, budgets: Iterable[BudgetRecord]) -> None:
    """Refuse a time that lies so far after the last line that it may be a clock's mistake.

    Args:
        last: when the last line of the log was written.
        now: by the clock.
        budgets: all of the book.

    Raises:
        InputError: if more than one period of a budget, and more than a month, has passed.
    """
    pauses = [longest_pause(each.window) for each in budgets if not each.retired]
    most = min((pause for pause in pauses if pause), default=None)
    days = (datetime.fromisoformat(now) - datetime.fromisoformat(last)).days
    if most is not None and days > most:
        raise InputError(
            f"the clock says {now[:10]}, {days} days after the last line of the book, and some "
            f"budget begins anew within {most} days; if the clock is right, confirm the day with "
            f"dpaudit book clock {now[:10]}."
        )
