"""Shuffled bits: how large ε₀ may be, what their means say, and how batches are made."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpaudit import InputError, guarantee
from dpaudit.mechanisms import RandomizedResponse, Shuffled
from dpaudit.plan import Invocation, Plan, PrivacyUnit, ReplaceOne, TrustModel
from private_bo.shuffles import batch_sizes, first_batch, means_of, scale_of, shuffled_bits

ABOUT = (PrivacyUnit("user"), ReplaceOne(), TrustModel.CENTRAL)


def proved(bits: Shuffled, delta: float) -> float:
    return guarantee(Plan.of(Invocation(bits, 1.0, *ABOUT)), delta).epsilon


@pytest.mark.parametrize("epsilon", [0.2, 1.0])
@pytest.mark.parametrize("reports", [30, 200])
def test_a_batch_costs_what_is_wished_and_wastes_nothing(epsilon, reports):
    bits = shuffled_bits(epsilon, 1e-5, reports, 10)
    assert epsilon * 0.998 <= proved(bits, 1e-5) <= epsilon
    local = float(bits.local.pair(1.0).pure_epsilon)
    more = RandomizedResponse.calibrated(epsilon=local * 1.002)
    assert local > epsilon
    assert proved(Shuffled(more, reports, 10), 1e-5) > epsilon


def test_one_report_or_a_large_epsilon_is_local_trust():
    for epsilon, reports in ((1.0, 1), (5.0, 50)):
        bits = shuffled_bits(epsilon, 1e-5, reports, 10)
        assert bits.local == RandomizedResponse.calibrated(epsilon=epsilon)
        assert bits.questions == min(10, reports)


def test_the_variances_that_the_module_states():
    found = [scale_of(shuffled_bits(1.0, 1e-5, reports, 10)) ** 2 for reports in (1, 50, 100, 500)]
    assert found == pytest.approx([4.7, 3.0, 2.1, 1.25], rel=0.01)


def test_means_are_unbiased_and_their_variance_is_stated():
    """Of 4000 batches: six deviations, so a false alarm of 1e-8 a comparison."""
    bits, rng = Shuffled(RandomizedResponse(0.4), 10, 3), np.random.default_rng(3)
    value = np.tile([1, 0, 1], (10, 1))
    drawn = np.array([list(means_of(bits, each)) for each in bits.release_many(value, 4000, rng)])
    mean, variance = drawn[..., 0], drawn[0, :, 1]
    assert np.abs(mean.mean(axis=0) - [1, -1, 1]).max() < 6 * math.sqrt(variance.max() / 4000)
    assert (mean.var(axis=0) < variance).all()
    assert variance == pytest.approx(1 / 0.6**2 / np.array([4, 3, 3]))


@pytest.mark.parametrize(("users", "first"), [(1, 1), (7, 1), (50, 50), (99, 50), (2000, 50)])
def test_every_user_is_in_one_batch_and_none_is_small(users, first):
    sizes = batch_sizes(users, first)
    assert sum(sizes) == users
    assert min(sizes) >= first
    assert first > 1 or set(sizes) == {1}


def test_batches_are_made_where_they_gain():
    assert first_batch(2000, 1.0, 1e-5, 10) == 50
    assert first_batch(2000, 5.0, 1e-5, 10) == 1
    assert first_batch(60, 1.0, 1e-5, 10) == 1
    assert first_batch(20_000, 0.1, 1e-5, 10) > 100


def test_an_epsilon_of_coins_is_refused():
    with pytest.raises(InputError, match=r"^epsilon is 1e-17, so small"):
        shuffled_bits(1e-17, 1e-5, 50, 10)
