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
from dpaudit.tables.engines.sources import CsvFile, Relation, identifier, no_table

_SETTINGS = (
    "SET LOCAL DateStyle = 'ISO'",
    "SET LOCAL TimeZone = 'UTC'",
    "SET LOCAL extra_float_digits = 1",
    "SET LOCAL bytea_output = 'hex'",
    "SET LOCAL row_security = off",
)
"""How values are written as texts, whatever the server or the user has set; and all rows or none,
as a policy can hide a row for what others hold."""
_STORED = """
    WITH RECURSIVE parts (oid) AS (
        SELECT pg_catalog.to_regclass(%s)::pg_catalog.oid
        UNION SELECT inhrelid FROM pg_catalog.pg_inherits JOIN parts ON inhparent = parts.oid
    )
    SELECT pg_catalog.bool_and(relkind IN ('r', 'p'))
    FROM parts JOIN pg_catalog.pg_class USING (oid)
"""
"""Whether a table and all its parts are ordinary or partitioned ones: no view, materialised or not,
and nothing foreign, which can be a view of its server."""
_CAST = """
    WITH RECURSIVE types (oid) AS (
        SELECT atttypid FROM pg_catalog.pg_attribute
        WHERE attrelid = pg_catalog.to_regclass(%s) AND attname = ANY(%s)
        UNION SELECT typbasetype FROM pg_catalog.pg_type JOIN types USING (oid)
        WHERE typbasetype <> 0
    )
    SELECT EXISTS (
        SELECT FROM pg_catalog.pg_cast JOIN types ON castsource = types.oid
        WHERE casttarget = 'pg_catalog.text'::pg_catalog.regtype AND castfunc >= 16384
    )
"""
"""Whether a column becomes a text by a function that somebody wrote (identifiers from 16384 on),
which can read other rows, as a view can."""

_MADE = """
    SELECT EXISTS (
        SELECT FROM pg_catalog.pg_attribute
        WHERE attrelid = pg_catalog.to_regclass(%s) AND attname = ANY(%s)
        AND (attnum < 1 OR attgenerated <> '')
    )
"""
"""Whether a column is the server's own, such as a row's place, or is made by an expression, whose
functions can read other rows."""


@dataclass(frozen=True)
class PostgresTable(Record):
    """A table of a PostgreSQL database, partitioned or not; a view is refused.

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
            raise InputError(
                "source is not an address of a database; check its brackets."
            ) from None
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
        path = scratch / f"{len(list(scratch.iterdir()))}.csv"  # another source may have one
        listed = ", ".join(
            f"{identifier(each)}::pg_catalog.text AS {identifier(each)}" for each in columns
        )
        table = ".".join(map(identifier, self.table.split(".")))
        rows_of = f"SELECT {listed} FROM {table}"
        form = "FORMAT csv, HEADER true, FORCE_QUOTE *, ENCODING 'UTF8'"
        try:
            with psycopg.connect(self.url, connect_timeout=10) as server:
                server.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
                server.read_only = True
                for setting in _SETTINGS:
                    server.execute(setting)
                server.execute(f"{rows_of} LIMIT 0")  # holds it: its name stands for it from here
                if server.execute(_STORED, [table]).fetchone() != (True,):
                    raise no_table(self.table)
                if server.execute(_MADE, [table, list(columns)]).fetchone() != (False,):
                    raise InputError(
                        f"table {self.table!r} has a declared column that the server "
                        "generates; declare only stored columns."
                    )
                if server.execute(_CAST, [table, list(columns)]).fetchone() != (False,):
                    raise InputError(
                        f"table {self.table!r} has a column that a function of the database "
                        "converts to text; give the column another type, because a cast "
                        "may read other rows."
                    )
                with (
                    server.cursor().copy(f"COPY ({rows_of}) TO STDOUT WITH ({form})") as rows,
                    path.open("wb") as file,
                ):
                    for block in rows:
                        file.write(block)
        except psycopg.OperationalError:
            raise InputError(
                f"table {self.table!r} cannot be read: its server is away, or refuses the user."
            ) from None
        except psycopg.DataError:
            raise InputError(
                f"table {self.table!r} has a text that cannot be converted to UTF-8; correct the "
                "encoding of its texts, or of the database (SQL_ASCII converts nothing)."
            ) from None
        except psycopg.Error:
            raise InputError(
                f"table {self.table!r} cannot be read: it does not exist, lacks a declared "
                "column, or a policy of the database hides it or some of its rows from this "
                "user."
            ) from None
        except OSError:
            raise InputError(
                f"table {self.table!r} cannot be copied: there is too little room in the folder of "
                "temporary files; set TMPDIR to a larger one."
            ) from None
        return CsvFile(path).relation(connection, columns, scratch)
