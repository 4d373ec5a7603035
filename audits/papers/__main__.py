"""Command line: make ``reports/`` anew, or compare it with what would be made."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from audits.papers.generating import PROJECT, REPORTS, compare, generate
from audits.result_table import run, show
from dpaudit.workflow.outcomes import status_of


def _compare(options: argparse.Namespace) -> int:
    """Print every difference as one line; 1 if there is any."""
    found = 0
    for file, apart in compare(
        options.compare, options.project, options.folder, workers=options.workers
    ):
        for each in apart or ("same",):
            show(f"{file}: {each}")
        found += len(apart)
    return int(found > 0)


def _make(options: argparse.Namespace) -> int:
    certificates = generate(
        options.project,
        options.folder,
        workers=options.workers,
        progress=lambda name, certificate: show(f"{name}: {status_of(certificate)}"),
    )
    show(f"{len(certificates)} reports; begin with {options.folder / 'index.html'}")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the reports, or compare them; 3 on an error.

    Making them gives 0 whatever they say, since some claims are false.
    """
    parser = argparse.ArgumentParser(prog="python -m audits.papers", description=__doc__)
    parser.add_argument("--project", type=Path, default=PROJECT, help="the project file")
    parser.add_argument("--folder", type=Path, default=REPORTS, help="of the reports")
    parser.add_argument(
        "--workers", type=int, default=os.cpu_count() or 1, help="processes; as many as processors"
    )
    parser.add_argument(
        "--compare",
        nargs="*",
        metavar="NAME",
        help="write nothing, and print where the certificates (of these subjects; else of all) "
        "differ from what is made now; exit code 1 if they do",
    )
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")  # of libraries: what matters is raised, or a finding
    return run(lambda: (_make if options.compare is None else _compare)(options))


if __name__ == "__main__":
    sys.exit(main())
