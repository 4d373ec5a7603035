"""Premises that a certificate only assumes, as warnings that say who has to confirm them.

They follow from its assumptions, and no file holds them: whoever shows a certificate, in Python,
on a terminal or in a report, takes :attr:`Certificate.all_findings
<dpaudit.certificate.Certificate.all_findings>`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from dpaudit.base.finding_table import Finding, FindingTable
from dpaudit.certificate.assumptions import SEEDED, Assumption, Premise, Standing
from dpaudit.plan import PrivacyUnit

_found = FindingTable(__name__)

ONLY_ASSUMED = "only-assumed"
"""Rule of these warnings."""

DECISIONS = {
    Premise.SENSITIVITY: (
        "Have the author confirm that one {unit} moves no value by more than its declared "
        "sensitivity."
    ),
    Premise.OWN_VALUES: (
        "Have the author confirm that the value of each {unit} follows from the data of "
        "that {unit} alone."
    ),
    Premise.TOUCHES: "Have the author confirm that no {unit} takes part more often than declared.",
    Premise.UNITS: (
        "Have the owner of the data confirm that each row holds data of no {unit} other than "
        "the one that it names."
    ),
    Premise.PERSONS: (
        "Have the owner of the data confirm that each {unit} has one name, and that no two "
        "share one."
    ),
    Premise.CONTROL_FLOW: (
        "Have the author confirm that what the code does follows from public facts and "
        "releases alone."
    ),
    Premise.RESULTS: (
        "Have the author confirm that what the code returns follows from releases alone."
    ),
    Premise.NOISE: (
        "Have the author confirm that the noise has the declared law, is drawn afresh, and "
        "stays secret."
    ),
    Premise.SAMPLING: (
        "Have the author confirm that units are sampled as declared, and that nobody learns which."
    ),
    Premise.ONE_DOOR: "Have the author confirm that data leave the code through the ledger alone.",
    Premise.LAWS: "Have the law of the mechanism proved by somebody else than its author.",
    Premise.PUBLIC_FACTS: (
        "Have the author confirm that plan, schema and bounds were written without these data."
    ),
}
"""Who has to confirm what; ``unit`` is that of the plan."""

_SEVERAL = (
    "Put the code to the test (dpaudit run rehearses it), or have its author confirm each of these "
    "premises."
)
_MOST_DECISIONS = 3
"""Premises of one warning that are decided one by one."""


def only_assumed(assumptions: Sequence[Assumption], unit: PrivacyUnit) -> Iterator[Finding]:
    """Yield a warning for each reason why premises are neither enforced nor tested."""
    why: dict[str, list[Premise]] = {}
    for each in assumptions:
        if each.alone.rank == Standing.ASSUMED.rank:
            why.setdefault(each.evidence, []).append(each.premise)
    for evidence, premises in why.items():
        found = _found(ONLY_ASSUMED, premises="; ".join(premises), evidence=evidence)
        yield replace(found, remedy=_decision(premises, evidence, unit))


def _decision(premises: Sequence[Premise], evidence: str, unit: PrivacyUnit) -> str:
    """Who has to confirm what, or what to do where nobody can confirm it."""
    if evidence in SEEDED.values():
        return "Run it without a seed."
    if len(premises) > _MOST_DECISIONS:
        return _SEVERAL
    return " ".join(DECISIONS[each].format(unit=unit) for each in premises)
