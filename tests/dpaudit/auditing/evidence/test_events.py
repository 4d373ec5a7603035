"""Events are chosen on a pilot and tested on fresh runs."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from scipy.stats import binom
from split_bounds import split_lower_bound

from dpaudit.auditing.evidence.events import choose_event, pilot_size
from dpaudit.auditing.evidence.types import Direction
from dpaudit.base.errors import InputError


def bounds(sample_x, sample_x_prime, delta, seeds, n):
    results = []
    for seed in range(seeds):
        generator = np.random.default_rng(seed)
        x, x_prime = sample_x(generator, n), sample_x_prime(generator, n)
        results.append(split_lower_bound(x, x_prime, delta))
    return np.array(results)


def test_laplace_and_gaussian_reach_their_targets():
    sigma = 3.7306
    laplace = bounds(
        lambda r, n: r.laplace(1, 1, n), lambda r, n: r.laplace(0, 1, n), 0.0, 7, 10_000
    )
    gaussian = bounds(
        lambda r, n: r.normal(1, sigma, n), lambda r, n: r.normal(0, sigma, n), 1e-5, 7, 10_000
    )
    assert np.median(laplace) >= 0.94
    assert np.median(gaussian) >= 0.44


def test_a_correct_mechanism_exceeds_its_epsilon_no_more_often_than_stated():
    # 25 trials at 5 %: more than the limit has probability at most 1e-6.
    limit = binom.isf(1e-6, 25, 0.05)
    found = bounds(lambda r, n: r.laplace(1, 1, n), lambda r, n: r.laplace(0, 1, n), 0.0, 25, 800)
    assert (found > 1.0).sum() <= limit
    identical = bounds(lambda r, n: r.normal(size=n), lambda r, n: r.normal(size=n), 0.0, 25, 300)
    assert (identical > 0.0).sum() <= limit


def test_choice_finds_two_sided_interval_and_atom_events():
    generator = np.random.default_rng(1)
    narrow, wide = generator.normal(0, 1, 2000), generator.normal(0, 3, 2000)
    outside = choose_event(narrow, wide, 0.0, test_runs=8000)
    assert outside.direction is Direction.BACKWARD
    assert outside.complement
    assert math.isfinite(outside.lower)
    assert math.isfinite(outside.upper)
    atom = choose_event(np.where(narrow > 1, 0.25, narrow), narrow, 0.0, test_runs=8000)
    assert (atom.lower, atom.upper) == (0.25, 0.25)
    assert atom.describe() == "score = 0.25 (x to x')"


def test_infinite_and_constant_scores_are_scores():
    infinite = split_lower_bound(np.full(200, np.inf), np.full(200, -np.inf), 0.0)
    assert infinite > 3
    assert split_lower_bound(np.zeros(50), np.zeros(50), 0.0) == 0.0
    assert split_lower_bound(np.full(200, 1e308), np.full(200, -1e308), 0.0) > 3


def test_pilot_is_not_tested():
    n = 1000
    scores = np.zeros(n)
    scores[: pilot_size(n)] = 1.0  # the pilot alone looks like a violation
    assert split_lower_bound(scores, np.zeros(n), 0.0) == 0.0


@pytest.mark.parametrize("sign", [1, -1])
def test_events_of_zeros_and_ones_speak_of_zeros_and_ones(sign):
    rng = np.random.default_rng(0)
    x, x_prime = (sign * (rng.random(500) < p) for p in (0.2, 0.8))
    words = choose_event(x + 0.0, x_prime + 0.0, 0.0, test_runs=1000).describe()
    assert re.fullmatch(r"score [<=>≤≥≠] (0|-?1) .*", words)


def test_bad_input_is_named():
    with pytest.raises(InputError, match="pilot_scores_x contains NaN"):
        choose_event([0.0, np.nan], [0.0, 1.0], 0.0, test_runs=10)
    with pytest.raises(InputError, match="runs is 1"):
        pilot_size(1)
    with pytest.raises(InputError, match="the pilot has 0 runs"):
        choose_event([], [1.0], 0.0, test_runs=10)
