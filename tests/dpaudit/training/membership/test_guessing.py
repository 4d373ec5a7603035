"""Guesses and what they come to."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from dpaudit import Claim
from dpaudit.auditing.evidence.one_run import (
    Walk,
    fdp_p_value,
    gaussian_family,
    gaussian_least,
    independent_strength,
)
from dpaudit.base.errors import InputError
from dpaudit.training.membership.guessing import (
    Design,
    OneRunEvidence,
    Rule,
    Series,
    guess,
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


RNG = np.random.default_rng(0)


def test_fair_coins_pass():
    for seed in range(50):
        require_fair_coins(np.random.default_rng(seed).random(40) < 0.5)


def test_a_rule_in_words():
    assert Rule(3, 2).describe() == "the 3 largest scores are members and the 2 smallest are none"
    assert Rule(0, 2).describe() == "the 2 smallest are none"
