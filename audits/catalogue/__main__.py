"""``python -m audits.catalogue``: the table of all rows."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from dpaudit.errors import DpAuditError

from . import ENTRIES, FLOATS
from .measuring import Row, false_alarms, run_catalogue
from .measuring_floats import FloatRow, run_floats


def _number(value: float) -> str:
    return "∞" if value == float("inf") else f"{value:.4g}"


def _line(row: Row) -> str:
    entry = row.entry
    cells = (
        f"{entry.name:<58}",
        f"{entry.claim.epsilon:>7.4g}",
        f"{_number(entry.true_epsilon):>7}",
        f"{_number(row.epsilon_lower):>7}",
        f"{row.verdict:<18}",
        f"{row.runs:>7}/{entry.runs:<7}",
        f"{row.seconds:>7.2f} s",
        "" if row.as_expected else "  UNEXPECTED",
    )
    return " ".join(cells) + "\n"


def _float_line(row: FloatRow) -> str:
    found = ", ".join(row.rules) or "no finding"
    late = "" if row.as_expected else "  UNEXPECTED"
    return f"{row.entry.name:<58} {found:<25} {row.draws:>8} draws {row.seconds:>7.2f} s{late}\n"


def _progress(row: Row) -> None:
    sys.stdout.write(_line(row))
    sys.stdout.flush()


def main(arguments: list[str] | None = None) -> int:
    """Run the catalogue; 0 if every row is as it should be, 1 if not, 3 for wrong input."""
    parser = argparse.ArgumentParser(prog="python -m audits.catalogue", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1, help="audits of each row")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--runs", type=int, help="at most so many runs an audit")
    parser.add_argument("--only", default="", help="rows whose name contains this text")
    parser.add_argument("--json", type=Path, help="also write the table to this file")
    given = parser.parse_args(arguments)
    chosen = [entry for entry in ENTRIES if given.only in entry.name]
    show = sys.stdout.write
    try:
        rows = run_catalogue(
            chosen, seed=given.seed, seeds=given.seeds, runs=given.runs, progress=_progress
        )
        floats = run_floats([f for f in FLOATS if given.only in f.name], draws=given.runs)
    except DpAuditError as error:
        sys.stderr.write(f"{error}\n")
        return 3
    for row in floats:
        show(_float_line(row))
    refuted, audits = false_alarms(rows)
    show(f"{refuted} of {audits} audits of right mechanisms refuted them\n")
    sound = all([row.as_expected for row in rows] + [row.as_expected for row in floats])
    if given.json is not None:
        table = {
            "rows": [row.to_dict() for row in rows],
            "floats": [row.to_dict() for row in floats],
            "false_alarms": {"refuted": refuted, "audits": audits},
            "as_expected": sound,
        }
        given.json.write_text(json.dumps(table, ensure_ascii=False, indent=2) + "\n")
    return 0 if sound else 1


if __name__ == "__main__":
    sys.exit(main())
