"""The certificate of a training whose noise its ledger drew: what ran, and the journal's head.

Whatever library trains, ``dpaudit verify --ledger`` holds such a certificate against its journal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dpaudit.accounting import AccountantName
from dpaudit.base.finding_table import FindingTable
from dpaudit.certificate import Certificate, Claim, FilterRecord, Finding, SubjectRecord, certify
from dpaudit.certificate.findings import FLOAT_NOISE, is_drawn_exactly, run_findings
from dpaudit.ledger import Ledger

_found = FindingTable(__name__)


def certify_training(
    ledger: Ledger,
    subject: SubjectRecord,
    *,
    delta: float | None,
    claim: Claim | None,
    accountant: AccountantName | str,
    findings: Sequence[Finding],
    not_covered: Sequence[str],
    summary: dict[str, Any],
    labels: Sequence[str] = (),
) -> Certificate:
    """Certify what a ledger's plan declares, with the record of what ran.

    Args:
        ledger: of the training; nothing is left of its plan, or it is closed, or used up.
        subject: what was trained.
        delta: δ of the guarantee; the claim's where not given.
        claim: what is stated.
        accountant: whose proof is wanted.
        findings: of the training.
        not_covered: sentences.
        summary: results.
        labels: of invocations whose every release came from sums that were clipped here.

    Raises:
        InputError: if δ is missing or invalid.
    """
    record = None if ledger.seeded else _record(ledger)
    own = [] if record is not None else [_found("training-seeded")]
    own += ended_early(ledger)
    made = certify(
        ledger.plan,
        subject=subject,
        claim=claim,
        delta=delta,
        accountant=accountant,
        findings=(*findings, *own, *(() if record is None else run_findings(record))),
        not_covered=not_covered,
        filtered=FilterRecord.of(ledger.budget, Counter(entry.invocation.at for entry in ledger)),
    )
    run: dict[str, Any] = {"summary": summary, "series": {}}
    if record is not None:
        run["ledger"] = record
        if labels:
            run["training"] = {"labels": list(labels)}
        if is_drawn_exactly(run):
            kept = tuple(each for each in made.findings if each.rule != FLOAT_NOISE)
            made = replace(made, findings=kept)
    return made.with_run(run, None)


def ended_early(ledger: Ledger) -> list[Finding]:
    """Return what ran less often than declared."""
    return [_found("training-ended-early", sentence=each) for each in ledger.left()]


def _record(ledger: Ledger) -> dict[str, Any]:
    """What the certificate says of the ledger; of its journal, if that is closed."""
    journal = ledger.journal
    outside = Counter(entry.sampler for entry in ledger if entry.external)
    record = {
        "entries": len(ledger),
        "samplers": dict(Counter(entry.sampler for entry in ledger)),
        "seeded": False,
        **({"external": dict(outside)} if outside else {}),
    }
    if journal is None or not ledger.closed:
        return record
    facts = {"journal": journal.identifier, "lines": journal.lines, "head": journal.head}
    return record | facts | {"durability": str(journal.durability)}
