"""Releasing a table: the declared queries of a file, run once, with results as data.

``dpaudit release`` calls it. A release goes the way of every run; what is its own are the files of
results and a folder for the owner of the data.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpaudit.base import files
from dpaudit.base.errors import InputError
from dpaudit.base.optional_import import optional_import
from dpaudit.certificate import Certificate
from dpaudit.ledger import Durability
from dpaudit.project.declared_release import DeclaredRelease
from dpaudit.project.targets import Target, find_target
from dpaudit.workflow.certifying import certified
from dpaudit.workflow.running import Charging, run_subject

_FACTS = ("value", "low", "high", "note")


@dataclass(frozen=True)
class QueryCost:
    """What a query costs and how exact it is, before any data.

    Attributes:
        query: its name.
        what: the query in words.
        noise: each of its releases, in words.
        error: how far it lies from the truth, with 95 % probability.
    """

    query: str
    what: str
    noise: tuple[str, ...]
    error: str


def release_target(path: Path | str) -> tuple[Target, DeclaredRelease]:
    """The release that a file declares.

    Raises:
        InputError: if it is wrong, or a plan.
    """
    target = find_target(str(path), {})
    if not isinstance(target.subject, DeclaredRelease):
        raise InputError(
            f"{files.shown(path)} is no release file; it must have [data], [privacy] and [[query]]."
        )
    return target, target.subject


def planned(path: Path | str) -> tuple[Certificate, tuple[QueryCost, ...]]:
    """The certificate of a release, and what each query costs, before any data are touched.

    Raises:
        InputError: if the file is wrong, or no noise certifies its claim.
    """
    target, subject = release_target(path)
    release = subject.release
    costs = [
        QueryCost(
            query.name,
            query.describe(),
            tuple(_noise_of(part) for part in release.parts[query.name]),
            query.expected_error(release.parts[query.name]),
        )
        for query in release.queries
    ]
    return certified(target), tuple(costs)


def _noise_of(part: Any) -> str:
    facts = part.mechanism.to_dict()
    kind = facts.pop("kind")
    shown = ", ".join(f"{name} {value:g}" for name, value in facts.items() if value is not None)
    return f"{kind} ({shown}){f' × {part.total}' if part.total > 1 else ''}"


def release_table(
    path: Path,
    folder: Path,
    *,
    synthetic: int | None = None,
    seed: int | None = None,
    durability: Durability = Durability.PROCESS,
    anchor: Path | None = None,
    charging: Charging | None = None,
    witness: bool | None = None,
) -> tuple[Certificate, tuple[Path, ...]]:
    """Run the queries of a release file, and write results, ledger, certificate and report.

    Args:
        path: of the release file.
        folder: where the files go; made if need be.
        synthetic: how many made-up rows to try it on, in place of the source.
        seed: of an experiment; None draws fresh entropy.
        durability: what a line of the ledger survives before its noise is drawn.
        anchor: file that keeps the head of the ledger.
        charging: where the release is charged, before it releases anything.
        witness: whether the independent checker proves it too; None where that is cheap.

    Returns:
        The certificate with the results, and the files; what the owner alone may see is last.

    Raises:
        InputError: if the file or the table is wrong.
        BudgetExceededError: if the book has not that much left.
    """
    release_target(path)
    if synthetic is not None and charging is not None:
        raise InputError("synthetic is given with a book; made-up rows cost nothing, so leave one.")
    certificate, written = run_subject(
        str(path),
        (),
        None if synthetic is None else f"synthetic {synthetic}",
        seed,
        folder,
        durability=durability,
        anchor=anchor,
        charging=charging,
        witness=witness,
    )
    results = (certificate.run or {}).get("results", ())
    tables = tuple(files.write(folder / name, made) for name, made in _tables(results))
    return certificate, (*tables, *written)


def _tables(results: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str | bytes]]:
    """The results as CSV, JSON and Parquet: one row for each cell of each query."""
    rows = list(result_rows(results))
    text = io.StringIO()
    keys = max((len(each["columns"]) for each in results), default=0)
    header = ["query", *(f"key {n}" for n in range(1, keys + 1)), *_FACTS]
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([_unformula(row.get(name)) for name in header] for row in rows)
    yield "results.csv", text.getvalue()
    yield "results.json", files.pretty_json(list(results))
    pa = optional_import("tables", "pyarrow", what="results in Parquet")
    columns = {
        name: [None if row.get(name) is None else str(row[name]) for row in rows]
        if name not in ("low", "high")
        else [row.get(name) for row in rows]
        for name in header
    }
    types = {name: pa.float64() if name in ("low", "high") else pa.string() for name in header}
    table = pa.table({n: pa.array(c, types[n]) for n, c in columns.items()})
    number = [row["value"] if isinstance(row["value"], int | float) else None for row in rows]
    table = table.append_column("number", pa.array(number, pa.float64()))
    sink = pa.BufferOutputStream()
    optional_import("tables", "pyarrow.parquet", what="results in Parquet").write_table(table, sink)
    yield "results.parquet", sink.getvalue().to_pybytes()


def result_rows(results: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """One table of all cells: the query, its keys, the value and the interval of its noise."""
    for result in results:
        for row in result["rows"]:
            keys = {
                f"key {n}": f"{name} = {label}"
                for n, (name, label) in enumerate(
                    zip(result["columns"], row["cell"], strict=True), start=1
                )
            }
            yield {"query": result["query"], **keys, **{f: row.get(f) for f in _FACTS}}


def _unformula(value: Any) -> Any:
    """A text as spreadsheets show it, and do not compute it."""
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return f"'{value}"
    return value
