"""Guesses and what they come to."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit import Claim
from dpaudit.auditing.evidence.one_run import one_run_lower_bound, one_run_p_value
from dpaudit.auditing.evidence.one_run_families import gaussian_least
from dpaudit.auditing.evidence.one_run_fdp import fdp_p_value
from dpaudit.auditing.membership.guessing import (
    Guesses,
    OneRunEvidence,
    Rule,
    default_rules,
    guess,
    require_fair_coins,
)
from dpaudit.errors import InputError

TWO_RULES = (Guesses(Rule(30, 30), 100, 50), Guesses(Rule(10), 100, 10))


def test_guesses_are_counted_as_the_rule_says():
    scores = np.array([5.0, 4.0, 3.0, 2.0, 1.0, 0.0])
    members = np.array([True, False, True, True, False, False])
    rules = [Rule(1), Rule(2), Rule(3, 3), Rule(0, 3), Rule(2, 2)]
    counted = guess(scores, members, rules, np.random.default_rng(0))
    assert [each.correct for each in counted] == [1, 1, 4, 2, 3]
    assert [each.made for each in counted] == [1, 2, 6, 3, 4]


def test_default_rules_never_guess_twice_on_a_canary():
    for canaries in range(2, 200):
        rules = default_rules(canaries)
        assert len(set(rules)) == len(rules) > 0
        assert all(0 < rule.members + rule.others <= canaries for rule in rules)


def test_bound_and_p_value_pay_for_every_rule():
    evidence = OneRunEvidence(TWO_RULES, Claim(1.0), None, 0.95)
    shares = [1 - 0.05 / 2] * 2
    bounds = [
        one_run_lower_bound(100, each.made, each.correct, 0.0, share)
        for each, share in zip(TWO_RULES, shares, strict=True)
    ]
    values = [one_run_p_value(100, each.made, each.correct, 1.0, 0.0) for each in TWO_RULES]
    assert evidence.lower_bound()[0] == max(bounds)
    assert evidence.p_value()[0] == pytest.approx(2 * min(values))


def test_beside_a_curve_both_tests_have_their_share():
    least = gaussian_least(0.5)
    (each,) = tried = (Guesses(Rule(30, 30), 100, 55),)
    evidence = OneRunEvidence(tried, Claim(0.2), least, 0.95)
    curve = fdp_p_value(100, 60, 55, least) / 0.9
    point = one_run_p_value(100, 60, 55, 0.2, 0.0) / 0.1
    assert evidence.p_value() == (pytest.approx(min(curve, point)), each)


@pytest.mark.parametrize("least", [None, gaussian_least(1.0)])
def test_the_count_that_is_needed_is_the_first_that_refutes(least):
    evidence = OneRunEvidence(TWO_RULES, Claim(1.5), least, 0.95)
    shown, needed = evidence.needed()
    place = TWO_RULES.index(shown)

    def refuted(correct):
        tried = list(TWO_RULES)
        tried[place] = Guesses(shown.rule, 100, correct)
        return OneRunEvidence(tuple(tried), Claim(1.5), least, 0.95)._rejects(tried[place], correct)

    assert refuted(needed)
    assert not refuted(needed - 1)


def test_no_count_may_be_enough():
    tried = (Guesses(Rule(3), 100, 3),)
    assert OneRunEvidence(tried, Claim(5.0), None, 0.95).needed() == (tried[0], None)


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
