"""Gaussian noise: calibration, norms, composition and subsampling.

Likelihood ratios are known in closed form here, so that each row has an attack that no auditor can
beat. Wrong rows take the noise of one release for many, or of one norm for another.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.random import Generator

from audits.catalogue.entry import (
    APPROXIMATE,
    DELTA,
    ROW,
    SIGMA,
    Entry,
    Floats,
    claim_of,
    curve_of,
    epsilon_of,
    family,
    gaussian_epsilon,
    sampled_plan,
)
from dpaudit import (
    AddRemove,
    Claim,
    DiscreteGaussian,
    Gaussian,
    Invocation,
    Plan,
    TrustModel,
)
from dpaudit.auditing.distinguishing.scores import FixedScore, Identity, LinearScore
from dpaudit.certificate import AuditRecord
from dpaudit.mechanisms import GaussianPair
from dpaudit.plan import MixtureSampling

CURVE = GaussianPair(1 / SIGMA).delta
CLASSIC = math.sqrt(2 * math.log(1.25 / DELTA)) / 10
NEVER, STEPS = sampled_plan(1.0, 0.1), sampled_plan(1.0, 0.1, steps=5)
NEVER_STATED = Claim(1.6845, DELTA)
DISCRETE = DiscreteGaussian(4.0)
SHARES, RATES = (0.1, 1.0), (0.5, 0.5)


def _of_shares(sigma: float) -> Plan:
    drawn = MixtureSampling(SHARES, RATES)
    return Plan.of(
        Invocation(Gaussian(sigma), 1.0, ROW, AddRemove(), TrustModel.CENTRAL, sampling=drawn)
    )


MIXED, CALM = _of_shares(0.5), _of_shares(4.0)
MEAN = GaussianPair(1.1)
"""Of the mean share, 0.55, at σ = 0.5."""


@family
def noisy(
    sigma: float, value: Any, size: int, rng: Generator, *, steps: int | None = None
) -> Floats:
    """The value plus normal noise, once or ``steps`` times."""
    shape = (size, steps) if steps else (size, *np.shape(value))
    return np.asarray(value) + rng.normal(scale=sigma, size=shape)


@family
def sampled(rate: float, steps: int, data: Any, size: int, rng: Generator) -> Floats:
    """Gradients of one record (norm = data) on Poisson samples, σ = 1."""
    taken = rng.random((size, steps)) < rate
    return data * taken + rng.normal(size=(size, steps))


@family
def shared(sigma: float, data: Any, size: int, rng: Generator) -> Floats:
    """A random share of one record's part."""
    return data * rng.choice(SHARES, size, p=RATES) + rng.normal(scale=sigma, size=size)


def _mixture(outputs: Floats) -> Floats:
    """Log ratio of 0.9 N(0, 1) + 0.1 N(1, 1) to N(0, 1), summed over steps."""
    return np.asarray(np.log(0.9 + 0.1 * np.exp(outputs - 0.5)).sum(axis=1))


def _classic() -> AuditRecord:
    """N(1/σ, 1) against N(0, 1), whose δ(ε) is known."""
    claim, truth = Claim(10.0, DELTA), GaussianPair(1 / CLASSIC)
    return AuditRecord(
        refuted=float(truth.delta(claim.epsilon)) > claim.delta * (1 + 1e-9),
        method="closed form of the privacy loss",
        claim_epsilon=claim.epsilon,
        delta=claim.delta,
        epsilon_lower=gaussian_epsilon(1 / CLASSIC),
        confidence=None,
        runs=0,
        event="all outputs where p > e^ε q",
        seed=None,
        pair={"x": 0.0, "x_prime": 1.0},
    )


WRONG = (
    Entry("Gaussian, half of σ", False, APPROXIMATE, 0.0, 1.0, gaussian_epsilon(2 / SIGMA), 10_000,
          noisy(SIGMA / 2), CURVE, Identity()),
    Entry("Gaussian, add-remove σ for replace-one data", False, APPROXIMATE, -1.0, 1.0,
          gaussian_epsilon(2 / SIGMA), 10_000, noisy(SIGMA), CURVE, Identity()),
    Entry("Gaussian, L∞ sensitivity in 16 dimensions", False, APPROXIMATE, [0.0] * 16, [1.0] * 16,
          gaussian_epsilon(4 / SIGMA), 5_000, noisy(SIGMA), CURVE, LinearScore((-1.0,) * 16)),
    Entry("classic Gaussian calibration at ε = 10", False, Claim(10.0, DELTA), 0.0, 1.0,
          gaussian_epsilon(1 / CLASSIC), exact=_classic),
    Entry("10 rounds accounted as 1", False, APPROXIMATE, 0.0, 1.0,
          gaussian_epsilon(math.sqrt(10) / SIGMA), 5_000, noisy(SIGMA, steps=10), CURVE,
          LinearScore((-1.0,) * 10)),
    Entry("subsampled Gaussian that never samples", False, NEVER_STATED, 1.0, 0.0,
          gaussian_epsilon(1.0), 3_000, noisy(1.0), curve_of(NEVER), Identity()),
    Entry("random shares, accounted by the mean one", False, Claim(epsilon_of(MEAN), DELTA), 1.0,
          0.0, claim_of(MIXED).epsilon, 20_000, shared(0.5),
          MEAN.delta, Identity()),
)  # fmt: skip

RIGHT = (
    Entry("analytic Gaussian", True, APPROXIMATE, 0.0, 1.0, 1.0, 10_000, noisy(SIGMA), CURVE,
          Identity()),
    Entry("Gaussian, vector", True, APPROXIMATE, [0.0] * 4, [0.5] * 4, 1.0, 10_000, noisy(SIGMA),
          CURVE, LinearScore((-1.0,) * 4)),
    Entry("discrete Gaussian", True, Claim(epsilon_of(DISCRETE.pair(1)), DELTA), 0, 1,
          epsilon_of(DISCRETE.pair(1)), 10_000, DISCRETE.release_many, DISCRETE.pair(1).delta,
          Identity()),
    Entry("subsampled Gaussian, remove", True, claim_of(NEVER), 1.0, 0.0, claim_of(NEVER).epsilon,
          10_000, sampled(0.1, 1), curve_of(NEVER), Identity()),
    Entry("subsampled Gaussian, add", True, claim_of(NEVER), 0.0, 1.0, claim_of(NEVER).epsilon,
          10_000, sampled(0.1, 1), curve_of(NEVER), Identity()),
    Entry("5-step DP-SGD", True, claim_of(STEPS), 1.0, 0.0, claim_of(STEPS).epsilon, 10_000,
          sampled(0.1, 5), curve_of(STEPS), FixedScore(_mixture)),
    Entry("random shares", True, claim_of(CALM), 1.0, 0.0, claim_of(CALM).epsilon, 10_000,
          shared(4.0), None, Identity()),
)  # fmt: skip
