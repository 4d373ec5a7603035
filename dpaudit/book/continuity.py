"""That a book goes on from where this process saw it: its log grows, and its time runs.

A database that is restored in place keeps its name and its file, and grants again what was charged
since. No database tells; a process that remembers the last line that it saw does.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from dpaudit.base.errors import InputError, TamperedError
from dpaudit.book.records import BudgetRecord
from dpaudit.book.windows import longest_pause


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
        """The longer of the two."""
        return self if other is None or self.lines > other.lines else other


def last_seen(connection: Connection) -> Seen:
    """The end of the log as the book states it, of which nothing is checked."""
    head = connection.execute(_HEAD).one()
    return Seen(head.book, head.lines, head.hash)


def read_log(connection: Connection, known: Seen | None, book: str) -> Seen:
    """The end of the log, which must continue what was seen of it.

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
            f"{book} does not answer: its log is shorter than this process saw it, or another one, "
            "as after a restore, and nothing was changed; put the right one there, check it with "
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
            f"the clock says {now[:10]}, {days} days after the last line of the book, and budgets "
            f"begin anew after {most} days at most; if that is the day, somebody says so with "
            f"dpaudit book clock {now[:10]}."
        )
