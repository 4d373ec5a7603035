"""``python -m audits.peers``: measures what is missing in the results, and writes the page."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from audits.peers.cells import FAILED, RUNS, measure, table_of
from audits.peers.page import page
from dpaudit.base import files
from dpaudit.base.errors import DpAuditError

RESULTS = Path("reports/auditors/auditors.json")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and write the page; 0, or 3 for wrong input."""
    parser = argparse.ArgumentParser(prog="python -m audits.peers", description=__doc__)
    parser.add_argument("--render", action="store_true", help="write the page alone")
    parser.add_argument("--only", default="", help="tools whose name contains this text")
    parser.add_argument("--runs", type=int, nargs="+", choices=RUNS, default=RUNS, help="a side")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the page stands beside it")
    given = parser.parse_args(arguments)
    table = table_of(given.results)
    try:
        for runs in () if given.render else given.runs:
            measure(table, runs=(runs,), only=given.only)
        files.write(
            given.results.with_suffix(".md"), page(table.found(), table.load().get(FAILED, {}))
        )
    except DpAuditError as error:
        sys.stderr.write(f"{error}\n")
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
