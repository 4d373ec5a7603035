"""The likelihood ratio of projected gradients, and the plans that it is for."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm
from score_conformance import ScoreConformance

from dpaudit import AuditPair, Claim
from dpaudit.auditing import GradientCanary
from dpaudit.errors import InputError
from dpaudit.mechanisms import Gaussian, Laplace
from dpaudit.plan import (
    AddRemove,
    FixedSizeSampling,
    Invocation,
    Plan,
    PoissonSampling,
    PrivacyUnit,
    ReplaceOne,
    TrustModel,
)


def training(sigma=1.0, rate=None, steps=16, mechanism=None, relation=None, sampling=None):
    if rate is not None:
        sampling = PoissonSampling(rate)
    return Plan.of(
        Invocation(
            mechanism or Gaussian(sigma),
            1,
            PrivacyUnit("row"),
            relation or AddRemove(),
            TrustModel.CENTRAL,
            count=steps,
            sampling=sampling,
        )
    )


def test_score_is_the_log_ratio_of_the_two_densities():
    canary = GradientCanary((0.1, 1.0, 0.5), (1.0, 2.0, 0.3))
    outputs = np.random.default_rng(0).normal(size=(20, 3))
    expected = np.zeros(20)
    for step, (rate, noise) in enumerate(zip(canary.rates, canary.noises, strict=True)):
        shown = outputs[:, step]
        there = rate * norm.pdf(shown, 1, noise) + (1 - rate) * norm.pdf(shown, 0, noise)
        expected += np.log(there / norm.pdf(shown, 0, noise))
    np.testing.assert_allclose(canary(outputs), expected, rtol=1e-9)
    assert np.isfinite(canary(np.array([[1e6, -1e6, 1e6]]))).all()


def test_simulation_has_the_declared_moments():
    canary = GradientCanary((0.25, 1.0), (1.0, 2.0))
    rng = np.random.default_rng(0)
    without, present = (canary.simulate()(data, 100_000, rng) for data in (0.0, 1.0))
    # Within 5.5 standard errors of the mean: about 10^-7 for all four.
    errors = 5.5 * np.array([1.1, 2.0]) / np.sqrt(100_000)
    assert (np.abs(without.mean(axis=0)) < errors).all()
    assert (np.abs(present.mean(axis=0) - [0.25, 1.0]) < errors).all()
    assert canary.simulate(4.0)(0.0, 10_000, rng).std() < 0.5


def test_a_plan_gives_its_steps():
    plan = Plan.of(
        *training(2.0, 0.1, 3).invocations,
        Invocation(
            Gaussian(3.0), 1.5, PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL, at="last"
        ),
    )
    canary = GradientCanary.of(plan)
    assert canary.rates == (0.1, 0.1, 0.1, 1.0)
    assert canary.noises == (2.0, 2.0, 2.0, 2.0)


def grouped(*groups, shared=()):
    """A plan of disjoint groups of units, each with its own standard deviations of noise."""

    def use(sigma, group):
        return Invocation(
            Gaussian(sigma), 1, PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL, group=group
        )

    uses = [use(sigma, f"group {n}") for n, noises in enumerate(groups) for sigma in noises]
    return Plan.of(*uses, *(use(sigma, None) for sigma in shared))


def test_a_canary_belongs_to_one_group():
    assert GradientCanary.of(grouped([1.0], [1.0])).noises == (1.0,)
    assert GradientCanary.of(grouped([2.0, 2.0], [1.0])).noises == (1.0,)
    assert GradientCanary.of(grouped([2.0] * 5, [1.0])).noises == (2.0,) * 5
    assert GradientCanary.of(grouped([3.0], [2.0], shared=[1.0])).noises == (2.0, 1.0)


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (training(mechanism=Laplace(1.0)), "is not Gaussian noise on gradients"),
        (training(relation=ReplaceOne()), "relation replace-one"),
        (training(sampling=FixedSizeSampling(1, 10)), "fixed-size sampling"),
        ("x", "plan is 'x'; it must be a Plan"),
    ],
)
def test_other_plans_are_refused(plan, words):
    with pytest.raises(InputError, match=words):
        GradientCanary.of(plan)


def test_bad_canaries_are_named():
    with pytest.raises(InputError, match="rates has 1 steps and noises 2"):
        GradientCanary((0.5,), (1.0, 1.0))
    with pytest.raises(InputError, match=r"rates is 1\.5"):
        GradientCanary((1.5,), (1.0,))
    with pytest.raises(InputError, match=r"noises is 0\.0"):
        GradientCanary((0.5,), (0.0,))
    with pytest.raises(InputError, match=r"transcripts have shape \(4, 2\); they need 1 steps"):
        GradientCanary((0.5,), (1.0,))(np.zeros((4, 2)))


class TestConforms(ScoreConformance):
    """Sixteen steps of sigma 4 are exactly 1-GDP, whose ε at δ = 0.1 is 1.16."""

    score = GradientCanary((1.0,) * 16, (4.0,) * 16)
    release = GradientCanary((1.0,) * 16, (4.0,) * 16).simulate()
    pair = AuditPair(1.0, 0.0)
    holds = Claim(1.2, 0.1)
    broken = Claim(0.4, 0.1)
