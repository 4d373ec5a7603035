"""Which wrong subjects ``dpaudit check`` finds, and whether it is silent on right ones.

Run ``python -m tests.benchmarks.rehearsal_mutants [NAME …]``; without names, all are checked. What
was said of each goes to stderr.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
import time
from pathlib import Path

from dpaudit.certificate import Severity
from dpaudit.certificate.findings import plan_findings
from dpaudit.workflow.checking import check_project
from dpaudit.workflow.outcomes import Status, SubjectRow
from tests.support.mutants import RIGHT, WRONG


def checked(subject: type) -> SubjectRow:
    """The row of a project that has this subject alone, with default settings and a δ."""
    text = (
        "[project]\nformats = []\n"
        f'[[subject]]\nname = "{subject.__name__}"\n'
        f'target = "{subject.__module__}:{subject.__name__}"\ndelta = 1e-6\n'
    )
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "dpaudit.toml").write_text(text)
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
            outcome, _ = check_project(folder)
    return outcome.subjects[0]


def messages(row: SubjectRow) -> list[tuple[str, str, str]]:
    """Rule, severity and sentence of all that does not follow from the plan alone."""
    if row.certificate is None:
        return [("error", "error", row.error)]
    known = {finding.rule for finding in plan_findings(row.certificate.plan)}
    found = [
        (finding.rule, str(finding.severity), finding.message)
        for finding in row.certificate.findings
        if finding.rule not in known
    ]
    return found + ([("unrehearsed", "warning", row.unrehearsed)] if row.unrehearsed else [])


def main(names: list[str]) -> None:
    start = time.perf_counter()
    right = {"found": 0, "of": 0}
    wrong = {"found": 0, "warned": 0, "of": 0}
    broken: list[str] = []
    print("subject | expected | status | rules")
    for subject in (*WRONG, *RIGHT):
        if names and subject.__name__ not in names:
            continue
        is_right = subject in RIGHT
        began = time.perf_counter()
        row = checked(subject)
        seconds = time.perf_counter() - began
        said = messages(row)
        rules = ", ".join(sorted({f"{rule} ({level})" for rule, level, _ in said})) or "-"
        expected = "silent" if is_right else "found"
        print(
            f"{subject.__name__} | {expected} | {row.status} | {rules} | {seconds:.1f} s",
            flush=True,
        )
        for rule, level, text in said:
            print(f"{subject.__name__}: {rule} ({level}): {text}", file=sys.stderr, flush=True)
        count = right if is_right else wrong
        count["of"] += 1
        disturbing = [each for each in said if each[1] != str(Severity.NOTE)]
        errors = row.status is Status.REFUTED or any(
            level == str(Severity.ERROR) for _, level, _ in said
        )
        if not is_right and (row.status is Status.ERROR or (row.unrehearsed and not errors)):
            broken.append(subject.__name__)
        elif row.status is not Status.CERTIFIED or (is_right and disturbing):
            count["found"] += 1
        elif disturbing:
            count["warned"] += 1
    print(f"\nwrong: {wrong['found']} of {wrong['of']} found, {wrong['warned']} more warned of")
    if broken:
        print(
            "wrong, and not judged, as the check or the rehearsal failed with no error found: "
            + ", ".join(broken)
        )
    print(f"right: silent on {right['of'] - right['found']} of {right['of']}")
    print(f"{time.perf_counter() - start:.0f} seconds")


if __name__ == "__main__":
    main(sys.argv[1:])
