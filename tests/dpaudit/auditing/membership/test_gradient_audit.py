"""Gradient canaries: how often they err, and how near they come to the truth."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit.auditing.evidence.one_run_families import gaussian_family
from dpaudit.auditing.membership import gradient_audit
from dpaudit.auditing.membership.gradient_audit import audit_gradient_canary
from dpaudit.auditing.membership.gradients import GradientCanary
from dpaudit.certificate import AuditRecord, SubjectRecord, certify, load_certificate
from dpaudit.errors import InputError
from dpaudit.mechanisms import Gaussian, GaussianPair, Laplace
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


@pytest.fixture
def silent(monkeypatch):
    """No forecast is made of what would have been found: it takes most of a short audit's time."""
    monkeypatch.setattr(gradient_audit, "_power", lambda design: "")


@pytest.mark.usefixtures("silent")
def test_the_declared_noise_is_not_refuted_and_nearly_all_of_it_is_found():
    # Sixteen steps of sigma 4 are exactly 1-GDP. More alarms in 6 true claims at error rate 0.05
    # would be chance once in 10^7.
    plan, true = training(4.0), GaussianPair(1.0).least_epsilon(DELTA)
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


def test_silence_says_what_would_have_been_found():
    record = audit_gradient_canary(
        training(4.0), delta=DELTA, runs=500, seed=0, family=gaussian_family()
    )
    assert "below the declared would have been refuted" in record.power


def test_subsampled_training_is_bounded_well():
    plan = training(1.0, 0.1, 8)
    record = audit_gradient_canary(plan, delta=DELTA, runs=3000, seed=0)
    assert not record.refuted
    assert record.details["null"] == "the plan's whole curve δ(ε)"
    assert 0.25 < record.epsilon_lower / record.claim_epsilon < 1
    family = record.details["family"]
    assert family["assumption"] == "everything but the amount of noise is as declared"
    assert 0.8 < family["strength"] <= 1
    assert 0.6 < family["epsilon_lower"] / record.claim_epsilon <= 1
    assert record.details["auc"] > 0.55
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


@pytest.mark.usefixtures("silent")
def test_a_looser_claim_is_tested_alone():
    plan = training(4.0)
    record = audit_gradient_canary(
        plan, delta=DELTA, epsilon=20.0, runs=300, seed=0, family=gaussian_family()
    )
    assert record.details["null"] == "(ε, δ) alone"
    assert not record.refuted
    assert record.claim_epsilon == 20.0


@pytest.mark.usefixtures("silent")
def test_workers_and_a_journal_do_not_change_the_record(tmp_path):
    options = {"delta": DELTA, "runs": 200, "seed": 1, "family": gaussian_family()}
    alone = audit_gradient_canary(training(4.0), **options)
    journal = tmp_path / "trials.jsonl"
    for further in ({"workers": 2, "journal": journal}, {"journal": journal}):
        assert audit_gradient_canary(training(4.0), **options, **further) == alone
    with pytest.raises(InputError, match="belongs to another experiment"):
        audit_gradient_canary(training(5.0), **options, journal=journal)


def grouped(*groups, shared=()):
    """A plan of disjoint groups of units, each with its own standard deviations of noise."""

    def use(sigma, group):
        return Invocation(
            Gaussian(sigma), 1, PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL, group=group
        )

    uses = [use(sigma, f"group {n}") for n, noises in enumerate(groups) for sigma in noises]
    return Plan.of(*uses, *(use(sigma, None) for sigma in shared))


@pytest.mark.parametrize("seed", range(2))
def test_a_correct_plan_of_groups_is_not_refuted(seed):
    """At 1 - 10⁻⁸ for each of 2 audits, false alarms have probability 2·10⁻⁸."""
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
    true = GaussianPair(0.1).least_epsilon(DELTA)
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
