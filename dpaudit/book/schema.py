"""The tables, and the steps from each version of them to the next.

The log is the truth; the other tables hold what it adds up to. SQL is what SQLite and PostgreSQL
have in common.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, inspect, text

from dpaudit.base.errors import InputError

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
    """The version of the tables; 0 where there are none."""
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
        what = "older: dpaudit book init brings it up to date" if found < len(STEPS) else "newer"
        raise InputError(
            f"the book has tables of version {found}, and {len(STEPS)} is known: {what}."
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
