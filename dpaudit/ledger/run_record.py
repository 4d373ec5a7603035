"""The record of a run in its certificate: how often its ledger released, and by which samplers.

Trainings and searches that call a ledger from Python make it here; runs by a command have the same
record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dpaudit.base.errors import InputError
from dpaudit.certificate import Certificate
from dpaudit.certificate.findings import FLOAT_NOISE, is_drawn_exactly, run_findings
from dpaudit.ledger.ledger import Ledger


def record_of(ledger: Ledger) -> dict[str, Any]:
    """What a certificate says of the ledger; of its journal, if that is closed."""
    journal = ledger.journal
    outside = Counter(entry.sampler for entry in ledger if entry.external)
    record = {
        "entries": len(ledger),
        "samplers": dict(Counter(entry.sampler for entry in ledger)),
        "seeded": ledger.seeded,
        **({"external": dict(outside)} if outside else {}),
    }
    if journal is None or not ledger.closed:
        return record
    facts = {"journal": journal.identifier, "lines": journal.lines, "head": journal.head}
    return record | facts | {"durability": str(journal.durability)}


def with_ledger(
    certificate: Certificate, ledger: Ledger, run: Mapping[str, Any], seed: int | None = None
) -> Certificate:
    """The certificate with the record of its run, and the findings that follow from it.

    Args:
        certificate: of the ledger's plan.
        ledger: of the run.
        run: what else is said of it, such as its ``summary``.
        seed: of the noise, if it was stated.

    Raises:
        InputError: if the noise came from a generator whose seed is not given, or the other way.
    """
    if ledger.seeded is (seed is None):
        raise InputError(f"seed is {seed}; it must be that of the ledger's noise, if it has one.")
    return with_record(certificate, record_of(ledger), run, seed)


def with_record(
    certificate: Certificate, record: Mapping[str, Any], run: Mapping[str, Any], seed: int | None
) -> Certificate:
    """As :func:`with_ledger`, of what :func:`record_of` said of the ledger."""
    exact = is_drawn_exactly({"ledger": record})
    kept = (each for each in certificate.findings if not (exact and each.rule == FLOAT_NOISE))
    made = replace(certificate, findings=(*kept, *run_findings(record)))
    return made.with_run({"series": {}, **run, "ledger": record}, seed)
