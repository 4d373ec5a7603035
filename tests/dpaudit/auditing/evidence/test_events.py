"""Events are chosen on a pilot and tested on fresh runs.

Smoothed rates against the laws that the scores were drawn from.
Events, counts and bounds as values.
"""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest
from scipy.stats import binom, laplace, norm
from split_bounds import split_lower_bound

from dpaudit.auditing.distinguishing.design import pilot_size
from dpaudit.auditing.evidence.events import (
    Direction,
    Event,
    PairCounts,
    as_scores,
    choose_event,
    confidence_failure,
    json_number,
    smooth_rates,
)
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


EDGES = np.linspace(-4.0, 5.0, 40)


def cells(law, shift, runs, seed):
    drawn = law.rvs(loc=shift, size=runs, random_state=seed)
    return np.bincount(np.searchsorted(EDGES, drawn), minlength=41).astype(float)


def truth(law, shift):
    return np.diff(np.concatenate([[0.0], law.cdf(EDGES, loc=shift), [1.0]]))


@pytest.mark.parametrize("law", [norm, laplace])
def test_rates_are_nearer_to_the_truth_than_frequencies(law):
    values = np.concatenate([[-4.5], (EDGES[1:] + EDGES[:-1]) / 2, [5.5]])
    errors = {"smooth": 0.0, "raw": 0.0}
    for seed in range(20):
        first, second = cells(law, 1.0, 500, seed), cells(law, 0.0, 500, seed + 100)
        smooth = smooth_rates(values, first, second)
        raw = first / 500, second / 500
        for name, rates in (("smooth", smooth), ("raw", raw)):
            for side, shift in zip(rates, (1.0, 0.0), strict=True):
                errors[name] += np.square(side - truth(law, shift)).sum()
    assert errors["smooth"] < 0.9 * errors["raw"]


def test_rates_add_up_to_one_and_are_no_larger_than_all():
    first, second = cells(norm, 1.0, 300, 0), cells(norm, 0.0, 700, 1)
    values = np.concatenate([[-np.inf], (EDGES[1:] + EDGES[:-1]) / 2, [np.inf]])
    for rates in smooth_rates(values, first, second):
        assert rates.sum() == pytest.approx(1.0, abs=0.01)
        assert (rates >= 0).all()


def test_scores_without_a_spread_keep_their_frequencies():
    one = smooth_rates(np.array([-np.inf, np.inf]), np.array([1.0, 3.0]), np.array([2.0, 2.0]))
    assert [side.tolist() for side in one] == [[0.25, 0.75], [0.5, 0.5]]
    huge = np.array([-1e308, 1e308])
    for side in smooth_rates(huge, np.array([10.0, 30.0]), np.array([20.0, 20.0])):
        assert np.isfinite(side).all()


TINY = math.ulp(0.0)


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (Event(lower=1.37), "score ≥ 1.37 (x to x')"),
        (Event(upper=2, direction=Direction.BACKWARD), "score ≤ 2 (x' to x)"),
        (Event(lower=1, upper=2), "1 ≤ score ≤ 2 (x to x')"),
        (Event(lower=1, upper=2, complement=True), "score < 1 or score > 2 (x to x')"),
        (Event(lower=1, complement=True), "score < 1 (x to x')"),
        (Event(lower=3, upper=3), "score = 3 (x to x')"),
        (Event(), "any score (x to x')"),
        (Event(lower=TINY), "score > 0 (x to x')"),
        (Event(lower=TINY, complement=True), "score ≤ 0 (x to x')"),
        (Event(upper=-TINY), "score < 0 (x to x')"),
        (Event(upper=-TINY, complement=True), "score ≥ 0 (x to x')"),
        (Event(lower=math.nextafter(1, 2)), "score > 1 (x to x')"),
        (Event(lower=math.nextafter(1, 2), complement=True), "score ≤ 1 (x to x')"),
        (Event(lower=0, upper=math.nextafter(1, 0)), "0 ≤ score < 1 (x to x')"),
        (
            Event(lower=TINY, upper=math.nextafter(1, 0), complement=True),
            "score ≤ 0 or score ≥ 1 (x to x')",
        ),
    ],
)
def test_events_describe_and_serialise_themselves(event, words):
    assert event.describe() == words
    record = json.loads(json.dumps(event.to_dict(), allow_nan=False))
    assert [float(record[end]) for end in ("lower", "upper")] == [event.lower, event.upper]
    assert (record["complement"], record["direction"]) == (event.complement, event.direction)


def test_events_count_in_their_direction():
    event = Event(lower=0.5, direction=Direction.BACKWARD)
    counts = event.count([0.0, 1.0, 0.0], [1.0, 1.0])
    assert (counts.hits, counts.runs, counts.other_hits, counts.other_runs) == (2, 2, 1, 3)


def test_an_event_is_an_interval_or_its_complement():
    scores = [-np.inf, 0.0, 1.0, 2.0, np.inf]
    for complement in (False, True):
        event = Event(lower=0.0, upper=1.0, complement=complement)
        assert (event.indicator(scores) == (np.array([0, 1, 1, 0, 0]) != complement)).all()


def test_counts_are_a_record():
    counts = PairCounts(np.int64(3), 5, 0, 7)
    assert PairCounts.from_dict(json.loads(json.dumps(counts.to_dict()))) == counts


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Event(lower=2, upper=1), "lower must not exceed upper"),
        (lambda: Event(lower=math.nan), "lower must not exceed upper"),
        (lambda: Event(direction="sideways"), "direction is 'sideways'"),
        (lambda: PairCounts(3, 2, 0, 2), "hits is 3; it must be at most the 2 runs"),
        (lambda: PairCounts(1, 2, 3, 2), "other_hits is 3"),
        (lambda: PairCounts(0, 0, 0, 1), "runs is 0"),
        (lambda: PairCounts(0.5, 1, 0, 1), "hits is 0.5"),
        (lambda: as_scores(scores=[[1.0]]), "scores has type float64 and shape"),
        (lambda: as_scores(scores=[1.0, math.nan]), "scores contains NaN"),
        (lambda: confidence_failure(0.0), "confidence is 0.0"),
    ],
)
def test_bad_events_and_counts_are_named(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_numbers_as_strict_json():
    assert [json_number(each) for each in (1.5, math.inf, -math.inf)] == [1.5, "inf", "-inf"]
    assert as_scores(scores=[True, False]).tolist() == [1.0, 0.0]
