"""``python -m audits.libraries``: runs pipelines of libraries, attacks them, writes the page."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from audits.libraries import accountants
from audits.libraries.page import judge_rows, page, write_notes
from audits.libraries.rows import ROWS, environment
from audits.result_table import Record, ResultTable, run, say
from dpaudit.base import files
from dpaudit.base.errors import InputError

RESULTS = Path("reports/libraries/libraries.json")
ACCOUNTANTS = "accountants"
CELLS = {
    **{row.name: row for row in ROWS},
    accountants.TRUTH: accountants.Truths(),
    **{each.key: each for each in (*accountants.SUBJECTS, *accountants.TARGETS)},
}


def table_of(results: Path) -> ResultTable:
    """The rows and accountants, with what was found of them."""
    cells = dict(sorted(CELLS.items()))
    return ResultTable(results, cells, lambda cell: cell.asked)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and write the page.

    Returns:
        0; 1 if a claim that is known to hold was accused; 2 if some row could not be run; 3 for
        wrong input.
    """
    parser = argparse.ArgumentParser(prog="python -m audits.libraries", description=__doc__)
    parser.add_argument("--library", default="", help=f"this one alone; or {ACCOUNTANTS!r}")
    parser.add_argument("--only", default="", help="rows whose name contains this text")
    parser.add_argument("--workers", type=int, default=1, help="rows at once")
    parser.add_argument("--missing", action="store_true", help="what was not run as it is now")
    parser.add_argument("--render", action="store_true", help="write the page alone")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the page stands beside it")
    given = parser.parse_args(arguments)
    return run(lambda: _made(given))


def _made(given: argparse.Namespace) -> int:
    table = table_of(given.results)
    if not given.render:
        measure(table, _chosen(table, given), given.workers)
    found = judge_rows(table.found())
    files.write(given.results.with_suffix(".md"), page(found, table.load()))
    for file in write_notes(found):
        say(f"wrote {file}, which is for the authors of the library")
    if any(each.false for each in found):
        return 1
    return 2 if any(each.error for each in found) else 0


def _chosen(table: ResultTable, given: argparse.Namespace) -> list[str]:
    """The names of rows, and of accountants where none of the rows is asked for alone."""
    rows = [
        row.name for row in ROWS if given.library in ("", row.library) and given.only in row.name
    ]
    others = [name for name in CELLS if name.startswith(accountants.PREFIX)]
    chosen = rows + (others if given.library in ("", ACCOUNTANTS) and not given.only else [])
    if not chosen:
        raise InputError(f"no row has --library {given.library!r} and --only {given.only!r}.")
    missing = set(table.missing())
    return [name for name in chosen if name in missing or not given.missing]


def measure(table: ResultTable, names: Sequence[str], workers: int) -> None:
    """Run rows and ask accountants, and say what comes out as soon as it does."""
    cells = [table.cells[name] for name in names]
    for name in dict.fromkeys(getattr(cell, "environment", "") for cell in cells):
        try:
            environment(name).python()  # one after the other, before several are run at once
        except InputError as error:
            say(f"{name}: {error}")
    table.measure(lambda cell, _: cell.measured(), names, workers=workers, told=_told)


def _told(name: str, found: Record) -> None:
    kinds = [(kind, found[kind]) for kind in ("observe", "audit") if kind in found]
    said = ", ".join(f"{kind} {each.get('verdict', '–')}" for kind, each in kinds) or "done"
    took = f"{found['seconds']:6.1f} s  " if "seconds" in found else ""
    say(f"{took}{name}: " + (f"not run: {found['error']}" if "error" in found else said))


if __name__ == "__main__":
    sys.exit(main())
