"""Audits of one training: how often they err, and what they find."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import binom
from shifted_scores import DELTA, Shifted, gaussian_plan

from dpaudit.auditing import Execution
from dpaudit.base.errors import InputError
from dpaudit.certificate import AuditRecord
from dpaudit.mechanisms import GaussianPair
from dpaudit.training.membership import audit_one_run, audit_scores


def digits_model(mask, rng):
    """A forest that learns 1000 digits and mislabelled canaries; share of votes for the label."""
    from sklearn.datasets import load_digits
    from sklearn.ensemble import ExtraTreesClassifier

    images, labels = load_digits(return_X_y=True)
    labels[: mask.size] = (labels[: mask.size] + 1 + np.arange(mask.size) % 9) % 10
    kept = np.append(mask, np.ones(1000, dtype=bool))
    model = ExtraTreesClassifier(20, random_state=int(rng.integers(2**31)))
    model.fit(images[: kept.size][kept], labels[: kept.size][kept])
    votes = model.predict_proba(images[: mask.size])
    return votes[np.arange(mask.size), labels[: mask.size]]


@pytest.mark.parametrize("first", [True, False])
def test_equal_scores_in_stored_order_show_nothing(first):
    # Members stored together and all scores equal: a stable sort would guess every one right.
    members = (np.arange(1000) < 500) == first
    record = audit_scores(np.zeros(1000), members, epsilon=0.0, seed=0, confidence=1 - 1e-7)
    assert not record.refuted
    assert record.epsilon_lower == 0.0


def test_false_alarms_of_one_run_audits_are_rare():
    # More alarms in 20 true claims at error rate 0.1 would be chance once in 10^7.
    plan = gaussian_plan(1.0)
    records = [
        audit_one_run(
            Shifted(1.0), 300, plan=plan, delta=DELTA, seed=seed, confidence=0.9, guesses=(20, 20)
        )
        for seed in range(20)
    ]
    assert sum(record.refuted for record in records) <= binom.isf(1e-7, 20, 0.1)
    true = GaussianPair(1.0).least_epsilon(DELTA)
    assert all(record.claim_epsilon == pytest.approx(true, rel=1e-6) for record in records)
    above = [record.details["family"]["epsilon_lower"] > true for record in records]
    assert sum(above) <= binom.isf(1e-7, 20, 0.1)
    assert all(record.epsilon_lower <= true for record in records)
    assert np.median([record.details["family"]["epsilon_lower"] for record in records]) > 1


def test_a_curve_is_refuted_where_the_point_alone_is_not():
    plan = gaussian_plan(2.0)
    epsilon = GaussianPair(0.5).least_epsilon(DELTA)
    by_curve = audit_one_run(Shifted(2.0), 400, plan=plan, delta=DELTA, seed=3)
    by_point = audit_one_run(Shifted(1.0), 400, epsilon=epsilon, delta=DELTA, seed=3)
    assert by_curve.refuted
    assert by_curve.details["null"] == "the plan's whole curve δ(ε)"
    assert not by_point.refuted
    assert "would have refuted" in by_point.power
    assert by_point.epsilon_lower <= epsilon


def test_what_holds_of_independent_canaries_alone_refutes_nothing():
    record = audit_one_run(Shifted(1.0), 1000, epsilon=2.5, delta=DELTA, seed=0)
    beside = record.details["if_independent"]
    assert beside["epsilon_lower"] > 2.5 > record.epsilon_lower
    assert beside["assumption"].endswith("no canary acts on another")
    assert not record.refuted


def test_a_model_of_digits_that_remembers_is_found_in_one_training():
    record = audit_one_run(digits_model, 500, epsilon=1.0, delta=DELTA, seed=0)
    assert record.refuted
    assert record.epsilon_lower > 3
    assert record.details["auc"] > 0.95
    again = AuditRecord.from_dict(json.loads(json.dumps(record.to_dict(), allow_nan=False)))
    assert again == record


def test_a_claim_that_is_tighter_than_its_plan_is_tested_too():
    """What the plan allows refutes a claim that it does not prove."""
    shift = 3.0
    options = {"epsilon": 0.1, "delta": DELTA, "seed": 0}
    beside = audit_one_run(Shifted(shift), 2000, plan=gaussian_plan(1 / shift), **options)
    alone = audit_one_run(Shifted(shift), 2000, **options)
    assert beside.refuted
    assert alone.refuted
    assert beside.epsilon_lower == alone.epsilon_lower > 0.1
    assert beside.details["null"].endswith("and the tighter (ε, δ) of the claim")
    proved = audit_one_run(Shifted(shift), 2000, plan=gaussian_plan(1 / shift), delta=DELTA, seed=0)
    assert not proved.refuted
    assert proved.details["null"] == "the plan's whole curve δ(ε)"


def test_a_tighter_claim_that_is_true_is_not_refuted():
    """At 1 - 10⁻⁸ for each of 8 audits, false alarms have probability 8·10⁻⁸."""
    true = GaussianPair(0.3).least_epsilon(DELTA)
    options = {"epsilon": true * (1 + 1e-6), "delta": DELTA, "confidence": 1 - 1e-8}
    for seed in range(8):
        plan = gaussian_plan(1.0)
        record = audit_one_run(Shifted(0.3), 500, plan=plan, seed=seed, **options)
        assert not record.refuted
        assert record.epsilon_lower <= true


def test_the_objects_fields_are_the_keywords():
    execution = Execution(seed=5, confidence=0.9)
    by_object = audit_one_run(Shifted(1.0), 100, epsilon=1.0, execution=execution)
    assert by_object == audit_one_run(Shifted(1.0), 100, epsilon=1.0, seed=5, confidence=0.9)


def scores_and_members(size=100):
    rng = np.random.default_rng(0)
    members = rng.random(size) < 0.5
    return rng.normal(size=size), members


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s, m: (s[:-1], m), "scores has 99 entries and members has 100"),
        (lambda s, m: (s, np.arange(100) < 95), "members has 95 of 100"),
        (lambda s, m: (s[:4], m[:4]), "there are 4 guesses; even if all were right, 5 are needed"),
        (lambda s, m: (s.reshape(10, 10), m), "scores has type float64 and shape"),
    ],
)
def test_bad_scores_are_named(change, words):
    with pytest.raises(InputError, match=words):
        audit_scores(*change(*scores_and_members()), epsilon=1.0, delta=DELTA)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "epsilon is missing, and there is no plan"),
        ({"epsilon": 1.0, "delta": 1.0}, "delta is 1"),
        ({"epsilon": 1.0, "confidence": 1.0}, "confidence is 1"),
        ({"epsilon": 1.0, "guesses": (80, 30)}, "there are only 100 canaries"),
        ({"epsilon": 1.0, "seed": -1}, "seed is -1"),
        ({"epsilon": 1.0, "runs": 5}, "this audit takes confidence, seed, but not runs"),
    ],
)
def test_bad_options_are_named(options, words):
    with pytest.raises(InputError, match=words):
        audit_scores(*scores_and_members(), **options)
