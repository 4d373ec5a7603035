"""Events are chosen on simulated transcripts, and the forecast is kept."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit.auditing import GradientCanary
from dpaudit.auditing.evidence.one_run_families import approximate_least, gaussian_least
from dpaudit.auditing.evidence.types import PairCounts
from dpaudit.auditing.membership.claims import membership_null
from dpaudit.auditing.membership.gradient_design import GradientDesign, curve_refuted
from dpaudit.mechanisms import Gaussian
from dpaudit.plan import AddRemove, Invocation, Plan, PrivacyUnit, TrustModel

DELTA = 1e-5
PLAN = Plan.of(
    Invocation(Gaussian(4.0), 1, PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL, count=16)
)


def design(epsilon=None, runs=1000):
    canary = GradientCanary.of(PLAN)
    return GradientDesign(
        canary, canary, membership_null(epsilon, DELTA, PLAN), runs, 0, 0.95, 3, 20_000
    )


def test_the_sample_is_simulated_sorted_and_of_the_seed():
    one, two = design().sample, design().sample
    for side, other in zip(one, two, strict=True):
        np.testing.assert_array_equal(side, other)
        assert (np.diff(side) >= 0).all()
    # Sixteen steps of sigma 4 shift the log ratio by mu = 1, from -1/2 to 1/2.
    assert [side.mean() for side in one] == pytest.approx([0.5, -0.5], abs=0.05)


def test_the_tail_is_rare_and_the_middle_is_not():
    made = design()
    tail, middle = ((made.sample[1] >= each.lower).mean() for each in (made.tail, made.middle))
    assert tail <= 0.02 < 0.05 < middle < 0.5


def test_a_fault_that_would_be_found_is_graver_than_one_that_would_not():
    made = design()
    assert made.would_find(2.0)
    assert not made.would_find(1.01)
    assert design(epsilon=20.0).null.least is None


def test_counts_refute_a_curve_that_allows_too_little():
    counts = PairCounts(600, 1000, 300, 1000)
    assert curve_refuted(counts, gaussian_least(0.3), 0.05)
    assert not curve_refuted(counts, gaussian_least(1.0), 0.05)
    assert not curve_refuted(counts, approximate_least(1.0, 0.0), 0.05)
