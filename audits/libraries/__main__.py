"""``python -m audits.libraries``: runs pipelines of libraries, attacks them, writes the page."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from audits.libraries import accountants, notes, targets
from audits.libraries.measuring import kept, load, measure, missing, say
from audits.libraries.page import judged, render
from audits.libraries.rows import all_rows
from dpaudit.base import files
from dpaudit.base.errors import DpAuditError, InputError

RESULTS = Path("reports/libraries/libraries.json")
ACCOUNTANTS = "accountants"


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
    try:
        if not given.render:
            _measure(given)
        table = load(given.results)
        files.write(given.results.with_suffix(".md"), render(all_rows(), table))
        found = judged(all_rows(), table)
        for file in notes.write(found):
            say(f"wrote {file}, which is for the authors of the library")
    except DpAuditError as error:
        sys.stderr.write(f"{error}\n")
        return 3
    if any(each.false for each in found):
        return 1
    return 2 if any(each.error for each in found) else 0


def _measure(given: argparse.Namespace) -> None:
    rows = [
        row for row in all_rows() if given.library in ("", row.library) and given.only in row.name
    ]
    with_accountants = given.library in ("", ACCOUNTANTS) and not given.only
    if not rows and not with_accountants:
        raise InputError(f"no row has --library {given.library!r} and --only {given.only!r}.")
    if given.missing:
        rows = missing(rows, given.results)
    measure(rows, given.results, workers=given.workers, told=say)
    if not with_accountants:
        return
    truths = {each.name: list(accountants.truth(each)) for each in accountants.SETTINGS}
    kept(given.results, f"{accountants.PREFIX}truth", truths)
    for subject in accountants.SUBJECTS:
        kept(given.results, subject.key, accountants.measured(subject, say))
    for target in targets.TARGETS:
        kept(given.results, target.key, targets.answered(target, say))


if __name__ == "__main__":
    sys.exit(main())
