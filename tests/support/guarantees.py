"""Certificates of a few mechanisms, and the exact ε of a Gaussian one."""

from accounting_builders import use

from dpaudit import (
    Claim,
    Laplace,
    Plan,
    RandomizedResponse,
    certify,
)
from dpaudit.certificate import SubjectRecord

DELTA = 1e-5


def certificate_of(*mechanisms, **fields):
    given = {"unit": "user"} | fields
    plan = Plan.of(*(use(mechanism, **given) for mechanism in mechanisms))
    pure = all(isinstance(mechanism, Laplace | RandomizedResponse) for mechanism in mechanisms)
    return certify(plan, subject=SubjectRecord("x"), claim=Claim(9.0, 0.0 if pure else DELTA))
