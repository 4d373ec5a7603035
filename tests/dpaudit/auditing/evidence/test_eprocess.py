"""Sequential tests: how soon they find a fault, and how often they find one in sound code."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom

from dpaudit.auditing.evidence.eprocess import (
    PILOT_PAIRS,
    CurveEProcess,
    EpsilonEProcess,
    curve_points,
)
from dpaudit.base.errors import InputError

SIGMA = 3.7306


def laplace_curve(epsilons):
    return np.maximum(0.0, -np.expm1((epsilons - 1) / 2))


def gaussian_curve(epsilons, mu=1 / SIGMA):
    return ndtr(mu / 2 - epsilons / mu) - np.exp(epsilons) * ndtr(-mu / 2 - epsilons / mu)


def pairs_to_refute(sampler, curve, seeds, most):
    """Pairs until refutation at 5 %, the pilot included; inf if there was none."""
    needed = []
    for seed in range(seeds):
        generator = np.random.default_rng(seed)
        process, pairs = CurveEProcess(curve), math.inf
        while process.pairs < most:
            size = 64 if process.pairs == 0 else max(32, process.pairs // 16)
            process.update(sampler(generator, 1.0, size), sampler(generator, 0.0, size))
            if process.e_value >= 20:
                pairs = process.pairs
                break
        needed.append(pairs)
    return np.array(needed)


def laplace(scale):
    return lambda generator, centre, size: generator.laplace(centre, scale, size)


def normal(scale):
    return lambda generator, centre, size: generator.normal(centre, scale, size)


@pytest.mark.parametrize(
    ("sampler", "curve", "target"),
    [
        (laplace(0.5), laplace_curve, 300),
        (laplace(0.9), laplace_curve, 6000),
        (normal(SIGMA / 2), gaussian_curve, 700),
    ],
)
def test_wrong_mechanisms_are_refuted_in_time(sampler, curve, target):
    needed = pairs_to_refute(sampler, curve, 15, 20 * target)
    assert np.isfinite(needed).all()
    assert np.median(needed) <= target


@pytest.mark.parametrize(
    ("sampler", "curve"), [(laplace(1.0), laplace_curve), (normal(SIGMA), gaussian_curve)]
)
def test_correct_mechanisms_are_refuted_no_more_often_than_stated(sampler, curve):
    # 25 trials at 5 %: more than the limit has probability at most 1e-6.
    needed = pairs_to_refute(sampler, curve, 25, 1500)
    assert np.isfinite(needed).sum() <= binom.isf(1e-6, 25, 0.05)


def test_batching_changes_nothing_but_when_one_looks():
    generator = np.random.default_rng(5)
    x, y = generator.laplace(1, 0.7, 900), generator.laplace(0, 0.7, 900)
    whole, parts = CurveEProcess(laplace_curve), CurveEProcess(laplace_curve)
    whole.update(x, y)
    for start in range(0, 900, 77):
        parts.update(x[start : start + 77], y[start : start + 77])
    assert whole.pairs == parts.pairs == 900
    assert whole.e_value == pytest.approx(parts.e_value, rel=1e-9)


def test_nothing_is_staked_on_the_pilot():
    process = CurveEProcess(laplace_curve)
    process.update(np.full(PILOT_PAIRS, 9.0), np.zeros(PILOT_PAIRS))
    assert process.e_value == 1.0
    process.update(np.full(50, 9.0), np.zeros(50))
    assert process.e_value > 1e6


def test_points_of_a_pure_claim_end_at_its_epsilon():
    points = curve_points(laplace_curve)
    assert points[0].epsilon == 0.0
    assert points[-1].epsilon == pytest.approx(1.0, abs=1e-5)


def test_a_million_pairs_are_audited_within_three_seconds():
    generator = np.random.default_rng(0)
    x, y = generator.normal(1, SIGMA, 10**6), generator.normal(0, SIGMA, 10**6)
    process, start = CurveEProcess(gaussian_curve), time.process_time()
    process.update(x, y)
    assert time.process_time() - start < 3.0


def test_lower_bound_is_sound_and_informative():
    exceeded, found = 0, []
    for seed in range(8):
        generator = np.random.default_rng(seed)
        process = EpsilonEProcess(0.0, epsilons=np.linspace(0, 1.5, 16))
        process.update(generator.laplace(1, 1, 4000), generator.laplace(0, 1, 4000))
        bound = process.lower_bound(0.95)
        found.append(bound)
        exceeded += bound > 1.0
    assert exceeded <= binom.isf(1e-6, 8, 0.05)
    assert np.median(found) >= 0.8


def test_bad_input_is_named():
    with pytest.raises(InputError, match="pairs"):
        CurveEProcess(laplace_curve).update([1.0, 2.0], [1.0])
    with pytest.raises(InputError, match="at least 0"):
        CurveEProcess(lambda e: e - 5)
    with pytest.raises(InputError, match="epsilons"):
        EpsilonEProcess(0.0, epsilons=[-1.0])
