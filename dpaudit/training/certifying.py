"""What all trainings through a ledger share: their cost so far, and the certificate.

Whatever library trains, ``dpaudit verify --ledger`` holds such a certificate against its journal,
unless a seed makes it an experiment, of which a certificate holds no journal.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from dpaudit.accounting import AccountantName, compose
from dpaudit.base import validate
from dpaudit.base.finding_table import FindingTable
from dpaudit.certificate import Certificate, Claim, Finding, SubjectRecord, certify
from dpaudit.certificate.checking import with_witness
from dpaudit.ledger import Entry, Ledger, with_ledger
from dpaudit.mechanisms import Gaussian
from dpaudit.plan import Invocation, TrustModel
from dpaudit.training.declared import unobserved

_found = FindingTable(__name__)


OF_OTHERS = frozenset({"resumed-steps-not-observed", "steps-before"})
"""Findings that there are steps in the ledger which this training did not take."""

_OPACUS = "opacus "
"""How the sampler of a step begins that opacus took."""


def not_observed(label: str, steps: int, declared: Iterable[Invocation]) -> Finding:
    """Return the finding on steps of a label whose batches opacus drew where nobody saw them."""
    told = _found("resumed-steps-not-observed", label, earlier=steps)
    return replace(told, severity=unobserved(declared))


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
    observes_opacus: ClassVar[bool] = False
    """Whether its own findings speak of the steps that opacus took at its labels."""

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
        *,
        declared: Collection[Invocation] = (),
    ) -> Certificate:
        """Certify what the ledger's plan declares, with the record of what ran and what drew it.

        Args:
            wanted: what is asked; nothing is left of the plan, or the ledger is closed, or used up.
            subject: what was trained.
            own: findings of the training, before those that are known besides.
            summary: results.
            labels: of invocations whose every release came from sums that were clipped here.
            declared: the invocations of the training; the findings of its own speak of their steps.

        Raises:
            InputError: if δ is missing or invalid.
        """
        seeded = self.ledger.seeded  # by a generator, whose seed nobody states
        found = [_found("training-seeded")] if seeded else []
        found += [_found("training-ended-early", sentence=each) for each in self.ledger.left()]
        found += self._of_others({each.at for each in declared})
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

    def _of_others(self, own: Collection[str]) -> Iterator[Finding]:
        """Tell of steps in the ledger that the findings of this training do not speak of.

        Two labels, of which each is trained by itself, would else pass for one training.
        """
        outside = dict[str, list[Invocation]]()
        others = dict[str, list[Invocation]]()
        for entry in self.ledger:
            at = entry.invocation.at
            label = at.partition(", ")[0]  # of its phases or epochs
            if entry.sampler.startswith(_OPACUS):
                if not (self.observes_opacus and at in own):
                    outside.setdefault(label, []).append(entry.invocation)
            elif at not in own and _is_on_batches(entry):
                others.setdefault(label, []).append(entry.invocation)
        for label, each in outside.items():
            yield not_observed(label, len(each), each)
        for label, each in others.items():
            yield _found("steps-elsewhere", label, earlier=len(each))


def _is_on_batches(entry: Entry) -> bool:
    """Tell whether a training took it on a batch: a bounded query is none, nor is an answer."""
    each = entry.invocation
    if each.contribution is not None or each.trust is not TrustModel.CENTRAL:
        return False
    named = entry.unit is not None and entry.unit.startswith("batch ")
    return isinstance(each.mechanism, Gaussian) and (each.sampling is not None or named)
