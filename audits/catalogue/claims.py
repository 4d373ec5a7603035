"""What the rows share: the stated claims, their curves and the scales that belong to them."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit import (
    AddRemove,
    Claim,
    Gaussian,
    Invocation,
    Plan,
    PoissonSampling,
    PrivacyUnit,
    Relation,
    TrustModel,
)
from dpaudit.accounting import guarantee, privacy_curve
from dpaudit.mechanisms import DominatingPair, GaussianPair

DELTA = 1e-5
SIGMA = Gaussian.calibrated(epsilon=1.0, delta=DELTA, sensitivity=1.0).sigma
PURE = Claim(1.0)
APPROXIMATE = Claim(1.0, DELTA)
ROW = PrivacyUnit("row")
Curve = Callable[[ArrayLike], NDArray[np.float64]]


def true_epsilon(truth: DominatingPair, delta: float) -> float:
    """The least ε with δ(ε) ≤ δ, rounded down; infinite beyond 1000."""
    low, high = 0.0, 1.0
    while float(truth.delta(high)) > delta:
        low, high = high, 2 * high
        if high > 1000:
            return math.inf
    if float(truth.delta(0.0)) <= delta:
        return 0.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if float(truth.delta(middle)) > delta else (low, middle)
    return low


def epsilon_of(pair: DominatingPair, delta: float = DELTA) -> float:
    """The ε of a pair at δ, rounded up."""
    return true_epsilon(pair, delta) * (1 + 1e-9)


def gaussian_epsilon(mu: float, delta: float = DELTA) -> float:
    """The ε at δ of N(μ, 1) against N(0, 1)."""
    return true_epsilon(GaussianPair(mu), delta)


def sampled_plan(
    sigma: float, rate: float, steps: int = 1, relation: Relation | None = None
) -> Plan:
    """Gaussian steps of sensitivity 1, each on a Poisson sample."""
    return Plan.of(
        Invocation(
            Gaussian(sigma),
            1.0,
            ROW,
            relation or AddRemove(),
            TrustModel.CENTRAL,
            count=steps,
            sampling=PoissonSampling(rate),
        )
    )


def curve_of(plan: Plan) -> Curve:
    """The privacy curve of a plan, computed when it is first asked for."""
    return partial(_curve, plan)


def _curve(plan: Plan, epsilon: ArrayLike) -> NDArray[np.float64]:
    return _accountant(plan)(epsilon)


@cache
def _accountant(plan: Plan) -> Curve:
    return privacy_curve(plan)


@cache
def claimed(plan: Plan) -> Claim:
    """What the accountant proves of a plan, as a claim."""
    return Claim(guarantee(plan, DELTA).epsilon, DELTA)
