"""PostgreSQL as a source: declared columns of one table, from one snapshot, streamed.

The rows are copied as texts within one REPEATABLE READ transaction that only reads, to a scratch
file that is removed afterwards, and are then read as those of a CSV file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from dpaudit.base.errors import InputError
from dpaudit.base.fields import Record
from dpaudit.base.optional_import import optional_import
from dpaudit.tables.engines.sources import CsvFile, Relation, identifier

_TEXTS = (
    "SET LOCAL DateStyle = 'ISO'",
    "SET LOCAL TimeZone = 'UTC'",
    "SET LOCAL extra_float_digits = 1",
    "SET LOCAL bytea_output = 'hex'",
)
"""How values are written as texts, whatever the server or the user has set."""


@dataclass(frozen=True)
class PostgresTable(Record):
    """A table or view of a PostgreSQL database.

    Attributes:
        url: of the database, without a password, which is given by PGPASSWORD or a password file.
        table: its name, with the schema where it has one.
    """

    url: str
    table: str

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            secret = parts.password is not None or "password" in parse_qs(parts.query)
        except ValueError:
            raise InputError("source is no address of a database; check its brackets.") from None
        if secret:
            raise InputError(
                "source has a password; leave it out, and give it by PGPASSWORD or a password file."
            )

    @property
    def name(self) -> str:
        """The name of the table alone."""
        return self.table

    def relation(self, connection: Any, columns: Sequence[str], scratch: Path) -> Relation:
        """The declared columns as texts, of one snapshot."""
        psycopg = optional_import("postgres", "psycopg", what="a table of PostgreSQL")
        path = scratch / "table.csv"
        listed = ", ".join(f"{identifier(each)}::text AS {identifier(each)}" for each in columns)
        table = ".".join(map(identifier, self.table.split(".")))
        copy = (
            f"COPY (SELECT {listed} FROM {table}) TO STDOUT WITH "
            "(FORMAT csv, HEADER true, FORCE_QUOTE *, ENCODING 'UTF8')"
        )
        try:
            with psycopg.connect(self.url, connect_timeout=10) as server:
                server.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
                server.read_only = True
                for setting in _TEXTS:
                    server.execute(setting)
                with server.cursor().copy(copy) as rows, path.open("wb") as file:
                    for block in rows:
                        file.write(block)
        except psycopg.OperationalError:
            raise InputError(
                f"table {self.table!r} cannot be read: its server is away, or refuses the user."
            ) from None
        except psycopg.Error:
            raise InputError(
                f"table {self.table!r} cannot be read: it does not exist, lacks a declared column, "
                "or may not be read by this user."
            ) from None
        except OSError:
            raise InputError(
                f"table {self.table!r} cannot be copied: there is too little room in the folder of "
                "temporary files; set TMPDIR to a larger one."
            ) from None
        return CsvFile(path).relation(connection, columns, scratch)
