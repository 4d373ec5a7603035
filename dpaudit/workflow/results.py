"""The results of a declared release as files: one table of all cells, as CSV, JSON and Parquet.

A row is a cell of a query. Columns are the query, one for each column that some query goes by, the
released ``value`` (or ``text``, of a query that chooses words or dates), and the interval of its
noise. All files have the same columns, so that pandas, Excel and databases read one as the other.
"""

from __future__ import annotations

import csv
import io
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dpaudit.base import files
from dpaudit.base.errors import InputError
from dpaudit.base.optional_import import optional_import
from dpaudit.base.validate import printable
from dpaudit.workflow.publishing import refuse_unwritable

NAME, MADE_UP_NAME = "results", "made-up-results"
"""Of the files; that of made-up rows cannot be taken for the real ones."""
_ENDINGS = (".csv", ".json", ".parquet")
_FACTS = ("value", "text", "low", "high", "note")
_NUMBERS = ("value", "low", "high")
MOST_KEPT = 20_000
"""Rows of all queries that a certificate keeps."""
_ROOM = 64 * 2**20
"""Bytes that must be free before a release is charged."""


def prepared(folder: Path, *, made_up: bool = False) -> None:
    """Refuse a folder in which results cannot be written, or stand already.

    Args:
        folder: where they are to go.
        made_up: whether the rows of this release are made up, so that it costs nothing.

    Raises:
        InputError: in one sentence; before anything is read, charged or released.
    """
    optional_import("tables", "pyarrow", what="results in Parquet")
    names = [f"{name}{end}" for name in (NAME, MADE_UP_NAME) for end in _ENDINGS]
    for path in (folder / each for each in ("ledger.jsonl", *names)):
        if path.exists():
            anew = "" if made_up else " A new release is charged too: its ε adds to this one."
            raise InputError(
                f"{files.shown(path)} exists already; give another folder with -o.{anew}"
            )
    refuse_unwritable(folder, what="output")
    there = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    if shutil.disk_usage(there).free < _ROOM:
        raise InputError(
            f"output {files.shown(folder)} has less than {_ROOM // 2**20} MiB of free space; "
            "make space first, because what is released is charged."
        )


def write_results(
    results: Sequence[Mapping[str, Any]], folder: Path, *, made_up: bool
) -> tuple[Path, ...]:
    """Write the results of a release.

    Args:
        results: of each query, as a certificate records them.
        folder: where they go.
        made_up: whether the rows were.

    Raises:
        InputError: if a file cannot be written.
    """
    rows = list(result_rows(results))
    keys = dict.fromkeys(name for result in results for name in _keys(result["columns"]))
    header = ["query", *keys, *_FACTS]
    name = MADE_UP_NAME if made_up else NAME
    made: tuple[str | bytes, ...] = (
        _csv(header, rows),
        files.pretty_json(list(results)),
        _parquet(header, rows),
    )
    return tuple(
        files.write(folder / f"{name}{end}", content)
        for end, content in zip(_ENDINGS, made, strict=True)
    )


def abridged(results: Sequence[Mapping[str, Any]], most: int = MOST_KEPT) -> list[dict[str, Any]]:
    """As many rows as a certificate keeps, which must be read again; the files have all."""
    kept = []
    for result in results:
        rows = result["rows"][:most]
        most -= len(rows)
        left = len(result["rows"]) - len(rows)
        kept.append({**result, "rows": rows, **({"left": left} if left else {})})
    return kept


def result_rows(results: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """All cells: the query, its keys, the value and the interval of its noise."""
    for result in results:
        names = _keys(result["columns"])
        for row in result["rows"]:
            value = row["value"]
            told = {"text" if isinstance(value, str) else "value": value}
            facts = {name: row[name] for name in ("low", "high", "note") if name in row}
            yield {
                "query": result["query"],
                **dict(zip(names, row["cell"], strict=True)),
                **told,
                **facts,
            }


def _keys(columns: Sequence[str]) -> list[str]:
    """Names of the columns of keys; one that is taken for another purpose says that it is a key."""
    return [f"{each} (key)" if each in ("query", *_FACTS) else each for each in columns]


def _csv(header: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([unformula(each) for each in header])
    writer.writerows([_plain(row.get(name)) for name in header] for row in rows)
    return text.getvalue()


def _plain(value: Any) -> Any:
    """A whole number without a point, which is how a spreadsheet shows it."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return unformula(value)


def unformula(value: Any) -> Any:
    """A text as spreadsheets show it, and neither compute it nor break a row at it."""
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if text.lstrip()[:1] in _FORMULAS else text


_FORMULAS = tuple("=+-@＝＋－＠")


def _parquet(header: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> bytes:
    pa = optional_import("tables", "pyarrow", what="results in Parquet")
    types = {name: pa.float64() if name in _NUMBERS else pa.string() for name in header}
    table = pa.table(
        {name: pa.array([row.get(name) for row in rows], types[name]) for name in header}
    )
    sink = pa.BufferOutputStream()
    optional_import("tables", "pyarrow.parquet", what="results in Parquet").write_table(table, sink)
    written: bytes = sink.getvalue().to_pybytes()
    return written
