"""``python -m audits.peers``: measures what is missing in the results, and writes the page."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from audits.peers.cells import FAILED, RUNS, forget, measure, table_of
from audits.peers.page import page
from audits.result_table import run
from dpaudit.base import files

RESULTS = Path("reports/auditors/auditors.json")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and write the page; 0, or 3 for wrong input."""
    parser = argparse.ArgumentParser(prog="python -m audits.peers", description=__doc__)
    parser.add_argument("--render", action="store_true", help="write the page alone")
    parser.add_argument("--only", default="", help="tools whose name contains this text")
    parser.add_argument("--runs", type=int, nargs="+", choices=RUNS, default=RUNS, help="a side")
    parser.add_argument("--anew", help="rows whose label contains this text, once more")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the page stands beside it")
    given = parser.parse_args(arguments)
    return run(lambda: _measured(given))


def _measured(given: argparse.Namespace) -> int:
    table = table_of(given.results)
    if given.anew is not None and not given.render:
        forget(table, runs=given.runs, only=given.only, row=given.anew)
    for runs in () if given.render else given.runs:
        measure(table, runs=(runs,), only=given.only)
    text = page(table.found(), table.load().get(FAILED, {}))
    files.write(given.results.with_suffix(".md"), text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
