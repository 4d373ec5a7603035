"""One row of the catalogue: a mechanism or a sampler, what is claimed of it, and what is true.

Beside it stand the stated claims that rows share, their curves and the scales that belong to them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit import (
    AddRemove,
    Gaussian,
    Invocation,
    Plan,
    PoissonSampling,
    PrivacyUnit,
    Relation,
    TrustModel,
)
from dpaudit.accounting import guarantee, privacy_curve
from dpaudit.auditing.distinguishing.scores import Score
from dpaudit.auditing.noise.conformance import FloatReport, float_findings
from dpaudit.base.errors import InputError
from dpaudit.base.fields import Checked, Natural
from dpaudit.certificate import AuditRecord, Claim
from dpaudit.mechanisms import DominatingPair, GaussianPair
from dpaudit.project import AuditPair

Floats = NDArray[np.float64]
Curve = Callable[[ArrayLike], Floats]
Release = Callable[[Any, int, np.random.Generator], Any]
"""From data, how many releases, and randomness, to as many outputs."""


def family(release: Callable[..., Any]) -> Callable[..., Any]:
    """Of a release with parameters before its data: from parameters to the release."""
    return partial(partial, release)


@dataclass(frozen=True)
class Entry(Checked):
    """One mechanism, what is claimed of it, and what is true.

    Attributes:
        name: what it is, and for wrong ones the mistake.
        right: whether the claim holds.
        claim: what is stated.
        x: one of two neighbours.
        x_prime: the other.
        true_epsilon: of a wrong entry the true ε at the claim's δ for this pair, or what it tends
            to with more queries or larger data; of a right one what is proved.
        runs: the budget on each side, within which a wrong entry must be refuted.
        release: ``release(data, size, rng)``, vectorised.
        curve: the claimed δ(ε), where more is claimed than one point.
        score: of the attack; without one it is learned.
        exact: proves or refutes the claim without samples; in place of both.
        rho: claimed and true ρ, where the claim is one of zCDP.
        rare: whether the event is too rare for the few runs on which a sequential test lays out
            its bets, so that a pilot must choose it.
    """

    name: str
    right: bool
    claim: Claim
    x: Any
    x_prime: Any
    true_epsilon: float
    runs: Natural = 0
    release: Release | None = None
    curve: Curve | None = None
    score: Score | None = None
    exact: Callable[[], AuditRecord] | None = None
    rho: tuple[float, float] | None = None
    rare: bool = False
    answer: Callable[[Any, np.random.Generator], Any] | None = None
    limit: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if sum(each is not None for each in (self.release, self.answer, self.exact)) != 1:
            raise InputError(
                f"entry {self.name!r} needs one of a release, an answer and an exact audit."
            )
        stated, true = self.rho or (self.claim.epsilon, self.true_epsilon)
        if self.right != (true <= stated * (1 + 1e-9)):
            raise InputError(
                f"entry {self.name!r} states {stated:g} where {true:g} is true; that does not go "
                f"with right = {self.right}."
            )

    @property
    def pair(self) -> AuditPair:
        """The two neighbours that are attacked."""
        return AuditPair(self.x, self.x_prime, self.name)


@dataclass(frozen=True)
class FloatEntry:
    """One sampler.

    Attributes:
        name: what it is.
        leaks: whether a float finding is due.
        claim: of one release, for the neighbours 0 and 1.
        draws: budget on each side, within which a leak must be found.
        release: the sampler.
    """

    name: str
    leaks: bool
    claim: Claim
    draws: int
    release: Release

    def audit(self, seed: int, draws: int | None = None) -> FloatReport:
        """Look for findings, with at most ``draws`` on each side."""
        return float_findings(
            self.release,
            epsilon=self.claim.epsilon,
            delta=self.claim.delta,
            draws=self.draws if draws is None else min(draws, self.draws),
            seed=seed,
        )


DELTA = 1e-5
SIGMA = Gaussian.calibrated(epsilon=1.0, delta=DELTA, sensitivity=1.0).sigma
PURE = Claim(1.0)
APPROXIMATE = Claim(1.0, DELTA)
ROW = PrivacyUnit("row")


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


def _curve(plan: Plan, epsilon: ArrayLike) -> Floats:
    return _accountant(plan)(epsilon)


@cache
def _accountant(plan: Plan) -> Curve:
    return privacy_curve(plan)


@cache
def claim_of(plan: Plan) -> Claim:
    """What the accountant proves of a plan, as a claim."""
    return Claim(guarantee(plan, DELTA).epsilon, DELTA)
