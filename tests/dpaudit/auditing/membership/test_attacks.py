from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import binom, norm, rankdata
from sklearn.metrics import roc_curve

from dpaudit.auditing.evidence.gdp_estimate import gdp_epsilon
from dpaudit.auditing.membership.attacks import (
    MembershipAttack,
    audit_membership,
    audit_one_run,
    audit_scores,
)
from dpaudit.auditing.membership.guessing import Rule, default_rules, guess
from dpaudit.auditing.membership.lira import lira_offline, lira_online, logit_confidence
from dpaudit.auditing.membership.roc import Roc
from dpaudit.auditing.membership.shadows import Role, balanced_masks, random_masks, train_models
from dpaudit.certificate import AuditRecord
from dpaudit.errors import InputError
from dpaudit.mechanisms import Gaussian
from dpaudit.plan import AddRemove, Invocation, MetricBall, Plan, PrivacyUnit, TrustModel

DELTA = 1e-5


def gaussian_plan(sigma, relation=None):
    row = PrivacyUnit("row")
    return Plan.of(Invocation(Gaussian(sigma), 1, row, relation or AddRemove(), TrustModel.CENTRAL))


class Shifted:
    """Every member's score is higher by ``shift``, in units of the noise: exactly GDP."""

    def __init__(self, shift):
        self.shift = shift

    def __call__(self, mask, rng):
        return self.shift * mask + rng.normal(size=mask.size)


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


# --- operating curve


scored = st.integers(2, 40).flatmap(
    lambda n: st.tuples(
        arrays(np.float64, n, elements=st.integers(-5, 5).map(float)),
        arrays(np.bool_, n).filter(lambda flags: flags.any() and not flags.all()),
    )
)


@settings(deadline=None)
@given(scored)
def test_auc_is_the_rank_sum_statistic(case):
    scores, members = case
    ranks = rankdata(scores)
    hits, others = members.sum(), (~members).sum()
    expected = (ranks[members].sum() - hits * (hits + 1) / 2) / (hits * others)
    assert Roc.of(scores, members).auc == pytest.approx(expected)


@settings(deadline=None)
@given(scored)
def test_the_curve_is_that_of_scikit_learn(case):
    scores, members = case
    fpr, tpr, _ = roc_curve(members, scores, drop_intermediate=False)
    roc = Roc.of(scores, members)
    np.testing.assert_allclose(roc.fpr, fpr)
    np.testing.assert_allclose(roc.tpr, tpr)
    for limit in (0.0, 0.1, 0.5):
        assert roc.tpr_at(limit) == pytest.approx(tpr[fpr <= limit].max())


def test_a_long_curve_is_thinned_but_keeps_its_ends():
    rng = np.random.default_rng(0)
    members = rng.random(20_000) < 0.5
    details = Roc.of(rng.normal(members), members).details()
    fpr, tpr = details["roc"]["fpr"], details["roc"]["tpr"]
    assert len(fpr) == len(tpr) <= 200
    assert fpr == sorted(fpr)
    assert tpr == sorted(tpr)
    assert (fpr[0], tpr[0], fpr[-1], tpr[-1]) == (0.0, 0.0, 1.0, 1.0)
    assert set(details["tpr_at_fpr"]) == {"0.001", "0.01"}
    # The normal laws' own figure, within 5 standard errors of 100 false positives.
    expected = norm.sf(norm.isf(0.01) - 1)
    assert details["tpr_at_fpr"]["0.01"] == pytest.approx(expected, abs=0.05)


# --- guesses


def test_guesses_are_counted_as_the_rule_says():
    scores = np.array([5.0, 4.0, 3.0, 2.0, 1.0, 0.0])
    members = np.array([True, False, True, True, False, False])
    rules = [Rule(1), Rule(2), Rule(3, 3), Rule(0, 3), Rule(2, 2)]
    counted = guess(scores, members, rules, np.random.default_rng(0))
    assert [each.correct for each in counted] == [1, 1, 4, 2, 3]
    assert [each.made for each in counted] == [1, 2, 6, 3, 4]


@pytest.mark.parametrize("first", [True, False])
def test_equal_scores_in_stored_order_show_nothing(first):
    # Members stored together and all scores equal: a stable sort would guess every one right.
    members = (np.arange(1000) < 500) == first
    record = audit_scores(np.zeros(1000), members, epsilon=0.0, seed=0)
    assert not record.refuted
    assert record.epsilon_lower == 0.0


def test_default_rules_never_guess_twice_on_a_canary():
    for canaries in range(2, 200):
        rules = default_rules(canaries)
        assert len(set(rules)) == len(rules) > 0
        assert all(0 < rule.members + rule.others <= canaries for rule in rules)


# --- one run


def test_false_alarms_of_one_run_audits_are_rare():
    # More alarms in 40 true claims at error rate 0.1 would be chance once in 10^7.
    plan = gaussian_plan(1.0)
    records = [
        audit_one_run(
            Shifted(1.0), 300, plan=plan, delta=DELTA, seed=seed, confidence=0.9, guesses=(20, 20)
        )
        for seed in range(40)
    ]
    assert sum(record.refuted for record in records) <= binom.isf(1e-7, 40, 0.1)
    true = gdp_epsilon(1.0, DELTA)
    assert all(record.claim_epsilon == pytest.approx(true, rel=1e-6) for record in records)
    above = [record.details["family"]["epsilon_lower"] > true for record in records]
    assert sum(above) <= binom.isf(1e-7, 40, 0.1)
    assert all(record.epsilon_lower <= true for record in records)
    assert np.median([record.details["family"]["epsilon_lower"] for record in records]) > 1


def test_a_curve_is_refuted_where_the_point_alone_is_not():
    plan = gaussian_plan(2.0)
    epsilon = gdp_epsilon(0.5, DELTA)
    by_curve = audit_one_run(Shifted(2.0), 400, plan=plan, delta=DELTA, seed=3)
    by_point = audit_one_run(Shifted(1.0), 400, epsilon=epsilon, delta=DELTA, seed=3)
    assert by_curve.refuted
    assert by_curve.details["null"] == "the plan's whole curve δ(ε)"
    assert not by_point.refuted
    assert "would have refuted" in by_point.power
    assert by_point.epsilon_lower <= epsilon


def test_power_statement_names_the_first_count_that_refutes():
    record = audit_one_run(Shifted(0.2), 200, epsilon=0.5, seed=1, guesses=(50, 50))
    needed = int(record.power.split("; ")[1].split()[0])
    members = random_masks(1, 200, 1, Role.TARGET_MASKS)[0]

    def with_right(count):
        # The auditor's scores, made so that this many of the hundred guesses are right.
        right = np.array([True] * count + [False] * (100 - count))
        scores = np.zeros(200)
        inside, outside = np.flatnonzero(members), np.flatnonzero(~members)
        top, bottom = right[:50], right[50:]
        chosen = [*inside[: top.sum()], *outside[: 50 - top.sum()]]
        inside, outside = inside[top.sum() :], outside[50 - top.sum() :]
        rejected = [*outside[: bottom.sum()], *inside[: 50 - bottom.sum()]]
        scores[chosen], scores[rejected] = 1.0, -1.0
        return audit_scores(scores, members, epsilon=0.5, guesses=(50, 50), seed=0)

    assert with_right(needed).refuted
    assert not with_right(needed - 1).refuted


def test_a_model_of_digits_that_remembers_is_found_in_one_training():
    record = audit_one_run(digits_model, 500, epsilon=1.0, delta=DELTA, seed=0)
    assert record.refuted
    assert record.epsilon_lower > 3
    assert record.details["auc"] > 0.95
    again = AuditRecord.from_dict(json.loads(json.dumps(record.to_dict(), allow_nan=False)))
    assert again == record


def test_a_seed_replays_an_audit():
    first, second = (
        audit_one_run(Shifted(1.0), 100, epsilon=1.0, seed=5).to_dict() for _ in range(2)
    )
    assert first == second
    assert audit_one_run(Shifted(1.0), 100, epsilon=1.0, seed=6).to_dict() != first


# --- shadow models


def test_logit_of_confidence():
    chances = np.array([0.2, 0.5, 0.9])
    np.testing.assert_allclose(logit_confidence(-np.log(chances)), np.log(chances / (1 - chances)))
    extremes = logit_confidence([0.0, 800.0])
    assert np.isfinite(extremes).all()
    assert extremes[0] > 700 > -700 > extremes[1]


def test_lira_is_the_likelihood_ratio_of_the_fitted_laws():
    # 200 models: every example has laws of its own.
    rng = np.random.default_rng(0)
    masks = balanced_masks(200, 3, seed=0)
    scores = rng.normal(masks * np.array([1.0, 2.0, 3.0]), np.array([1.0, 0.5, 2.0]))
    targets = rng.normal(size=(2, 3))
    online, offline = lira_online(targets, scores, masks), lira_offline(targets, scores, masks)
    for example in range(3):
        inside, outside = (
            norm(kept.mean(), kept.std(ddof=1))
            for kept in (scores[masks[:, example], example], scores[~masks[:, example], example])
        )
        for model in range(2):
            value = targets[model, example]
            expected = inside.logpdf(value) - outside.logpdf(value)
            assert online[model, example] == pytest.approx(expected)
            assert norm.cdf(offline[model, example]) == pytest.approx(outside.cdf(value))


def test_examples_that_differ_are_told_apart_by_lira_alone():
    # Each example has a level of its own, which one threshold for all cannot know.
    levels = np.random.default_rng(0).normal(scale=10.0, size=400)

    def train(mask, rng):
        return levels + 2.0 * mask + rng.normal(size=mask.size)

    auc = {
        attack: audit_membership(
            train, 400, attack=attack, shadows=16, epsilon=1.0, guesses=(50, 50), seed=0
        ).details["auc"]
        for attack in MembershipAttack
    }
    best = norm.cdf(2 / np.sqrt(2))
    assert auc[MembershipAttack.THRESHOLD] < 0.65
    assert best - 0.06 < auc[MembershipAttack.LIRA_OFFLINE] < best + 0.05
    assert best - 0.06 < auc[MembershipAttack.LIRA_ONLINE] < best + 0.05


def test_false_alarms_of_shadow_attacks_are_rare():
    # More alarms in 25 true claims at error rate 0.1 would be chance once in 10^7.
    plan, options = gaussian_plan(1.0), {"shadows": 8, "targets": 3, "guesses": (15, 15)}
    alarms = sum(
        audit_membership(
            Shifted(1.0), 60, plan=plan, delta=DELTA, seed=seed, confidence=0.9, **options
        ).refuted
        for seed in range(25)
    )
    assert alarms <= binom.isf(1e-7, 25, 0.1)


def test_every_example_is_in_half_of_the_shadow_models():
    masks = balanced_masks(9, 50, seed=1)
    assert (masks.sum(axis=0) == 4).all()
    assert len(np.unique(masks, axis=1).T) > 10


def test_workers_do_not_change_the_scores():
    masks = random_masks(4, 10, 0, Role.TARGET_MASKS)
    alone, together = (
        train_models(Shifted(1.0), masks, 3, Role.TARGETS, workers) for workers in (1, 2)
    )
    np.testing.assert_array_equal(alone, together)


# --- a claim beside a plan


@pytest.mark.parametrize("shift", [1.0, 3.0])
def test_a_claim_that_is_tighter_than_its_plan_is_tested_too(shift):
    """What the plan allows refutes a claim that it does not prove."""
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
    """At 1 - 10⁻⁸ for each of 40 audits, false alarms have probability 4·10⁻⁷."""
    true = gdp_epsilon(0.3, DELTA)
    options = {"epsilon": true * (1 + 1e-6), "delta": DELTA, "confidence": 1 - 1e-8}
    for seed in range(40):
        plan = gaussian_plan(1.0)
        record = audit_one_run(Shifted(0.3), 500, plan=plan, seed=seed, **options)
        assert not record.refuted
        assert record.epsilon_lower <= true


# --- bad input


def scores_and_members(size=100):
    rng = np.random.default_rng(0)
    members = rng.random(size) < 0.5
    return rng.normal(size=size), members


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s, m: (s[:-1], m), "scores has 99 entries and members has 100"),
        (lambda s, m: (np.where(m, np.nan, s), m), "scores contains NaN"),
        (lambda s, m: (s, np.ones(100, dtype=bool)), "members has no non-member among 100"),
        (lambda s, m: (s, np.zeros(100, dtype=bool)), "members has no member among 100"),
        (lambda s, m: (s, np.arange(100) < 95), "members has 95 of 100"),
        (lambda s, m: (s, m + 0.5), "members has type float64"),
        (lambda s, m: (s[:5], m[:5]), "there are 5 guesses; even if all were right, 6 are needed"),
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
        ({"epsilon": -1.0}, "epsilon is -1"),
        ({"epsilon": 1.0, "delta": 1.0}, "delta is 1"),
        ({"epsilon": 1.0, "confidence": 1.0}, "confidence is 1"),
        ({"epsilon": 1.0, "guesses": (80, 30)}, "there are only 100 canaries"),
        ({"epsilon": 1.0, "guesses": (0, 0)}, "at least one guess"),
        ({"epsilon": 1.0, "guesses": 5}, "it must be two numbers"),
        ({"epsilon": 1.0, "seed": -1}, "seed is -1"),
        ({"plan": "x"}, "plan is 'x'; it must be a Plan"),
        ({"epsilon": 1.0, "delta": DELTA, "family": "x"}, "family is 'x'; it must be a CurveFam"),
        ({"plan": gaussian_plan(1.0)}, "proves no finite epsilon"),
        ({"plan": gaussian_plan(1.0, MetricBall()), "delta": DELTA}, "relation metric-ball"),
    ],
)
def test_bad_options_are_named(options, words):
    with pytest.raises(InputError, match=words):
        audit_scores(*scores_and_members(), **options)


def raising(mask, rng):
    raise ZeroDivisionError("one\ntwo")


@pytest.mark.parametrize(
    ("train", "words"),
    [
        (lambda mask, rng: mask[:-1] * 1.0, "train returned 99 scores"),
        (lambda mask, rng: np.where(mask, np.nan, 0.0), "scores contains NaN"),
        (lambda mask, rng: None, "scores has type object"),
        (lambda mask, rng: sys.exit(3), r"train raised SystemExit in model 0: 3\.$"),
        (raising, r"train raised ZeroDivisionError in model 0: one\.$"),
    ],
)
def test_bad_training_is_named(train, words):
    with pytest.raises(InputError, match=words):
        audit_one_run(train, 100, epsilon=1.0, seed=0)


def test_bad_shadow_options_are_named():
    options = {"epsilon": 1.0, "seed": 0}
    with pytest.raises(InputError, match="attack is 'guess'"):
        audit_membership(Shifted(1.0), 50, attack="guess", **options)
    with pytest.raises(InputError, match="shadows is 3"):
        audit_membership(Shifted(1.0), 50, shadows=3, **options)
    with pytest.raises(InputError, match="infinite score"):
        audit_membership(lambda mask, rng: np.where(mask, np.inf, 0.0), 50, **options)
    with pytest.raises(InputError, match="example 0 was in none of the 2"):
        lira_online(np.zeros((1, 2)), np.zeros((2, 2)), np.zeros((2, 2), dtype=bool))
    with pytest.raises(InputError, match="targets has shape"):
        lira_offline(np.zeros((1, 3)), np.zeros((2, 2)), np.zeros((2, 2), dtype=bool))
    with pytest.raises(InputError, match="losses has the value -1"):
        logit_confidence([-1.0])


def test_importing_needs_no_torch():
    code = (
        "import sys; import dpaudit.auditing.membership; "
        "sys.exit(any(name in sys.modules for name in ('torch', 'opacus')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
