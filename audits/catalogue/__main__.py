"""``python -m audits.catalogue``: the table of all rows, and what it says of the auditors."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from audits.catalogue import ENTRIES, FLOATS
from audits.catalogue.measuring import FloatRow, Row, Summary, run_catalogue, run_floats
from audits.result_table import render, run, show


def number(value: float) -> str:
    """Four digits, or ∞."""
    return "∞" if value == math.inf else f"{value:.4g}"


UNTOLD = ("json", "workers", "results")
"""Options that change nothing on the page."""


def _line(row: Row) -> str:
    entry = row.entry
    cells = (
        f"{entry.name:<58}",
        f"{entry.claim.epsilon:>7.4g}",
        f"{number(entry.true_epsilon):>7}",
        f"{number(row.epsilon_lower):>7}",
        f"{row.verdict:<18}",
        f"{row.runs:>7}/{entry.runs:<7}",
        f"{row.seconds:>7.2f} s",
        "" if row.as_expected else "  UNEXPECTED",
    )
    return " ".join(cells)


def _float_line(row: FloatRow) -> str:
    found = ", ".join(row.rules) or "no finding"
    late = "" if row.as_expected else "  UNEXPECTED"
    return f"{row.entry.name:<58} {found:<25} {row.draws:>8} draws {row.seconds:>7.2f} s{late}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m audits.catalogue", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1, help="audits of each row")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--runs", type=int, help="at most so many runs an audit")
    parser.add_argument("--right-seeds", type=int, help="audits of each right row")
    parser.add_argument("--right-runs", type=int, help="at most so many runs an audit of these")
    parser.add_argument("--workers", type=int, default=1, help="processes at the same time")
    parser.add_argument("--results", type=Path, help="keep each row here, and go on with what is")
    parser.add_argument("--only", default="", help="rows whose name contains this text")
    parser.add_argument("--json", type=Path, help="also write the table to this file")
    parser.add_argument("--markdown", type=Path, help="also write it to this file, as a page")
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Run the catalogue; 0 if every row is as it should be, 1 if not, 3 for wrong input."""
    given = _parser().parse_args(arguments)
    return run(lambda: _measured(given))


def _measured(given: argparse.Namespace) -> int:
    rows = run_catalogue(
        [entry for entry in ENTRIES if given.only in entry.name],
        seed=given.seed,
        seeds=given.seeds,
        runs=given.runs,
        right_seeds=given.right_seeds,
        right_runs=given.right_runs,
        processes=given.workers,
        progress=lambda row: show(_line(row)),
        results=given.results,
    )
    floats = run_floats([f for f in FLOATS if given.only in f.name], draws=given.runs)
    summary = Summary.of(rows)
    for line in (*map(_float_line, floats), *summary.lines):
        show(line)
    if given.json is not None:
        table = json.dumps(_table(rows, floats, summary), ensure_ascii=False, indent=2)
        given.json.write_text(table + "\n", encoding="utf-8")
    if given.markdown is not None:
        page = markdown(rows, floats, _command(given))
        given.markdown.write_text(page, encoding="utf-8")
    return 0 if _sound(rows, floats) else 1


def _command(given: argparse.Namespace) -> str:
    """What makes the same page."""
    told = {name: value for name, value in vars(given).items() if name not in UNTOLD}
    default = _parser().get_default
    words = (
        f"--{name.replace('_', '-')} {value}"
        for name, value in told.items()
        if value != default(name)
    )
    return " ".join(["python -m audits.catalogue", *words])


def markdown(rows: Sequence[Row], floats: Sequence[FloatRow], command: str) -> str:
    """The page of a table, and of one of samplers, made by a command."""
    found, alarms, above = (each[0].upper() + each[1:] for each in Summary.of(rows).lines)
    titles = (("Wrong mechanisms", False), ("Right mechanisms", True))
    tables = [(title, [row for row in rows if row.entry.right == right]) for title, right in titles]
    return render(
        Path(__file__).parent / "page.md.j2",
        *(_name, number),
        command=command,
        found=found,
        alarms=alarms,
        above=above,
        tables=[(title, chosen) for title, chosen in tables if chosen],
        floats=floats,
    )


def _name(row: Row | FloatRow) -> str:
    name = row.entry.name + ("" if row.as_expected else " **(unexpected)**")
    return name.replace("|", "\\|")


def _sound(rows: Sequence[Row], floats: Sequence[FloatRow]) -> bool:
    return all(row.as_expected for row in (*rows, *floats))


def _table(rows: Sequence[Row], floats: Sequence[FloatRow], summary: Summary) -> dict[str, Any]:
    return {
        "rows": [row.to_dict() for row in rows],
        "floats": [row.to_dict() for row in floats],
        **summary.to_dict(),
        "as_expected": _sound(rows, floats),
    }


if __name__ == "__main__":
    sys.exit(main())
