"""The rehearsal: the real run on data and on their neighbours, before anything is published.

The first run is recorded. Then the same releases are given to runs on the same data (what differs
is hidden randomness), on neighbours (values, touches, groups, control flow and results are
compared) and on data further away (control flow and results). The noise that was drawn is tested
for its law, and ways around the ledger are watched. Everything that was released is thrown away.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

from dpaudit.auditing.distinguishing.limits import TrialTimeoutError
from dpaudit.base import validate
from dpaudit.base.finding_table import FindingTable
from dpaudit.certificate import Finding, Rehearsal
from dpaudit.plan import Plan
from dpaudit.project import Subject
from dpaudit.project.execution import Progress
from dpaudit.project.foreign import DEBUG, place_of
from dpaudit.rehearsal.session import RehearsalAbortedError, Session

_found = FindingTable(__name__)

MOST = 24
"""Neighbours that are tried, unless more are asked for; further ones only where runs are quick."""
LONGEST = 300.0
"""Seconds that one run may take if nothing else is said: a busy machine is to decide nothing."""


@dataclass(frozen=True)
class RehearsalOutcome:
    """The record and the findings of a rehearsal.

    Attributes:
        record: for a certificate.
        findings: what does not hold.
    """

    record: Rehearsal
    findings: tuple[Finding, ...] = ()

    @property
    def sentence(self) -> str:
        """What was put to the test, in one sentence."""
        made = self.record
        if made.reason:
            return f"none: {made.reason}"
        found = f"{len(self.findings)} findings" if self.findings else "nothing was found"
        return (
            f"run replayed on {len(made.neighbours)} neighbours and {len(made.elsewhere)} other "
            f"data sets of {made.data!r}: {found}"
        )

    @classmethod
    def impossible(cls, reason: str) -> RehearsalOutcome:
        """A rehearsal that could not be made, and why, in one sentence."""
        return cls(Rehearsal(reason=reason))


def rehearse(
    subject: Subject,
    data: Any,
    name: str = "",
    *,
    plan: Plan | None = None,
    seed: int = 0,
    most: int = MOST,
    timeout: float | None = LONGEST,
    progress: Progress | None = None,
    command: str = "",
) -> RehearsalOutcome:
    """Put the real run of a subject to the test.

    Args:
        subject: whose :meth:`~dpaudit.project.Subject.run` is tested.
        data: what it runs on.
        name: of the data, for the record.
        plan: what is certified of it; its plan now where not given. It must not change.
        seed: of noise, algorithm and choice of neighbours.
        most: how many neighbours are tried, at most, where runs take long.
        timeout: seconds that one run may take; None for any time.
        progress: called with the runs that are done and those to be done.
        command: that shows a replay, but for how its neighbour is made, for findings.

    Raises:
        InputError: if a number is out of range.
    """
    most = validate.integer_at_least(1, most=most)
    seed = validate.integer_at_least(0, seed=seed)
    plan = plan or subject.plan()
    session = Session(subject, data, plan, seed, most, timeout, progress, command)
    reason = ""
    try:
        session.run()
        session.compare_model()
        session.attack_laws()
    except RehearsalAbortedError as end:
        reason = end.reason
    except TrialTimeoutError:
        reason = f"A run took more than {timeout:g} seconds; give a larger timeout."
    except Exception as error:  # what ends a rehearsal never counts in its favour
        if os.environ.get(DEBUG):
            raise
        raised = f"{type(error).__name__}{place_of(error)}"
        session.findings.append(_found("rehearsal-fails", raised=raised))
        reason = f"It ended in an error ({raised})."
    record = replace(session.record(name or "data"), reason=reason)
    return RehearsalOutcome(record, (*session.findings, *session.seen_beside()))
