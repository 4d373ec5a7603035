"""Certificates to be judged by checklists, and their answers."""

from functools import cache

from dpaudit import (
    AddRemove,
    AuditRecord,
    Finding,
    Invocation,
    Laplace,
    Plan,
    PrivacyUnit,
    Severity,
    TrustModel,
    certify,
)
from dpaudit.certificate import SubjectRecord
from dpaudit.reporting.checklists import checklists


def answers(certificate):
    return {item.rule: item for checklist in checklists(certificate) for item in checklist.items}


def status(certificate, rule):
    return answers(certificate)[rule].status


def made(mechanism, *, claim=None, delta=None, name="a:B", findings=(), **fields):
    facts = {
        "sensitivity": 1.0,
        "unit": PrivacyUnit("user"),
        "relation": AddRemove(),
        "trust": TrustModel.CENTRAL,
    }
    plan = Plan.of(Invocation(mechanism, **(facts | fields)))
    return certify(plan, subject=SubjectRecord(name), claim=claim, delta=delta, findings=findings)


@cache
def simple():
    return made(Laplace(1.0))


def attack(**fields):
    facts = {
        "refuted": False,
        "method": "m",
        "claim_epsilon": 1.0,
        "delta": 0.0,
        "epsilon_lower": 0.1,
        "confidence": 0.99,
        "runs": 100,
        "event": None,
        "seed": 1,
        "pair": None,
    }
    return AuditRecord(**(facts | fields))


def finding(rule, severity=Severity.WARNING):
    return Finding(rule, severity, "Something is wrong.")
