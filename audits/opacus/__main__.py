"""``python -m audits.opacus``: which method finds which defect, and what it costs."""

from __future__ import annotations

import argparse
import logging
import sys
import time
import warnings
from pathlib import Path

from audits.result_table import say, show
from dpaudit.base import files
from dpaudit.base.errors import UnsupportedError
from dpaudit.base.optional_import import require


def main(arguments: list[str] | None = None) -> int:
    """Print the table; 0 if every method finds what it should and nothing else, else 1."""
    parser = argparse.ArgumentParser(prog="python -m audits.opacus", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="seed of every check")
    parser.add_argument("--only", default="", help="rows whose subject or method has this text")
    parser.add_argument("--audits", action="store_true", help="write reports/trainings.md instead")
    parser.add_argument("--seeds", type=int, default=5, help="of each audit")
    parser.add_argument("--canaries", type=int, default=10_000, help="with and without, of each")
    given = parser.parse_args(arguments)
    try:
        require("opacus", "opacus", what="the audit of opacus")
    except UnsupportedError as error:
        say(f"{parser.prog}: {error}")
        return 3
    import torch

    from audits.opacus.defects import CHECKS
    from audits.opacus.trainings import TRAININGS

    logging.getLogger("opacus").setLevel(logging.ERROR)  # empty first batches are expected here
    torch.set_num_threads(1)
    if given.audits:
        return _audits(given.seeds, given.canaries)
    wrong = 0
    show(f"{'subject':<46} {'method':<20} {'runs':>5} {'seconds':>8}  found")
    for check in (*CHECKS, *TRAININGS):
        if given.only not in f"{check.subject} {check.method}":
            continue
        begin = time.perf_counter()
        said = check.look(given.seed)
        seconds, right = time.perf_counter() - begin, check.right(said)
        wrong += not right
        show(
            f"{check.subject:<46} {check.method:<20} {check.runs:>5} {seconds:>8.2f}  "
            f"{said or check.finds or 'nothing'}{'' if right else '  UNEXPECTED'}"
        )
    return int(wrong > 0)


def _audits(seeds: int, canaries: int) -> int:
    """Measure, print and write the table of audited trainings."""
    from audits.opacus.audited import Setting
    from audits.opacus.audits import measure_trainings, reach, table

    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of hooks, as inputs have no gradients
        for row in measure_trainings(seeds=seeds, canaries=canaries, guesses=1000):
            found.append(row)
            low = ", ".join(f"{each:.2f}" for each in row.free)
            show(f"{row.training}, {row.audit}: ε >= {low}")
    page = table(found, seeds) + reach(Setting(), canaries)
    files.write(Path("reports") / "trainings.md", page)
    wrong = [row for row in found if row.certified and max(row.free) > row.certified]
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
