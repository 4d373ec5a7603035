from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import binom, norm

from dpaudit.auditing.evidence.gdp_estimate import gdp_epsilon
from dpaudit.auditing.evidence.one_run_families import gaussian_family
from dpaudit.auditing.membership.gradient_audit import audit_gradient_canary
from dpaudit.auditing.membership.gradients import GradientCanary
from dpaudit.certificate import AuditRecord, SubjectRecord, certify, load_certificate
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

DELTA = 1e-5


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


def test_the_declared_noise_is_not_refuted_and_nearly_all_of_it_is_found():
    # Sixteen steps of sigma 4 are exactly 1-GDP. More alarms in 6 true claims at error rate 0.05
    # would be chance once in 10^7.
    plan, true = training(4.0), gdp_epsilon(1.0, DELTA)
    records = [
        audit_gradient_canary(plan, delta=DELTA, runs=500, seed=seed, family=gaussian_family())
        for seed in range(6)
    ]
    alarms = sum(record.refuted for record in records)
    above = sum(record.details["family"]["epsilon_lower"] > true for record in records)
    assert max(alarms, above) <= binom.isf(1e-7, 6, 0.05)
    shares = [record.details["family"]["epsilon_lower"] / true for record in records]
    assert np.median(shares) > 0.6
    assert all(record.epsilon_lower <= record.claim_epsilon for record in records)
    assert "below the declared would have been refuted" in records[0].power


def test_subsampled_training_is_bounded_well():
    plan = training(1.0, 0.1, 20)
    record = audit_gradient_canary(plan, delta=DELTA, runs=3000, seed=0)
    assert not record.refuted
    assert record.details["null"] == "the plan's whole curve δ(ε)"
    assert 0.3 < record.epsilon_lower / record.claim_epsilon < 1
    family = record.details["family"]
    assert family["assumption"] == "everything but the amount of noise is as declared"
    assert 0.8 < family["strength"] <= 1
    assert 0.7 < family["epsilon_lower"] / record.claim_epsilon <= 1
    assert record.details["auc"] > 0.6
    assert len(record.details["roc"]["fpr"]) <= 200
    again = AuditRecord.from_dict(json.loads(json.dumps(record.to_dict(), allow_nan=False)))
    assert again == record


def never_sampled(present, size, rng):
    """The canary takes part in every step, whatever the declared rate."""
    return rng.normal(present, 4.0, size=(size, 16))


def noiseless(present, size, rng):
    return present * (rng.random((size, 16)) < 0.5)


@pytest.mark.parametrize(
    "release", [GradientCanary((0.5,) * 16, (4.0,) * 16).simulate(1.6), never_sampled, noiseless]
)
def test_defects_are_refuted(release):
    plan = training(4.0, 0.5)
    record = audit_gradient_canary(
        plan, delta=DELTA, runs=3000, release=release, seed=0, family=gaussian_family()
    )
    assert record.refuted
    assert record.details["pilot_runs"] == 300
    assert record.details["family"]["epsilon_lower"] > record.claim_epsilon


def test_noise_beyond_the_declared_is_not_refuted_and_seen():
    plan = training(4.0)
    more = GradientCanary.of(plan).simulate(0.5)
    record = audit_gradient_canary(
        plan, delta=DELTA, runs=4000, release=more, seed=0, family=gaussian_family()
    )
    assert not record.refuted
    # The truth is 1/2-GDP.
    assert 0.3 < record.details["family"]["strength"] < 0.5


def test_a_looser_claim_is_tested_alone():
    plan = training(4.0)
    record = audit_gradient_canary(
        plan, delta=DELTA, epsilon=20.0, runs=300, seed=0, family=gaussian_family()
    )
    assert record.details["null"] == "(ε, δ) alone"
    assert not record.refuted
    assert record.claim_epsilon == 20.0


def test_workers_do_not_change_the_record():
    plan = training(4.0)
    first, second = (
        audit_gradient_canary(
            plan, delta=DELTA, runs=200, seed=1, workers=workers, family=gaussian_family()
        ).to_dict()
        for workers in (1, 2)
    )
    assert first == second


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


@pytest.mark.parametrize("seed", range(5))
def test_a_correct_plan_of_groups_is_not_refuted(seed):
    """At 1 - 10⁻⁸ for each of 5 audits, false alarms have probability 5·10⁻⁸."""
    plan = grouped([1.0], [1.0])
    record = audit_gradient_canary(plan, delta=1e-2, runs=3000, confidence=1 - 1e-8, seed=seed)
    assert not record.refuted
    assert record.epsilon_lower > 0.5


def test_a_claim_that_is_tighter_than_its_plan_is_tested_too():
    record = audit_gradient_canary(training(4.0), delta=DELTA, epsilon=0.1, runs=20_000, seed=0)
    assert record.refuted
    assert record.epsilon_lower > 0.1
    assert record.details["null"].endswith("and the tighter (ε, δ) of the claim")
    quiet = GradientCanary.of(training(4.0)).simulate(0.1)
    true = gdp_epsilon(0.1, DELTA)
    kept = audit_gradient_canary(
        training(4.0), delta=DELTA, epsilon=1.01 * true, runs=5000, release=quiet, seed=0
    )
    assert not kept.refuted


def test_an_unbounded_family_is_written_as_text(tmp_path):
    record = audit_gradient_canary(training(1.0), delta=0.0, epsilon=1.0, runs=500, seed=0)
    assert record.details["family"]["epsilon_lower"] == "infinity"
    made = certify(training(1.0), subject=SubjectRecord("x"), delta=DELTA).with_audits([record])
    assert load_certificate(made.save(tmp_path / "made.json")) == made


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
        audit_gradient_canary(plan, delta=DELTA)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"delta": 0.0}, "delta is 0; the plan proves no finite epsilon there"),
        ({"runs": 99}, "runs is 99; it must be an integer of at least 100"),
        ({"confidence": 0.0}, "confidence is 0"),
        ({"family": "x"}, "family is 'x'; it must be a CurveFamily"),
        ({"release": lambda present, size, rng: rng.normal(size=(size, 3))}, "they need 16 steps"),
        ({"release": lambda present, size, rng: np.full((size, 16), np.nan)}, "returned NaN"),
    ],
)
def test_bad_options_are_named(options, words):
    with pytest.raises(InputError, match=words):
        audit_gradient_canary(training(4.0), **{"delta": DELTA, "seed": 0, **options})


def test_bad_canaries_are_named():
    with pytest.raises(InputError, match="rates has 1 steps and noises 2"):
        GradientCanary((0.5,), (1.0, 1.0))
    with pytest.raises(InputError, match=r"rate is 1\.5"):
        GradientCanary((1.5,), (1.0,))
    with pytest.raises(InputError, match=r"noise is 0\.0"):
        GradientCanary((0.5,), (0.0,))
