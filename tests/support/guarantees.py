"""Certificates of a few mechanisms, and the exact ε of a Gaussian one."""

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from dpaudit import (
    AddRemove,
    Claim,
    Invocation,
    Laplace,
    Plan,
    PrivacyUnit,
    RandomizedResponse,
    TrustModel,
    certify,
)
from dpaudit.certificate import SubjectRecord

DELTA = 1e-5


def gaussian_epsilon(mu):
    """ε at 1e-5 of N(μ, 1) against N(0, 1) (Balle and Wang 2018, Theorem 8)."""

    def excess(epsilon):
        tail = np.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)
        return ndtr(mu / 2 - epsilon / mu) - tail - DELTA

    return brentq(excess, 0, 200, xtol=1e-13)


def certificate_of(*mechanisms, **fields):
    given = {
        "sensitivity": 1.0,
        "unit": PrivacyUnit("user"),
        "relation": AddRemove(),
        "trust": TrustModel.CENTRAL,
    }
    plan = Plan.of(*(Invocation(mechanism, **(given | fields)) for mechanism in mechanisms))
    pure = all(isinstance(mechanism, Laplace | RandomizedResponse) for mechanism in mechanisms)
    return certify(plan, subject=SubjectRecord("x"), claim=Claim(9.0, 0.0 if pure else DELTA))
