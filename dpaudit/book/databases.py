"""SQLite and PostgreSQL: where a book may be, and how what is committed is on the disk."""

from __future__ import annotations

import sqlite3
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError

from dpaudit.base.errors import InputError
from dpaudit.base.optional_import import require
from dpaudit.base.validate import shown

_SECONDS = 60
"""How long a change waits for its turn in SQLite."""


def read_url(given: str) -> URL:
    """The URL of a database, of which two kinds will do; no error shows a password.

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
            raise InputError("the book's URL has an @ or / too many; write %40, %2F in a password.")
        require("book", "psycopg", what="a book in PostgreSQL")
        return url.set(drivername="postgresql+psycopg")
    if backend != "sqlite" or url.database in (None, "", ":memory:") or url.host or "?" in given:
        raise InputError(f"the book's URL is of another kind, or has a ?; {_WANTED}")
    return url


_WANTED = "it must be a file, or postgresql://USER@HOST/NAME."


def shown_url(url: URL) -> str:
    """What errors call a book: its file, or the server; nothing of what may hold a password."""
    if url.get_backend_name() != "sqlite":
        return f"book {shown('postgresql://' + (url.host or ''))}"
    path = str(url.database)
    return "the book" if "@" in path or "passw" in path.lower() else f"book {shown(path)}"


def exists(url: URL) -> bool:
    """Whether there may be something to open: SQLite would make what is not there."""
    return url.get_backend_name() != "sqlite" or Path(str(url.database)).is_file()


def engine_of(url: URL) -> Engine:
    """Connections that write to the disk before they answer."""
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
                "it was open, and nothing was changed; put the right one there and start again."
            )

    event.listen(engine, "connect", identify)
    event.listen(engine, "begin", begin)
    event.listen(engine, "commit", check)


def _identity(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino


def _set(connection: Any, setting: str) -> None:
    """To begin a write-ahead log waits for nobody by itself; others may be making the file."""
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
