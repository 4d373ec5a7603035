"""What an audit decides before its first run.

An audit that could not refute a claim says how many runs it would take.
Null hypotheses, fed chunk by chunk.
A claimed true-positive rate, tested by one event.
"""

import json
import math
import re
import sys

import numpy as np
import pytest
from scipy.stats import binom, norm

from dpaudit import AuditPair, Claim, InputError, Laplace
from dpaudit.auditing import BlackBox, LinearScore, audit_release
from dpaudit.auditing.distinguishing.choosing import learn_scores
from dpaudit.auditing.distinguishing.design import (
    HELD_SHARE,
    RARE_SHARE,
    AnytimeNull,
    Arm,
    CurveNull,
    Design,
    PointNull,
    RatesNull,
    learner_for,
    pilot_size,
    require_enough_runs,
)
from dpaudit.auditing.distinguishing.scores import Identity
from dpaudit.auditing.evidence.events import Direction, Event, PairCounts
from dpaudit.auditing.evidence.two_counts import fewest_runs, joint_lower_bound
from dpaudit.mechanisms import LaplacePair

CURVE = LaplacePair(1).delta


def design(curve=CURVE, scores=(), learner=learn_scores, stop_early=False):
    return Design(Claim(1.0), 0.95, curve, scores, learner, stop_early)


@pytest.mark.parametrize("stop_early", [False, True])
@pytest.mark.parametrize("curve", [None, CURVE])
def test_the_tests_share_the_error_rate(curve, stop_early):
    found = design(curve, stop_early=stop_early)
    assert found.point_error + found.curve_error == pytest.approx(0.05)
    assert (found.curve_null() is None) == (curve is None)
    assert found.point_error == pytest.approx(
        0.05 if curve is None else 0.0 if stop_early else 0.005
    )


class Bound:
    def __init__(self):
        self.asked = []

    def lower_bound(self, confidence):
        self.asked.append(confidence)
        return 1.5


def test_the_point_refutes_at_its_share_alone():
    bound = Bound()
    assert design().point_refutes(bound)
    assert bound.asked == [pytest.approx(0.995)]
    assert not design(stop_early=True).point_refutes(bound)
    assert len(bound.asked) == 1


def test_a_pilot_is_larger_where_scores_are_learned_and_none_where_nothing_is_chosen():
    plain = pilot_size(10_000)
    assert design().pilot((), 10_000) == plain
    assert design().pilot((3,), 10_000) == 2.5 * plain
    assert design(learner=None, scores=(LinearScore((1.0,) * 3),)).pilot((3,), 10_000) == plain
    assert design(stop_early=True).pilot((), 10_000) == 0
    assert design(stop_early=True).pilot((3,), 10_000) == 2.5 * plain
    scores = (LinearScore((1.0,) * 3),)
    assert design(stop_early=True, scores=scores).pilot((3,), 10_000) == 0


def test_scores_are_learned_where_none_is_given_or_where_it_is_wanted():
    def own(x, x_prime):
        return [Identity()]

    assert learner_for(None, ()) is learner_for(True, (Identity(),)) is learn_scores
    assert learner_for(None, (Identity(),)) is learner_for(False, ()) is None
    assert learner_for(own, (Identity(),)) is own


def test_a_record_says_that_no_classifier_was_trained(monkeypatch):
    assert design().not_learned((3,)) == ""
    monkeypatch.setitem(sys.modules, "sklearn", None)
    assert "scikit-learn, which is not installed" in design().not_learned((3,))
    assert design().not_learned(()) == ""
    assert design(learner=None).not_learned((3,)) == ""
    assert design(learner=lambda x, x_prime: [np.sum]).not_learned((3,)) == ""


def refusal(design, shape, runs):
    """The least number of runs that a refusal states, or None where there is none."""
    try:
        require_enough_runs(
            design.claim,
            runs,
            lambda runs: runs - design.pilot(shape, runs),
            design.point_error,
            design.curve_null(),
        )
    except InputError as refused:
        return int(re.search(r"at least (\d+) are needed", str(refused))[1])
    return None


@pytest.mark.parametrize("shape", [(), (3,)])
@pytest.mark.parametrize("learner", [learn_scores, None])
@pytest.mark.parametrize("curve", [None, LaplacePair(0.5).delta])
def test_the_least_number_is_one_number(shape, learner, curve):
    scores = () if learner else (LinearScore((1.0,) * math.prod(shape)),)
    design = Design(Claim(0.5), 0.95, curve, scores, learner, stop_early=False)
    stated = [refusal(design, shape, runs) for runs in range(1, 40)]
    (least,) = {each for each in stated if each is not None}
    assert [each is None for each in stated] == [runs >= least for runs in range(1, 40)]


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_the_least_number_leaves_enough_for_the_test(epsilon):
    design = Design(Claim(epsilon), 0.95, None, (), learn_scores, stop_early=False)
    least = refusal(design, (), 1)
    tested = least - pilot_size(least)
    assert tested >= fewest_runs(epsilon, 0.0, (1 - 2 * HELD_SHARE) * 0.05) > tested - 1


def test_the_least_number_suffices():
    identity, settings = BlackBox(lambda data, rng: data), {"epsilon": 2.0, "seed": 0}
    with pytest.raises(InputError) as caught:
        audit_release(identity, AuditPair(0, 1), runs=10, **settings)
    needed = int(str(caught.value).split("at least ")[1].split()[0])
    assert audit_release(identity, AuditPair(0, 1), runs=needed, **settings).refuted


def test_a_refusal_comes_before_the_runs():
    calls = []

    def counted(data, size, rng):
        calls.append(size)
        return Laplace(1.0).release_many(data, size, rng)

    for epsilon, words in (
        (1.0, "at least 9"),
        (10.0, "at least 77006"),
        (100.0, "no larger number"),
    ):
        calls.clear()
        with pytest.raises(InputError, match=f"runs is 5; .* {words}"):
            audit_release(counted, AuditPair(0.0, 1.0), epsilon=epsilon, runs=5)
        assert sum(calls) == 6 * 4
    assert np.isfinite(fewest_runs(10.0, 0.0, 0.05))


def scores(runs, scale=1.0, seed=0):
    rng = np.random.default_rng(seed)
    return 1.0 + scale * rng.laplace(size=runs), scale * rng.laplace(size=runs)


class TestPoint:
    def test_chunks_add_up_to_one_exact_test(self):
        null, (x, x_prime) = PointNull(Claim(1.0), Event(lower=1.0)), scores(3000)
        for start in range(0, 3000, 700):
            null.update(x[start : start + 700], x_prime[start : start + 700])
        counts = PairCounts(int((x >= 1).sum()), 3000, int((x_prime >= 1).sum()), 3000)
        assert null.counts == counts
        assert null.runs == 3000
        assert null.lower_bound(0.95) == joint_lower_bound(counts, 0.0, 0.95)
        assert null.details()["counts"] == counts.to_dict()
        json.dumps(null.details(), allow_nan=False)

    def test_the_event_says_under_whom_it_is_likelier(self):
        words = PointNull(Claim(1.0), Event(lower=1.5)).event_in_words("output")
        assert words == "output ≥ 1.5, likelier under x"
        backward = PointNull(Claim(1.0), Event(upper=0.5, direction=Direction.BACKWARD))
        assert backward.event_in_words("output") == "output ≤ 0.5, likelier under x'"


class TestAnytime:
    def test_a_violation_is_found_and_the_truth_not_exceeded(self):
        null = AnytimeNull(Claim(1.0))
        null.update(*scores(4000, scale=0.4))
        assert 1.0 < null.lower_bound(0.95) <= 2.5
        assert null.runs == 4000
        assert null.details() == {"test": "e-process", "test_runs": 4000}
        sound = AnytimeNull(Claim(1.0))
        sound.update(*scores(4000))
        assert sound.lower_bound(1 - 1e-6) <= 1.0


class TestCurve:
    def test_less_noise_is_refuted_and_the_pairs_are_counted(self):
        null = CurveNull(LaplacePair(1).delta, 0.05)
        null.update(*scores(4000, scale=0.5))
        assert null.refuted
        assert null.e_value >= 20
        assert null.pairs < 1000
        details = null.details()
        assert details["threshold"] == pytest.approx(20)
        json.dumps(details, allow_nan=False)
        pairs = null.pairs
        null.update(*scores(100))
        assert null.pairs == pairs

    def test_wealth_is_kept_when_the_score_changes(self):
        null = CurveNull(LaplacePair(1).delta, 1e-9)
        null.update(*scores(150, scale=0.5))
        before, pairs = null.log_e_value, null.pairs
        null.change_score()
        assert null.log_e_value == pytest.approx(before)
        assert null.pairs == pairs == 150
        null.update(*scores(64, scale=0.5, seed=1))  # the pilot of the new score stakes nothing
        assert null.log_e_value == pytest.approx(before)
        assert null.pairs == 214

    def test_the_declared_noise_is_not_refuted(self):
        """At an error rate of 1e-6."""
        null = CurveNull(LaplacePair(1).delta, 1e-6)
        null.update(*scores(4000))
        assert not null.refuted
        assert math.isfinite(null.log_e_value)


def test_a_rare_event_takes_its_share_and_may_decide():
    claim, rare = Claim(1.0), Arm(Event(lower=50.0), RARE_SHARE)
    x, x_prime = np.zeros(100_000), np.zeros(100_000)
    x[:100], x[100:50_000], x_prime[:25_000] = 99.0, 1.0, 1.0
    alone, both = PointNull(claim, Event(lower=0.5)), PointNull(claim, Event(lower=0.5), [rare])
    for null in (alone, both):
        null.update(x, x_prime)
    assert alone.lower_bound(0.95) < 0.75
    assert both.lower_bound(0.95) > 2.0
    assert both.event_in_words("output") == "output ≥ 50, likelier under x"
    assert both.details()["rare"]["counts"]["hits"] == 100
    without = PointNull(claim, Event(lower=0.5), [Arm(Event(lower=1e9), RARE_SHARE)])
    without.update(x, x_prime)
    assert without.lower_bound(0.95) == pytest.approx(alone.lower_bound(0.955), abs=1e-3)


@pytest.mark.parametrize(("confidence", "threshold"), [(0.95, "50"), (1 - 1e-6, "0.5")])
def test_the_event_that_is_told_is_that_of_the_largest_bound(confidence, threshold):
    rare = Arm(Event(lower=50.0), RARE_SHARE)
    x, x_prime = np.zeros(100_000), np.zeros(100_000)
    x[:14], x[14:50_000], x_prime[:25_000] = 99.0, 1.0, 1.0
    null = PointNull(Claim(1.0), Event(lower=0.5), [rare], confidence)
    null.update(x, x_prime)
    assert null.event_in_words("output") == f"output ≥ {threshold}, likelier under x"
    bound = null.decisive.bound(0.0, 1 - confidence)
    assert bound == pytest.approx(null.lower_bound(confidence), abs=1e-6)


T, A = 0.5, 0.2


def fed(rates, sides, error=0.05):
    null = RatesNull(rates, error)
    for start in range(0, len(sides[0]), 200):
        null.update(*(side[start : start + 200] for side in sides))
    return null


def coins(p, q, runs, rng):
    """Outputs 0 and 1: the corner of the ROC curve is (q, p)."""
    return [(rng.random(runs) < rate).astype(float) for rate in (p, q)]


@pytest.mark.parametrize("q", [0.05, 0.1, A, 0.5])
def test_a_true_claim_is_refuted_with_at_most_its_error(q):
    """Corners whose ROC curve, or that of x', is T at A; more would be chance once in 10^6."""
    p = 1 - (1 - T) * (1 - q) / (1 - A) if q <= A else 1 - A
    rng = np.random.default_rng(0)
    wrong = sum(fed((T, A), coins(p, q, 500, rng)).refuted for _ in range(60))
    assert wrong <= binom.isf(1e-6, 60, 0.05)


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("sign", [1, -1])
def test_more_than_is_claimed_is_found_in_any_direction(swapped, sign):
    mu, rng = 1.25, np.random.default_rng(1)
    sides = [sign * rng.normal(mu, size=6000), sign * rng.normal(size=6000)]
    claimed = norm.cdf(1 - norm.isf(0.01))
    null = fed((claimed, 0.01), sides[::-1] if swapped else sides)
    assert null.refuted
    assert json.dumps(null.details(), allow_nan=False)
    assert "TPR" in null.in_words("output")
    # The (ε, δ) that follows from the claim is kept all the same.
    implied = Claim.of(tpr=claimed, fpr=0.01)
    delta = norm.cdf(mu / 2 - implied.epsilon / mu) - np.exp(implied.epsilon) * norm.cdf(
        -mu / 2 - implied.epsilon / mu
    )
    assert delta < implied.delta


def test_too_few_runs_refute_nothing():
    null = RatesNull((0.05, 0.01), 0.05)
    null.update(np.ones(500), np.zeros(500))
    assert not null.refuted
    assert null.details()["event"] is None


def test_a_new_score_begins_again():
    null = fed((T, A), [np.ones(2000), np.zeros(2000)])
    assert null.refuted
    null.change_score()
    assert (null.refuted, null.pairs) == (False, 0)


def test_an_audit_that_may_stop_tests_what_follows_by_bets():
    def null(stop_early):
        claim = Claim.of(tpr=T, fpr=A)
        return Design(claim, 0.95, claim.curve, (), None, stop_early).curve_null()

    assert isinstance(null(False), RatesNull)
    assert isinstance(null(True), CurveNull)
