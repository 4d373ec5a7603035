"""Audits in one training: guesses, their bounds, and what is claimed."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit import Claim
from dpaudit.auditing import Execution
from dpaudit.auditing.evidence.one_run_families import (
    approximate_least,
    gaussian_family,
    gaussian_least,
)
from dpaudit.auditing.evidence.one_run_fdp import fdp_p_value
from dpaudit.auditing.evidence.one_run_independent import independent_strength
from dpaudit.auditing.evidence.one_run_walk import Walk
from dpaudit.base.errors import InputError
from dpaudit.certificate import AuditRecord
from dpaudit.mechanisms import Gaussian, GaussianPair
from dpaudit.plan import AddRemove, Invocation, MetricBall, Plan, PrivacyUnit, TrustModel
from dpaudit.training.membership import audit_one_run, audit_scores
from dpaudit.training.membership.claims import membership_null
from dpaudit.training.membership.guess_audit import GuessAudit
from dpaudit.training.membership.guessing import (
    Design,
    OneRunEvidence,
    Rule,
    Series,
    guess,
    require_fair_coins,
)
from dpaudit.training.membership.shadows import Role, random_masks

# -- audits of one training: how often they err, and what they find --------------------------------


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


@pytest.mark.parametrize("first", [True, False])
def test_equal_scores_in_stored_order_show_nothing(first):
    # Members stored together and all scores equal: a stable sort would guess every one right.
    members = (np.arange(1000) < 500) == first
    record = audit_scores(np.zeros(1000), members, epsilon=0.0, seed=0, confidence=1 - 1e-7)
    assert not record.refuted
    assert record.epsilon_lower == 0.0


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
    true = GaussianPair(1.0).least_epsilon(DELTA)
    assert all(record.claim_epsilon == pytest.approx(true, rel=1e-6) for record in records)
    above = [record.details["family"]["epsilon_lower"] > true for record in records]
    assert sum(above) <= binom.isf(1e-7, 40, 0.1)
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
    """At 1 - 10⁻⁸ for each of 20 audits, false alarms have probability 2·10⁻⁷."""
    true = GaussianPair(0.3).least_epsilon(DELTA)
    options = {"epsilon": true * (1 + 1e-6), "delta": DELTA, "confidence": 1 - 1e-8}
    for seed in range(20):
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
        (lambda s, m: (np.where(m, np.nan, s), m), "scores contains NaN"),
        (lambda s, m: (s, np.ones(100, dtype=bool)), "members has no non-member among 100"),
        (lambda s, m: (s, np.zeros(100, dtype=bool)), "members has no member among 100"),
        (lambda s, m: (s, np.arange(100) < 95), "members has 95 of 100"),
        (lambda s, m: (s, m + 0.5), "members has type float64"),
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
        ({"epsilon": -1.0}, "epsilon is -1"),
        ({"epsilon": 1.0, "delta": 1.0}, "delta is 1"),
        ({"epsilon": 1.0, "confidence": 1.0}, "confidence is 1"),
        ({"epsilon": 1.0, "guesses": (80, 30)}, "there are only 100 canaries"),
        ({"epsilon": 1.0, "guesses": (0, 0)}, "at least one guess"),
        ({"epsilon": 1.0, "guesses": 5}, "it must be two numbers"),
        ({"epsilon": 1.0, "seed": -1}, "seed is -1"),
        ({"epsilon": 1.0, "runs": 5}, "this audit takes confidence, seed and no runs"),
        ({"plan": "x"}, "plan is 'x'; it must be a Plan"),
        ({"plan": gaussian_plan(1.0)}, "proves no finite epsilon"),
        ({"plan": gaussian_plan(1.0, MetricBall()), "delta": DELTA}, "relation metric-ball"),
    ],
)
def test_bad_options_are_named(options, words):
    with pytest.raises(InputError, match=words):
        audit_scores(*scores_and_members(), **options)


@pytest.mark.parametrize(
    ("train", "words"),
    [
        (lambda mask, rng: mask[:-1] * 1.0, "train returned 99 scores"),
        (lambda mask, rng: sys.exit(3), r"train raised SystemExit in model 0 at test_one_run.py:"),
    ],
)
def test_bad_training_is_named(train, words):
    with pytest.raises(InputError, match=words):
        audit_one_run(train, 100, epsilon=1.0, seed=0)


def test_importing_needs_no_torch():
    code = (
        "import sys; import dpaudit.training.membership; "
        "sys.exit(any(name in sys.modules for name in ('torch', 'opacus')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# -- guesses and what they come to -----------------------------------------------------------------


TWO_RULES = {Rule(10): 10, Rule(20, 20): 34}
DESIGN = Design(100, (Series(tuple(TWO_RULES), 0.8),), tuple(TWO_RULES), (Rule(20, 20),))


def evidence(claim, least=None, correct=TWO_RULES):
    return OneRunEvidence(DESIGN, correct, claim, least, 0.95)


def test_guesses_are_counted_as_the_rule_says():
    scores = np.array([5.0, 4.0, 3.0, 2.0, 1.0, 0.0])
    members = np.array([True, False, True, True, False, False])
    rules = [Rule(1), Rule(2), Rule(3, 3), Rule(0, 3), Rule(2, 2)]
    counted = guess(scores, members, rules, np.random.default_rng(0))
    assert counted == dict(zip(rules, [1, 1, 4, 2, 3], strict=True))
    assert [rule.made for rule in rules] == [1, 2, 6, 3, 4]


@pytest.mark.parametrize("delta", [0.0, 0.1])
def test_default_rules_never_guess_twice_and_make_what_those_before_make(delta):
    for canaries in range(2, 200):
        design = Design.default(canaries, delta)
        assert sum(series.share for series in design.series) <= 1 + 1e-12
        assert design.curve
        assert design.free
        assert all(0 < rule.made <= canaries for rule in design.rules)
        for series in design.series:
            for few, many in pairwise(series.rules):
                assert few.made < many.made
                assert few.members <= many.members
                assert few.others <= many.others


def test_bound_and_p_value_are_those_of_the_walk_at_the_share_of_the_series():
    found, walk = evidence(Claim(1.0)), Walk(100, (10, 40))
    assert found.lower_bound() == (walk.lower_bound([10, 34], 1 - 0.05 * 0.8), Rule(20, 20))
    assert found.p_value()[0] == pytest.approx(walk.p_value([10, 34], 1.0) / 0.8)


def test_beside_a_curve_both_tests_have_their_share():
    least, claim = gaussian_least(0.5), Claim(0.2)
    curve = min(fdp_p_value(100, rule.made, right, least) for rule, right in TWO_RULES.items())
    point = Walk(100, (10, 40)).p_value([10, 34], 0.2)
    expected = min(curve * 2 / 0.9, point / 0.8 / 0.1)
    assert evidence(claim, least).p_value()[0] == pytest.approx(expected)


def test_of_independent_canaries_the_law_of_the_guesses_is_known():
    family = gaussian_family()
    found = evidence(Claim(1.0, 1e-5)).independent(family)
    assert found["strength"] == independent_strength(100, 40, 34, family, 0.95)
    assert found["assumption"].startswith(family.assumption)
    assert found["strength"] > evidence(Claim(1.0, 1e-5)).within(family)["strength"]


@pytest.mark.parametrize("least", [None, gaussian_least(1.0)])
def test_the_count_that_is_needed_is_the_first_that_refutes(least):
    few = {Rule(10): 5, Rule(20, 20): 20}
    shown, needed = evidence(Claim(1.5), least, few).needed()

    def refuted(correct):
        return evidence(Claim(1.5), least, few | {shown: correct}).p_value()[0] <= 0.05

    assert refuted(needed)
    assert not refuted(needed - 1)


def test_no_count_may_be_enough():
    rule = Rule(3)
    found = OneRunEvidence(Design.fixed(100, rule), {rule: 3}, Claim(5.0), None, 0.95)
    assert found.needed() == (rule, None)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Rule(0, 0), r"guesses is \(0, 0\); at least one guess"),
        (lambda: Rule(-1), "members is -1"),
        (lambda: Rule(1, 0.5), "others is 0.5"),
        (lambda: require_fair_coins(np.arange(100) < 95), "members has 95 of 100"),
    ],
)
def test_bad_input_is_named(make, words):
    with pytest.raises(InputError, match=words):
        make()


RNG = np.random.default_rng(0)


def test_fair_coins_pass():
    for seed in range(50):
        require_fair_coins(np.random.default_rng(seed).random(40) < 0.5)


def test_a_rule_in_words():
    assert Rule(3, 2).describe() == "the 3 largest scores are members and the 2 smallest are none"
    assert Rule(0, 2).describe() == "the 2 smallest are none"


# -- what is fixed before a model is trained, and the record after ---------------------------------


NULL = membership_null(1.0, 1e-5, None)


def audit(canaries=100, guesses=None, **fields):
    return GuessAudit(NULL, canaries, guesses, Execution(**{"seed": 1, **fields}))


def members(size=100):
    return np.random.default_rng(0).random(size) < 0.5


def test_a_model_that_remembers_is_refuted_and_its_record_is_strict_json():
    design = audit(guesses=(20, 20))
    record = design.record(members() * 1.0, members(), "by hand", 1, {"attack": "mine"})
    assert record.refuted
    assert record.power == ""
    assert record.details["correct"] == record.details["guesses"] == 40
    assert record.details["attack"] == "mine"
    assert record.details["family"]["assumption"] == gaussian_family().assumption
    json.dumps(record.to_dict(), allow_nan=False)


def test_scores_without_information_show_nothing_and_say_what_would_have():
    record = audit().record(np.zeros(100), members(), "by hand", 1, {})
    assert not record.refuted
    assert record.epsilon_lower <= 1.0
    assert "would have refuted ε = 1, δ = 1e-05" in record.power


def test_a_seed_orders_equal_scores():
    first, second = (audit().record(np.zeros(100), members(), "by hand", 1, {}) for _ in range(2))
    assert first == second
    assert audit(seed=None).seed != audit(seed=None).seed


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"canaries": 4}, "there are 4 guesses; even if all were right, 5 are needed"),
        ({"guesses": (80, 30)}, r"guesses is \(80, 30\); there are only 100 canaries"),
        ({"guesses": 5}, "guesses is 5; it must be two numbers"),
        ({"confidence": 1 - 1e-40 - 2**-50, "guesses": (10, 10)}, "use more canaries"),
    ],
)
def test_bad_designs_are_named(options, words):
    with pytest.raises(InputError, match=words):
        audit(**options)


# -- what a membership audit tests -----------------------------------------------------------------


P = np.array([0.01, 0.3, 0.9])


def test_a_claim_alone_is_a_point():
    null = membership_null(1.0, DELTA, None)
    assert (null.claim.epsilon, null.least, null.words) == (1.0, None, "(ε, δ) alone")


def test_a_plan_gives_its_epsilon_and_its_curve():
    null = membership_null(None, DELTA, gaussian_plan(1.0))
    assert null.claim.epsilon == pytest.approx(GaussianPair(1.0).least_epsilon(DELTA), rel=1e-6)
    np.testing.assert_allclose(null.least(P), gaussian_least(1.0)(P), rtol=0.02)
    assert not null.tighter


def test_a_looser_claim_is_tested_alone_and_a_tighter_one_beside_the_curve():
    assert membership_null(20.0, DELTA, gaussian_plan(1.0)).least is None
    null = membership_null(0.1, DELTA, gaussian_plan(1.0))
    assert null.tighter
    assert null.words.endswith("and the tighter (ε, δ) of the claim")
    np.testing.assert_allclose(
        null.least(P), np.maximum(approximate_least(0.1, DELTA)(P), gaussian_least(1.0)(P)), 0.02
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((None, DELTA, None), "epsilon is missing, and there is no plan"),
        ((1.0, DELTA, "x"), "plan is 'x'; it must be a Plan"),
        ((None, 0.0, gaussian_plan(1.0)), "proves no finite epsilon"),
        ((1.0, DELTA, gaussian_plan(1.0, MetricBall())), "relation metric-ball"),
        ((-1.0, DELTA, None), "epsilon is -1"),
        ((math.nan, DELTA, None), "epsilon is nan"),
    ],
)
def test_bad_claims_are_named(arguments, words):
    with pytest.raises(InputError, match=words):
        membership_null(*arguments)
