"""Releases a page at a time, the newest first."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from sqlalchemy import text

from dpaudit.base.errors import InputError
from dpaudit.book import Book, Release

_NUMBER = "CAST(substr(id, 2) AS BIGINT)"
_SOUGHT = ("id", "request", "dataset", "by", "approved", "purpose", "plan", "certificate", "made")
_LARGEST = 2**62


@dataclass(frozen=True)
class Found:
    """One page of releases.

    Attributes:
        releases: the newest first.
        before: where the next page begins; 0 where there is none.
    """

    releases: tuple[Release, ...]
    before: int


def find(
    book: Book,
    *,
    words: str = "",
    dataset: str = "",
    status: str = "",
    before: int = 0,
    most: int = 50,
) -> Found:
    """Releases of which some field holds all the words, whatever their case.

    Args:
        book: the book.
        words: sought in ids, names, purposes, days and hashes.
        dataset: of one data set alone.
        status: of one status alone.
        before: the number of a release, older than which they all are; 0 for the newest.
        most: so many at most, 1 to 1000.

    Raises:
        InputError: if a number is out of bounds.
    """
    if not (1 <= most <= 1000 and 0 <= before < _LARGEST):
        raise InputError(f"limit is {most}; it must be from 1 to 1000, and before not negative.")
    if not (dataset + status).isprintable():
        return Found((), 0)
    sought = words.casefold().split()[:20]
    found: list[Release] = []
    with book.reading() as connection:
        asked, given = _asked(sought, dataset, status, before or _LARGEST)
        rows = connection.execution_options(stream_results=True, max_row_buffer=200)
        with closing(rows.execute(text(asked), given)) as cursor:
            for row in cursor:
                record = json.loads(row.record)
                if all(any(word in field for field in _fields(record)) for word in sought):
                    found.append(Release.from_dict(record))
                    if len(found) > most:
                        break
    more = len(found) > most
    return Found(tuple(found[:most]), int(found[most - 1].id[1:]) if more else 0)


def _fields(record: dict[str, Any]) -> Iterator[str]:
    return (str(record[name]).casefold() for name in _SOUGHT)


def _asked(sought: list[str], dataset: str, status: str, before: int) -> tuple[str, dict[str, Any]]:
    """SQL for what may be meant: the database sees texts as JSON has them, in plain letters."""
    given: dict[str, Any] = {"before": before}
    where = [f"{_NUMBER} < :before"]
    for name, value in (("dataset", dataset), ("status", status)):
        if value:
            where.append(f"{name} = :{name}")
            given[name] = value
    for number, word in enumerate(sought):
        if word.isascii() and word.isprintable() and not set(word) & set('"\\%_'):
            where.append(f"LOWER(record) LIKE :word{number}")
            given[f"word{number}"] = f"%{word}%"
    asked = f"SELECT record FROM release WHERE {' AND '.join(where)} ORDER BY {_NUMBER} DESC"
    return asked, given
