"""``python -m audits.libraries``: runs pipelines of libraries, attacks them, writes the page."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from audits.libraries.measuring import measure, say
from audits.libraries.rows import all_rows
from dpaudit.errors import DpAuditError

RESULTS = Path("reports/libraries.json")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and write the page; 0, 2 if some row could not be run, or 3 for wrong input."""
    parser = argparse.ArgumentParser(prog="python -m audits.libraries", description=__doc__)
    parser.add_argument("--library", default="", help="rows of this library alone")
    parser.add_argument("--only", default="", help="rows whose name contains this text")
    parser.add_argument("--workers", type=int, default=1, help="rows at once")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the page stands beside it")
    given = parser.parse_args(arguments)
    try:
        rows = [
            row
            for row in all_rows()
            if given.library in ("", row.library) and given.only in row.name
        ]
        failed = measure(rows, given.results, workers=given.workers, told=say)
    except DpAuditError as error:
        sys.stderr.write(f"{error}\n")
        return 3
    return 2 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
