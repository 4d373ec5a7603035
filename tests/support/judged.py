"""Certificates to be judged by checklists, and their answers."""

from functools import cache

from accounting_builders import use

from dpaudit import (
    Finding,
    Laplace,
    Plan,
    Severity,
    certify,
)
from dpaudit.certificate import SubjectRecord
from dpaudit.reporting.checklists import checklists


def answers(certificate):
    return {item.rule: item for checklist in checklists(certificate) for item in checklist.items}


def status(certificate, rule):
    return answers(certificate)[rule].status


def made(mechanism, *, claim=None, delta=None, name="a:B", findings=(), **fields):
    plan = Plan.of(use(mechanism, **({"unit": "user"} | fields)))
    return certify(plan, subject=SubjectRecord(name), claim=claim, delta=delta, findings=findings)


@cache
def simple():
    return made(Laplace(1.0))


def finding(rule, severity=Severity.WARNING):
    return Finding(rule, severity, "Something is wrong.")
