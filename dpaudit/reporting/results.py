"""The results of a declared release as tables for people: a row for each cell, with its interval.

Terminals and reports show them. The owner of the data sees beside each number what it is without
noise, with and without the bounds on rows and groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpaudit.base.numbers import down, plain, up
from dpaudit.certificate import Certificate
from dpaudit.reporting.figures.plot import Figure
from dpaudit.reporting.figures.results import result_figure
from dpaudit.reporting.wording import words

MOST_ROWS = 200
"""Rows of a query that a report shows; the files of a release have all."""

WITHIN, WITHOUT = "with bounds", "without bounds on rows and groups"
"""What the owner of the data is told of a cell."""


@dataclass(frozen=True, eq=False)
class ResultTable:
    """What was released for one query.

    Attributes:
        query: its name.
        what: it in words.
        heads: of the columns; those of numbers are the last ones.
        numbers: how many columns of numbers there are.
        rows: texts, one for each head.
        left: how many rows are not shown.
        note: what is known of the error of all rows, in words.
        figure: numbers with error bars, where there are some.
    """

    query: str
    what: str
    heads: tuple[str, ...]
    numbers: int
    rows: tuple[tuple[str, ...], ...]
    left: int = 0
    note: str = ""
    figure: Figure | None = None


def result_tables(certificate: Certificate, most: int = MOST_ROWS) -> tuple[ResultTable, ...]:
    """A table for each query of a release that ran; none of anything else.

    Args:
        certificate: of the release.
        most: rows of a query that are shown.
    """
    results = (certificate.run or {}).get("results", ())
    said = () if certificate.release is None else certificate.release.queries
    exact = _of_owner(certificate).get("queries", {})
    found = []
    for number, result in enumerate(results, start=1):
        name = result["query"]
        what = next((each[len(name) + 2 :] for each in said if each.startswith(f"{name}: ")), "")
        found.append(_table(result, number, what, exact.get(name, ()), most))
    return tuple(found)


def cut_rows(certificate: Certificate) -> tuple[tuple[str, str], ...]:
    """What bounds and schema cut, by name, where the certificate holds what its owner may see."""
    told = _of_owner(certificate)
    left = {}  # by query, of which several releases may be made of the same rows
    for label, count in told.get("rows that the bounds left out", {}).items():
        queries = [each for each in told["queries"] if f"{label}: ".startswith(f"{each}: ")]
        left[max(queries, key=len, default=label)] = count
    counts = told.get("rows", {}) | {
        f"rows that the bounds left out of {name}": count for name, count in left.items()
    }
    means = {
        f"{column}: {what}": number_text(value)
        for column, of in told.get("ranges", {}).items()
        for what, value in of.items()
    }
    return (*((name, f"{count:,}") for name, count in counts.items()), *means.items())


def warning_of_owner(certificate: Certificate) -> str:
    """What follows from having read it; empty where nothing is there."""
    return str(_of_owner(certificate).get("note", ""))


def is_told(certificate: Certificate) -> bool:
    """Whether what the owner may see is of a release, and so shown in tables."""
    return bool(_of_owner(certificate))


def _of_owner(certificate: Certificate) -> Mapping[str, Any]:
    summary = (certificate.owner or {}).get("summary", {})
    of_release = certificate.release is not None and {"rows", "queries"} <= summary.keys()
    return summary if of_release else {}


def _table(result: Mapping[str, Any], number: int, said: str, exact: Any, most: int) -> ResultTable:
    rows = result["rows"]
    intervals = any("low" in row for row in rows)
    notes = [row.get("note", "") for row in rows]
    alike = len(set(notes)) <= 1
    own = {tuple(each["cell"]): each for each in exact}
    heads = [*result["columns"], *([] if alike else ["note"]), "released"]
    heads += ["from", "to"] if intervals else []
    heads += ["private: without noise", "private: without bounds"] if own else []
    texts = []
    for row, note in zip(rows[:most], notes, strict=False):
        cells = [*row["cell"], *([] if alike else [note]), number_text(row["value"])]
        cells += _interval(row) if intervals else ()
        cells += _exact(own.get(tuple(row["cell"]), {})) if own else ()
        texts.append(tuple(cells))
    return ResultTable(
        query=result["query"],
        what=said,
        heads=tuple(heads),
        numbers=1 + 2 * intervals + 2 * bool(own),
        rows=tuple(texts),
        left=max(0, len(rows) - most) + result.get("left", 0),
        note=" ".join(filter(None, [notes[0] if notes and alike else "", _outside(rows)])),
        figure=result_figure(result, number),
    )


def _outside(rows: Sequence[Mapping[str, Any]]) -> str:
    """Why a number lies outside its interval; empty where none does."""
    bounded = (each for each in rows if "low" in each and "high" in each)
    cut = any(not each["low"] <= each["value"] <= each["high"] for each in bounded)
    return words.OUTSIDE if cut else ""


def _interval(row: Mapping[str, Any]) -> tuple[str, str]:
    if "low" not in row or "high" not in row:
        return "", ""
    return number_text(row["low"], down), number_text(row["high"], up)


def _exact(cell: Mapping[str, Any]) -> Iterator[str]:
    for name in (WITHIN, WITHOUT):
        value = cell.get(name)
        yield "–" if value is None else number_text(value)


def number_text(value: Any, rounded: Any = plain) -> str:
    """A released value: whole numbers with all digits, others with six.

    >>> number_text(1234567.0), number_text(0.123456789), number_text("A1")
    ('1234567', '0.123457', 'A1')
    """
    if isinstance(value, bool | str):
        return str(value)
    return str(int(value)) if float(value).is_integer() else str(rounded(float(value)))
