"""Findings of runs that fail, hang or leave their plan."""

from __future__ import annotations

from collections.abc import Mapping

from dpaudit import files
from dpaudit.auditing.replaying.replay import ReplayReport
from dpaudit.auditing.replaying.runs import TEXT, Run
from dpaudit.certificate import Finding, Severity

__all__ = ["LEAVES_PLAN", "PLAN_CHANGES", "does_not_end", "raised", "unwritable"]

LEAVES_PLAN = Finding(
    "plan-not-followed",
    Severity.ERROR,
    "The run on the data asks for a release that the plan does not declare.",
    "Declare every release in the plan.",
)
UNWRITABLE = Finding(
    "unwritable-result",
    Severity.ERROR,
    "The result of the run holds more than finite numbers, texts, lists and tables, as NaN is: it "
    "could not be written, and what was released would be lost.",
    "Return None where there is no number, and plain values else.",
)
PLAN_CHANGES = Finding(
    "plan-not-followed",
    Severity.ERROR,
    "The subject's plan is not the certified one any more once its data are loaded, or it has run.",
    "Let plan depend on public fields alone, and let nothing change them.",
)


def unwritable(run: Run) -> list[Finding]:
    """A result that a run could not write, after its releases are paid for."""
    if not isinstance(run.shown, Mapping):
        return []
    try:
        files.canonical_json({name: run.shown[name] for name in run.shown if name != TEXT})
    except (TypeError, ValueError, RecursionError):
        return [UNWRITABLE]
    return []


def does_not_end(seconds: float) -> Finding:
    """A run on a neighbour that takes far longer than the one on the data."""
    return Finding(
        "raises-on-neighbour",
        Severity.ERROR,
        f"The run on a neighbour does not end within {seconds:.0f} seconds, and the run on the "
        "data does: how long it takes tells them apart.",
        "Bound every loop by public numbers.",
    )


def raised(report: ReplayReport) -> Finding:
    """An exception is an output too: whoever sees it knows which of the neighbours it was."""
    if report.at_the_door:
        return Finding(
            "not-a-number",
            Severity.ERROR,
            "With other values of one unit the run sends the ledger what no mechanism takes, such "
            f"as NaN, and fails ({report.raised}): that it fails tells the neighbours apart.",
            "Bound every value before it is added up; ledger.sum and its kin bound whatever comes.",
        )
    if report.before:
        return Finding(
            "refused-after-release",
            Severity.ERROR,
            f"After {report.before} releases the run on a neighbour raises {report.raised}, and "
            "the run on the data does not: that it fails tells them apart.",
            "Check or bound every value before the first release; ledger.sum and its kin bound "
            "whatever comes, NaN included.",
        )
    return Finding(
        "raises-on-neighbour",
        Severity.ERROR,
        f"The run on a neighbour raises {report.raised}, and the run on the data does not: that "
        "it fails tells them apart.",
        "Let the run take every data set that can occur, or check the data in load.",
    )
