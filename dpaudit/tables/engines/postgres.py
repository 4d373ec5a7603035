"""PostgreSQL as a source: declared columns of one table, from one snapshot, streamed.

The rows are copied as texts within one REPEATABLE READ transaction that only reads, to a scratch
file that is removed afterwards, and are then read as those of a CSV file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpaudit.base.errors import InputError
from dpaudit.base.fields import Record
from dpaudit.base.optional_import import optional_import
from dpaudit.tables.engines.sources import CsvFile, Relation, identifier


@dataclass(frozen=True)
class PostgresTable(Record):
    """A table or view of a PostgreSQL database.

    Attributes:
        url: of the database; a password is better kept in PGPASSWORD or a password file.
        table: its name, with the schema where it has one.
    """

    url: str
    table: str

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
        return CsvFile(path).relation(connection, columns, scratch)
