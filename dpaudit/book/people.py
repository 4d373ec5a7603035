"""Budgets of very many people, each of whom is charged for what they take part in.

An individual filter (Feldman and Zrnic 2021, *Individual privacy accounting via a Rényi filter*):
whoever has not enough left is left out of a release, and the release goes on with the others. The
sums of one person never exceed the limit, so that the limit is what all releases together cost that
person, however they are chosen from what was released before. Who is left out is private, and so is
how many are: a call that was refused because of them would tell. The book therefore says it to
nobody but who gave the names, and its log does not hold it.

People are known by keyed hashes (HMAC-SHA-256, of which 128 bits are kept), under a key that is not
in the database: whoever has the database cannot look for a name. The command ``book charge`` reads
names from a file, one a line, and writes those who may take part whole or not at all.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
import tempfile
import unicodedata
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import IO, Any

from sqlalchemy import Connection, text

from dpaudit.base import files
from dpaudit.base.errors import InputError
from dpaudit.base.validate import shown
from dpaudit.book import store
from dpaudit.book.book import Book
from dpaudit.book.limits import Cost, Limit
from dpaudit.book.records import PARTS, People, checked_text
from dpaudit.book.store import Page, Transaction
from dpaudit.plan import Plan

KEY_BYTES = 32
_LONGEST = 1000
_BATCH = 20_000
_PARTITIONS = 16


def add_people(book: Book, name: str, dataset: str, limit: Limit, *, key: bytes, by: str) -> None:
    """Give each unit of a data set a budget of its own; the same again is no change.

    Args:
        book: the book.
        name: of the budgets, unique in the book.
        dataset: name of the data set, under add-remove or zero-out.
        limit: of each unit; all of its numbers must be kept.
        key: of :data:`KEY_BYTES`, which names people; it must not be kept in the database.
        by: who does it.

    Raises:
        InputError: if there is another one of that name, or something cannot be.
    """

    def run(page: Page) -> People | None:
        made = People(name, dataset, limit, page.number, _check(key))
        known = page.state.people.get(name)
        if known is not None:
            same = replace(known, table=made.table, charges=0, request="", plan="")
            if same != made:
                raise InputError(f"the book already has another {shown(name)}; choose a new name.")
            return None
        made.require_for(page.state.dataset(dataset))
        page.write("people", checked_text(by=by), record=made.to_dict())
        return made

    with book.store.transaction(writes=True) as connection:
        made = book.store.write(connection, Transaction(run, people=True))
        if made is not None:
            for statement in _table_sql(connection, made):
                connection.execute(text(statement))


def charge_people(
    book: Book,
    name: str,
    plan: Plan,
    people: Iterable[str],
    take: Callable[[list[str]], object],
    *,
    key: bytes,
    by: str,
    purpose: str,
    request: str | None = None,
) -> None:
    """Charge a plan to many people at once; all who have enough left are charged, or nobody is.

    Only those who are charged may take part in what then runs. Who is left out, or how many are,
    must not be told.

    Args:
        book: the book.
        name: of the budgets.
        plan: all that is to be released about them.
        people: a name for each; the same name is always the same person. Blanks around it are left
            out, and anything else tells people apart; see :func:`person`.
        take: is given those who are charged, in their order and in several lists; they may take
            part once this returns, and not if it raises.
        key: as for :func:`add_people`.
        by: who asks.
        purpose: what it is for.
        request: chosen by who asks: while it is the newest, asking again charges nobody twice.

    Raises:
        BudgetExceededError: if the plan takes more than all of a budget; it is the same for all.
        InputError: if there are no such budgets, the key is another one, the plan protects
            something else, what should be a name is none, or the database fails.
        UnsupportedError: if the limit cannot count the plan.
    """
    if isinstance(people, str):
        raise InputError("people is a single text; it must be a sequence of names.")
    told = {"purpose": checked_text(purpose=purpose)}
    told["request"] = checked_text(request=request or secrets.token_hex(16))
    who = checked_text(by=by)
    with book.store.transaction(writes=True) as connection:
        known = _lock_people(connection, name, key)
        again = known.request == told["request"]
        if again and known.plan != plan.hash:
            raise InputError(
                f"request {shown(told['request'])} was sent with another plan; use a new request."
            )
        cost, number = known.cost(plan), known.charges + (not again)
        charge = _charging(connection, known, cost, number, key)
        left = (person(each, f"name {n} of people") for n, each in enumerate(people, start=1))
        while names := list(islice(left, _BATCH)):
            take(charge(names))

        def run(page: Page) -> None:
            page.state.dataset(known.dataset).require(plan)
            if not again:
                page.keep(plan)
                facts = {"people": name, "charge": number, "plan": plan.hash, "cost": cost}
                page.write("charged", who, **facts, **told)

        book.store.write(connection, Transaction(run, people=True))


def person(name: object, place: str) -> str:
    """Return a name that is one person to whoever reads it, in whatever way they split lines.

    Args:
        name: of a person; blanks and tabs around it are left out.
        place: where it is, for the error, which never has the name.

    Raises:
        InputError: if it is no printable text of 1 to 1000 bytes (control, separating and invisible
            characters are not printable), or another one in normal form C.
    """
    own = name.strip(" \t") if isinstance(name, str) else ""
    fine = own.isprintable() and "\ufffd" not in own  # which stands for what could not be read
    if not fine or not 0 < len(own.encode()) <= _LONGEST:
        raise InputError(
            f"{place} is not a valid name; it must be printable text of 1 to {_LONGEST} bytes of "
            "UTF-8, without invisible characters."
        )
    if not unicodedata.is_normalized("NFC", own):
        raise InputError(f"{place} is not in Unicode's normal form C; convert it (NFC).")
    return own


def people_of(book: Book) -> tuple[People, ...]:
    """Return all budgets of each unit."""
    with book.reading() as connection:
        return tuple(store.people(connection).values())


def _charging(
    connection: Connection, known: People, cost: Cost, number: int, key: bytes
) -> Callable[[list[str]], list[str]]:
    """Make what charges some, in the charge of that number, and says who they are."""
    is_server = connection.dialect.name == "postgresql"
    statement = text(_charge_sql(known.table, len(cost), is_server=is_server))
    facts = {"number": number} | {f"c{n}": each for n, each in enumerate(cost)}

    def keyed(name: str) -> str:
        return hmac.digest(key, f"{known.table}:{name}".encode(), "sha256")[:16].hex()

    def charge(names: list[str]) -> list[str]:
        own = [(name, keyed(name)) for name in names]
        ids: Any = sorted({each for _, each in own})
        given = facts | {"ids": ids if is_server else json.dumps(ids)}
        charged = {row.id for row in connection.execute(statement, given)}
        return [name for name, each in own if each in charged]

    return charge


def _charge_sql(table: int, numbers: int, *, is_server: bool) -> str:
    """Adds a cost to the sums of each, once for a number; it tells whose sums stay in the limit."""
    columns = [f"s{n}" for n in range(numbers)]
    asked = "unnest(CAST(:ids AS text[])) AS asked(value)" if is_server else "json_each(:ids) asked"
    added = ", ".join(
        f"{each} = CASE WHEN own.last = :number THEN own.{each} "
        f"ELSE own.{each} + excluded.{each} END"
        for each in columns
    )
    costs = ", ".join(f"CAST(:c{n} AS BIGINT)" for n in range(numbers))
    within = " AND ".join(f"own.{each} + excluded.{each} <= {PARTS}" for each in columns)
    return (
        f"INSERT INTO person_{table} AS own (id, last, {', '.join(columns)}) "
        f"SELECT asked.value, :number, {costs} FROM {asked} WHERE true "
        f"ON CONFLICT (id) DO UPDATE SET {added}, last = :number "
        f"WHERE own.last = :number OR ({within}) RETURNING id"
    )


def _table_sql(connection: Connection, made: People) -> Iterable[str]:
    """Give a row for each person: sums in parts of the limit, and the number of the last charge."""
    table = f"person_{made.table}"
    sums = ", ".join(f"s{n} BIGINT NOT NULL" for n in range(len(made.limit.bounds)))
    one = f"CREATE TABLE {table} (id TEXT PRIMARY KEY, last BIGINT NOT NULL, {sums})"
    if connection.dialect.name != "postgresql":
        yield f"{one} WITHOUT ROWID"
        return
    yield f"{one} PARTITION BY HASH (id)"
    for part in range(_PARTITIONS):  # with room for sums to grow where they are
        yield (
            f"CREATE TABLE {table}_{part} PARTITION OF {table} FOR VALUES WITH "
            f"(MODULUS {_PARTITIONS}, REMAINDER {part}) WITH (fillfactor = 70)"
        )


def _lock_people(connection: Connection, name: str, key: bytes) -> People:
    """Return the budgets, which nobody else charges until the transaction ends."""
    lock = " FOR UPDATE" if connection.dialect.name == "postgresql" else ""
    asked = text(f"SELECT record FROM people WHERE name = :name{lock}")
    record = connection.execute(asked, {"name": name}).scalar()
    if record is None:
        raise InputError(f"people is {shown(name)}, which the book does not have; create it first.")
    known = People.from_dict(json.loads(record))
    if not hmac.compare_digest(known.check, _check(key)):
        raise InputError(
            f"the key is not that of {shown(name)}; use the key that was created with it."
        )
    return known


def _check(key: bytes) -> str:
    if len(key) != KEY_BYTES:
        raise InputError(f"key has {len(key)} bytes; it must have {KEY_BYTES}, drawn at random.")
    return hmac.digest(key, b"dpaudit people", "sha256").hex()


_LONGEST_LINE = 4000
"""Of a line that may be a name with blanks around it."""


def key_of(path: Path, *, make: bool = False) -> bytes:
    """Return the key that names people, of a file of its hexadecimal digits; made if there is none.

    Raises:
        InputError: if there is no key.
    """
    if make and not path.exists():
        with _new(path) as file:
            file.write(secrets.token_hex(KEY_BYTES).encode() + b"\n")
    text = files.read_text(path, what="key")
    with suppress(ValueError):
        if len(key := bytes.fromhex(text)) == KEY_BYTES:
            return key
    raise InputError(
        f"key {files.shown(path)} cannot be read; it must have {2 * KEY_BYTES} hexadecimal digits."
    )


def charge_file(
    book: Book, name: str, plan: Plan, people: Path, output: Path, *, key: Path, **told: Any
) -> Path:
    """Charge a plan to all people of a file, and write who of them may take part.

    The other arguments, and what may be wrong, are those of :func:`dpaudit.book.charge_people`.
    """
    if output.exists():
        raise InputError(f"output {files.shown(output)} exists already; give a new path.")
    with _new(output) as file:

        def take(names: list[str]) -> None:
            file.writelines(f"{each}\n".encode() for each in names)

        charge_people(book, name, plan, _names(people), take, key=key_of(key), **told)
    return output


def _names(path: Path) -> Iterator[str]:
    with files.opened(path, what="people") as file:
        for number, line in enumerate(iter(lambda: file.readline(_LONGEST_LINE), b""), start=1):
            own = line.removeprefix(BOM_UTF8) if number == 1 else line
            own = own.removesuffix(b"\n").removesuffix(b"\r")
            place = f"line {number} of people {files.shown(path)}"
            yield person(own.decode(errors="replace"), place)


@contextmanager
def _new(path: Path) -> Iterator[IO[bytes]]:
    """Yield a file that its owner alone can read, and that is there once all is well."""
    name = ""
    try:
        descriptor, name = _temporary(path.parent)
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(descriptor)
            _link(name or f"/proc/self/fd/{descriptor}", path)
    except FileExistsError:
        raise InputError(f"output {files.shown(path)} exists already; give a new path.") from None
    except OSError as error:
        raise InputError(f"{files.shown(path)} cannot be written: {error.strerror}.") from None
    finally:
        if name:
            Path(name).unlink(missing_ok=True)


def _temporary(folder: Path) -> tuple[int, str]:
    """Open a file without a name, where it can be, so that no killed call leaves people."""
    with suppress(OSError, AttributeError):
        descriptor = os.open(folder, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        if Path(f"/proc/self/fd/{descriptor}").exists():
            return descriptor, ""
        os.close(descriptor)
    return tempfile.mkstemp(dir=folder, prefix=".people-")


def _link(source: str, path: Path) -> None:
    """Give a file its name, in the place of no other."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:  # what /proc points to is linked only where the folder is given
        os.link(source, path.name, dst_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)
