"""What all trainings through a ledger share: their cost so far, and the certificate.

Whatever library trains, ``dpaudit verify --ledger`` holds such a certificate against its journal,
unless a seed makes it an experiment, of which a certificate holds no journal.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from dpaudit.accounting import AccountantName, compose
from dpaudit.base import validate
from dpaudit.base.finding_table import FindingTable
from dpaudit.certificate import Certificate, Claim, Finding, SubjectRecord, certify
from dpaudit.certificate.checking import with_witness
from dpaudit.ledger import Ledger, with_ledger

_found = FindingTable(__name__)


@dataclass(frozen=True)
class Wanted:
    """What somebody asks of a certificate: the arguments of :meth:`LedgerTraining.certificate`."""

    delta: float | None
    claim: Claim | None
    accountant: AccountantName | str
    name: str
    findings: Sequence[Finding]


class LedgerTraining(ABC):
    """A training whose noise a ledger knows.

    Attributes:
        ledger: the ledger.
    """

    ledger: Ledger
    usual_name: ClassVar[str]
    """How a certificate calls it where nobody says a name."""
    not_covered: ClassVar[tuple[str, ...]]
    """Sentences of its certificate."""

    def epsilon(self, delta: float, accountant: AccountantName | str = AccountantName.RDP) -> float:
        """Return ε of the steps so far, for loggers and callbacks; fast with Rényi.

        It promises nothing of a training that stops because of it, or of anything else that it
        saw: the certificate says what is proved of the whole, and a filter as the ledger's budget
        may end a training at any step.

        Args:
            delta: δ, as in the certificate.
            accountant: whose bound is wanted; by default the fastest that takes every training.
        """
        validate.probability(delta=delta)
        if not len(self.ledger):
            return 0.0
        return compose(self.ledger.spent(), accountant).epsilon(delta).upper

    def certificate(
        self,
        delta: float | None = None,
        *,
        claim: Claim | None = None,
        accountant: AccountantName | str = AccountantName.BEST,
        name: str | None = None,
        findings: Sequence[Finding] = (),
        witness: bool | None = None,
    ) -> Certificate:
        """Certify the training.

        The guarantee is that of the declared plan, at most, or that of the filter that is the
        ledger's budget, if it is less. A training that ended early closes its ledger first, and
        the certificate says how much of it ran. Of a journal that is closed it holds the head, so
        that ``dpaudit verify --ledger`` takes both. Where the batches of opacus were not drawn as
        declared the guarantee does not hold: the verdict is then *unproven*, and a finding says
        what is proved instead.

        Args:
            delta: δ of the guarantee; the claim's where not given.
            claim: what is stated.
            accountant: whose proof is wanted.
            name: of the training.
            findings: known besides.
            witness: whether the independent checker proves it too, which takes about a second;
                None where that is cheap.

        Raises:
            PlanMismatchError: if what ran is not what was declared, or steps are left, and neither
                the ledger is closed nor its budget used up.
            InputError: if δ is missing or invalid.
        """
        given = self.usual_name if name is None else name
        made = self._certified(Wanted(delta, claim, accountant, given, tuple(findings)))
        return with_witness(made, wanted=witness)

    @abstractmethod
    def _certified(self, wanted: Wanted) -> Certificate:
        """Certify what is wanted."""

    def recorded(
        self,
        wanted: Wanted,
        subject: SubjectRecord,
        own: Sequence[Finding],
        summary: dict[str, Any],
        labels: Sequence[str] = (),
    ) -> Certificate:
        """Certify what the ledger's plan declares, with the record of what ran and what drew it.

        Args:
            wanted: what is asked; nothing is left of the plan, or the ledger is closed, or used up.
            subject: what was trained.
            own: findings of the training, before those that are known besides.
            summary: results.
            labels: of invocations whose every release came from sums that were clipped here.

        Raises:
            InputError: if δ is missing or invalid.
        """
        seeded = self.ledger.seeded  # by a generator, whose seed nobody states
        found = [_found("training-seeded")] if seeded else []
        found += [_found("training-ended-early", sentence=each) for each in self.ledger.left()]
        made = certify(
            self.ledger.plan,
            subject=subject,
            claim=wanted.claim,
            delta=wanted.delta,
            accountant=wanted.accountant,
            findings=(*own, *wanted.findings, *found),
            not_covered=self.not_covered,
            filtered=self.ledger.filtered,
        )
        run: dict[str, Any] = {"summary": summary, "series": {}}
        if seeded:
            drawn = sorted({entry.sampler for entry in self.ledger})
            return made.with_run(run | {"summary": summary | {"sampler": ", ".join(drawn)}}, None)
        if labels:
            run["training"] = {"labels": list(labels)}
        return with_ledger(made, self.ledger, run)
