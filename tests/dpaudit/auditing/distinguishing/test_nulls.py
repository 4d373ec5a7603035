"""Null hypotheses, fed chunk by chunk."""

import json
import math

import numpy as np
import pytest

from dpaudit import Claim
from dpaudit.auditing.distinguishing.design import (
    RARE_SHARE,
    AnytimeNull,
    Arm,
    CurveNull,
    PointNull,
)
from dpaudit.auditing.evidence.joint import joint_lower_bound
from dpaudit.auditing.evidence.types import Direction, Event, PairCounts
from dpaudit.mechanisms import LaplacePair


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

    def test_before_the_first_run_nothing_is_shown(self):
        null = PointNull(Claim(1.0), Event(lower=1.0))
        assert (null.runs, null.lower_bound(0.95)) == (0, 0.0)

    def test_the_event_says_under_whom_it_is_likelier(self):
        words = PointNull(Claim(1.0), Event(lower=1.5)).event_in_words("output")
        assert words == "output ≥ 1.5, likelier under x"
        backward = PointNull(Claim(1.0), Event(upper=0.5, direction=Direction.BACKWARD))
        assert backward.event_in_words("output") == "output ≤ 0.5, likelier under x'"

    def test_some_scores_are_kept_for_forecasts(self):
        null = PointNull(Claim(1.0), Event(lower=1.0))
        for seed in range(3):
            null.update(*scores(6000, seed=seed))
        assert null.scores[0].size == null.scores[1].size == 12_000


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
