"""Guesses and what they come to: the hypothesis, what is fixed in advance, and the record."""

from __future__ import annotations

import json
import math
from itertools import pairwise

import numpy as np
import pytest
from shifted_scores import DELTA, gaussian_plan

from dpaudit import Claim
from dpaudit.auditing import Execution
from dpaudit.auditing.evidence.one_run import (
    Walk,
    approximate_least,
    fdp_p_value,
    gaussian_family,
    gaussian_least,
    independent_strength,
)
from dpaudit.base.errors import InputError
from dpaudit.mechanisms import GaussianPair
from dpaudit.plan import MetricBall
from dpaudit.training.membership.guessing import (
    Design,
    GuessAudit,
    OneRunEvidence,
    Rule,
    Series,
    guess,
    membership_null,
    require_fair_coins,
)

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


def test_fair_coins_pass():
    for seed in range(50):
        require_fair_coins(np.random.default_rng(seed).random(40) < 0.5)


def test_a_rule_in_words():
    assert Rule(3, 2).describe() == "the 3 largest scores are members and the 2 smallest are none"
    assert Rule(0, 2).describe() == "the 2 smallest are none"


# -- what is tested -------------------------------------------------------------------------------

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


# -- what is fixed before a model is trained, and the record after --------------------------------

NULL = membership_null(1.0, 1e-5, None)


def audit(canaries=100, guesses=None, **fields):
    return GuessAudit(NULL, canaries, guesses, Execution(**{"seed": 1, **fields}))


MEMBERS = np.random.default_rng(0).random(100) < 0.5


def test_a_model_that_remembers_is_refuted_and_its_record_is_strict_json():
    design = audit(guesses=(20, 20))
    record = design.record(MEMBERS * 1.0, MEMBERS, "by hand", 1, {"attack": "mine"})
    assert record.refuted
    assert record.power == ""
    assert record.details["correct"] == record.details["guesses"] == 40
    assert record.details["attack"] == "mine"
    assert record.details["family"]["assumption"] == gaussian_family().assumption
    json.dumps(record.to_dict(), allow_nan=False)


def test_scores_without_information_show_nothing_and_say_what_would_have():
    record = audit().record(np.zeros(100), MEMBERS, "by hand", 1, {})
    assert not record.refuted
    assert record.epsilon_lower <= 1.0
    assert "would have refuted ε = 1, δ = 1e-05" in record.power


def test_a_seed_orders_equal_scores():
    first, second = (audit().record(np.zeros(100), MEMBERS, "by hand", 1, {}) for _ in range(2))
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
