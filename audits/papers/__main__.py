"""Command line: make ``reports/`` anew."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from audits.papers.generating import PROJECT, REPORTS, generate
from dpaudit.certificate import Certificate
from dpaudit.errors import DpAuditError
from dpaudit.workflow.outcomes import status_of


def _print(name: str, certificate: Certificate) -> None:
    sys.stdout.write(f"{name}: {status_of(certificate)}\n")
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the reports; 0 whatever they say, since some claims are false, and 3 on an error."""
    parser = argparse.ArgumentParser(prog="python -m audits.papers", description=__doc__)
    parser.add_argument("--project", type=Path, default=PROJECT, help="the project file")
    parser.add_argument("--folder", type=Path, default=REPORTS, help="of the reports")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")  # of libraries: what matters is raised, or a finding
    try:
        certificates = generate(options.project, options.folder, progress=_print)
    except DpAuditError as error:
        sys.stderr.write(f"{error}\n")
        return 3
    sys.stdout.write(f"{len(certificates)} reports; begin with {options.folder / 'index.html'}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
