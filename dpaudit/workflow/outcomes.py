"""What a check of a project found: one row for every subject and every budget."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from dpaudit.accounting import Guarantee
from dpaudit.certificate import Certificate, Claim, Verdict
from dpaudit.workflow.comparing import Change, Direction


class Status(StrEnum):
    """The word of a row, from best to worst."""

    CERTIFIED = "certified"
    UNPROVEN = "unproven"
    EXCEEDED = "exceeded"
    """What is proved is above the claim, or above the budget."""
    REFUTED = "refuted"
    ERROR = "error"
    """It could not be certified or attacked; the row says why."""


def status_of(certificate: Certificate) -> Status:
    """Return what a certificate says in one word."""
    if certificate.verdict is Verdict.REFUTED:
        return Status.REFUTED
    return Status.EXCEEDED if certificate.claim_exceeded else Status(certificate.verdict)


@dataclass(frozen=True)
class SubjectRow:
    """One subject.

    Attributes:
        name: in the project.
        target: what was certified.
        certificate: what is known; None where an error prevented it.
        error: that error, as one sentence.
        files: content of its files by file name.
        since: name of the older certificate that it was compared with; empty where there is none.
        changes: what changed since that.
        inconclusive: whether the error is that an attack could not decide anything.
        unrehearsed: why the code was not put to the test, though it should be; empty otherwise.
    """

    name: str
    target: str
    certificate: Certificate | None = None
    error: str = ""
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    since: str = ""
    changes: tuple[Change, ...] = ()
    unrehearsed: str = ""
    inconclusive: bool = False

    @property
    def status(self) -> Status:
        """What the row says."""
        if self.certificate is None:
            return Status.UNPROVEN if self.inconclusive else Status.ERROR
        return status_of(self.certificate)

    def to_dict(self) -> dict[str, Any]:
        """A JSON record."""
        known = self.certificate
        claim = None if known is None else known.claim
        audits = () if known is None else known.audits
        return {
            "name": self.name,
            "target": self.target,
            "status": str(self.status),
            "error": self.error,
            "files": sorted(self.files),
            "claim": None if claim is None else claim.to_dict(),
            "guarantee": _proved(None if known is None else known.guarantee),
            "epsilon_lower": [audit.to_dict()["epsilon_lower"] for audit in audits],
            "scope": None if known is None else str(known.scope),
            "unrehearsed": self.unrehearsed or None,
            "since": self.since or None,
            "changes": [change.to_dict() for change in self.changes],
        }


def _proved(proved: Guarantee | None) -> dict[str, Any] | None:
    if proved is None:
        return None
    return {name: proved.to_dict()[name] for name in ("epsilon", "delta", "accountant")}


@dataclass(frozen=True)
class BudgetRow:
    """One budget.

    Attributes:
        name: in the project.
        subjects: names of the subjects whose plans compose.
        limit: the allowed (ε, δ).
        status: certified where the composition is within it.
        guarantee: of the composition, at the limit's δ.
        note: what a reader must know, as one sentence.
    """

    name: str
    subjects: tuple[str, ...]
    limit: Claim
    status: Status
    guarantee: Guarantee | None = None
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """A JSON record."""
        return {
            "name": self.name,
            "subjects": list(self.subjects),
            "limit": {"epsilon": self.limit.epsilon, "delta": self.limit.delta},
            "status": str(self.status),
            "guarantee": _proved(self.guarantee),
            "note": self.note,
        }


@dataclass(frozen=True)
class ProjectOutcome:
    """The whole project.

    Attributes:
        subjects: in the order of the project file.
        budgets: in the order of the project file.
        gone: names of older certificates that no subject has now.
        changes: what became of older budgets.
        beside: whether its reports went beside better ones, which they would have replaced.
    """

    subjects: tuple[SubjectRow, ...]
    budgets: tuple[BudgetRow, ...] = ()
    gone: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
    beside: bool = False

    @property
    def status(self) -> Status:
        """The worst of all rows."""
        return max((row.status for row in self._rows()), key=list(Status).index)

    @property
    def is_worse(self) -> bool:
        """Whether a subject is worse than its older certificate, or a budget allows more."""
        changes = [*self.changes, *(change for row in self.subjects for change in row.changes)]
        return any(change.direction is Direction.WORSE for change in changes)

    def _rows(self) -> Iterator[SubjectRow | BudgetRow]:
        yield from self.subjects
        yield from self.budgets

    def to_dict(self) -> dict[str, Any]:
        """The JSON answer."""
        return {
            "status": str(self.status),
            "worse": self.is_worse,
            "subjects": [row.to_dict() for row in self.subjects],
            "budgets": [row.to_dict() for row in self.budgets],
            "gone": list(self.gone),
            "changes": [change.to_dict() for change in self.changes],
        }
