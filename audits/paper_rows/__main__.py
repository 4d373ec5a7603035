"""``python -m audits.paper_rows``: measures the rows, checks the records, writes the page."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

from audits.paper_rows.page import Page, headlines, number_text
from audits.paper_rows.recording import (
    FOLDER,
    VARIABLE,
    Recording,
    experiments,
    record,
    spot_checks,
)
from audits.paper_rows.rows import changes, measure_all, rows_of, table_in
from audits.result_table import Record, run, say, show
from dpaudit.base import files
from dpaudit.base.toml_tables import chosen

DISAGREES = 1


def _only(given: argparse.Namespace) -> int:
    """Print some rows; write nothing."""
    for name, found in measure_all(rows_of(given.only), workers=given.workers).items():
        show(f"{name}  {found['place']}: {found['claim']}")
        show(f"  {found['verdict']}: {found['because']}")
        for number in found["numbers"]:
            show(f"  - {number_text(number)}")
    return 0


def _record(given: argparse.Namespace) -> int:
    """Run experiments and write their records."""
    known = experiments()
    for name in given.record or known:
        chosen(known, record=name)
        record(known[name], given.folder, missing=given.missing, workers=given.workers)
        show(f"{name}: recorded")
    return 0


def _page(given: argparse.Namespace) -> int:
    """Measure rows, run spot checks, write page and results; 1 where something disagrees."""
    names = {name: Recording.read(name, given.folder) for name in experiments()}
    records = {name: found for name, found in names.items() if found is not None}
    spots = tuple(spot_checks(records, workers=given.workers))
    outcomes = measure_all(rows_of(), workers=given.workers, folder=given.folder)
    wrong = [
        f"{_rows_of(spot.experiment, outcomes)}: record {spot.experiment}, cell {spot.cell}: "
        f"trial 1 was {spot.recorded:g}, is {spot.found or 0.0:g}, and {spot.allowed:g} is allowed."
        for spot in spots
        if not spot.agrees
    ]
    wrong += [] if given.full else changes(outcomes, given.folder)
    page = Page(outcomes, records, spots)
    if wrong and not given.full:
        say("\n".join([*wrong, "Nothing was written; see --full."]))
        return DISAGREES
    if any(spot.found is None for spot in spots):
        show(f"All that can be run agrees. Nothing was written: set {VARIABLE} for the rest.")
        return 0
    table_in(given.folder).write(outcomes)
    for ending in (".md", ".html"):
        files.write(given.folder.with_suffix(ending), page.render(ending))
    show("\n".join(headlines(page)))
    return DISAGREES if wrong else 0


def _rows_of(experiment: str, outcomes: Mapping[str, Record]) -> str:
    """The rows that rest on a record."""
    names = (name for name, found in outcomes.items() if experiment in found["records"])
    return ", ".join(names) or "no row"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; 1 where a spot check or a computed row disagrees, 3 for wrong input."""
    parser = argparse.ArgumentParser(prog="python -m audits.paper_rows", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="ROW", help="print these rows, write nothing")
    parser.add_argument("--record", nargs="*", metavar="NAME", help="run experiments anew")
    parser.add_argument("--missing", action="store_true", help="of these what has no record yet")
    parser.add_argument("--full", action="store_true", help="run all experiments, then the page")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="of records and results")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    given = parser.parse_args(arguments)
    warnings.simplefilter("ignore")  # of libraries: what matters is raised
    return run(lambda: _asked(given))


def _asked(given: argparse.Namespace) -> int:
    if given.only:
        return _only(given)
    if given.record is not None:
        return _record(given)
    if given.full:
        given.record = []
        _record(given)
    return _page(given)


if __name__ == "__main__":
    sys.exit(main())
