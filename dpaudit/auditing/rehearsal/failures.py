"""Findings of runs that fail, or whose result cannot be written."""

from __future__ import annotations

from collections.abc import Mapping

from dpaudit import files
from dpaudit.auditing.replaying.replay import ReplayReport
from dpaudit.auditing.replaying.runs import TEXT, Run
from dpaudit.certificate import Finding
from dpaudit.finding_table import FindingTable

_found = FindingTable(__name__)


def unwritable(run: Run) -> list[Finding]:
    """A result that a run could not write, after its releases are paid for."""
    if not isinstance(run.shown, Mapping):
        return []
    try:
        files.canonical_json({name: run.shown[name] for name in run.shown if name != TEXT})
    except (TypeError, ValueError, RecursionError):
        return [_found("unwritable-result")]
    return []


def raised(report: ReplayReport) -> Finding:
    """An exception is an output too: whoever sees it knows which of the neighbours it was."""
    if report.at_the_door:
        return _found("not-a-number", raised=report.raised)
    if report.before:
        return _found("refused-after-release", before=report.before, raised=report.raised)
    return _found("raises-on-neighbour", raised=report.raised)
