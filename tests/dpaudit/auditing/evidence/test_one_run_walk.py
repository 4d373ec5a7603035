"""Many numbers of guesses in one test, against enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit.auditing.evidence.one_run import Walk, one_run_p_value
from dpaudit.base.errors import InputError

SIZES = (2, 5, 9)


def coin(epsilon):
    return 1 / (1 + np.exp(-epsilon))


def unlikely(correct, sizes, epsilon):
    """The smallest tail of any of the counts."""
    return min(binom.sf(c - 1, r, coin(epsilon)) for c, r in zip(correct, sizes, strict=True))


def enumerated(chances):
    """Every outcome of independent guesses: its chance, and how many are right of each size."""
    for outcome in product((0, 1), repeat=len(chances)):
        right = np.array(outcome)
        chance = np.prod(np.where(right, chances, 1 - np.asarray(chances)))
        yield chance, [int(right[:size].sum()) for size in SIZES]


@pytest.mark.parametrize("epsilon", [0.0, 0.7, 2.0])
@pytest.mark.parametrize("seen", [(0, 3, 5), (2, 4, 6), (2, 5, 9), (0, 0, 0)])
def test_without_delta_the_p_value_is_exact(epsilon, seen):
    limit = unlikely(seen, SIZES, epsilon) * (1 + 1e-9)
    chance = sum(
        chance
        for chance, right in enumerated([coin(epsilon)] * 9)
        if unlikely(right, SIZES, epsilon) <= limit
    )
    assert Walk(9, SIZES).p_value(seen, epsilon) == pytest.approx(chance, rel=1e-8)
    assert Walk(50, SIZES).p_value(seen, epsilon) == pytest.approx(chance, rel=1e-8)


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("delta", [1e-3, 0.05, 0.2])
def test_a_mechanism_that_leaks_whole_canaries_keeps_within_the_bound(delta, together):
    """With chance δ each (or all) of 9 canaries is told, else by randomised response: (ε, δ)."""
    epsilon, walk = 0.7, Walk(9, SIZES, delta)
    chances = {}  # of the right guesses, those that are told first
    shares = binom.pmf(np.arange(10), 9, delta)
    if together:
        shares = np.array([1 - delta, *[0.0] * 8, delta])
    for told, share in enumerate(shares):
        for chance, right in enumerated([1.0] * told + [coin(epsilon)] * (9 - told)):
            chances[tuple(right)] = chances.get(tuple(right), 0) + chance * share
    assert sum(chances.values()) == pytest.approx(1)
    p_values = {right: walk.p_value(right, epsilon) for right in chances}
    for level in sorted(set(p_values.values())):
        reached = sum(chance for right, chance in chances.items() if p_values[right] <= level)
        assert reached <= level * (1 + 1e-9)


def test_of_one_size_it_is_no_weaker_than_steinke_nasr_and_jagielski():
    for correct in range(0, 101, 5):
        of_walk = Walk(1000, (100,), 1e-4).p_value([correct], 1.0)
        assert of_walk <= one_run_p_value(1000, 100, correct, 1.0, 1e-4) * (1 + 1e-8)


@pytest.mark.parametrize("delta", [0.0, 1e-5, 1e-3])
def test_the_bound_is_the_last_of_the_grid_before_the_first_that_stands(delta):
    walk, right = Walk(400, (50, 100, 200), delta), [46, 85, 150]
    grid = 0.005 * np.arange(1000)
    stands = next(place for place, e in enumerate(grid) if walk.p_value(right, e) > 0.05)
    assert walk.lower_bound(right) == pytest.approx(grid[max(0, stands - 1)])
    assert (walk.lower_bound(right) > 1) == (delta < 1e-3)  # there m δ / 2 is 0.2


def test_nothing_right_shows_nothing():
    assert Walk(100, (10, 20)).lower_bound([0, 0]) == 0.0
    assert Walk(100, (10, 20)).p_value([0, 0], 1.0) == 1.0


def test_bounds_above_the_truth_are_rare():
    """Exactly, over all counts of randomised response, the worst case at δ = 0."""
    walk = Walk(12, (6, 12))
    inside, after = (binom.pmf(np.arange(7), 6, coin(1.0)) for _ in range(2))
    above = sum(
        inside[few] * after[more]
        for few, more in product(range(7), repeat=2)
        if walk.lower_bound([few, few + more], 0.9) > 1.0
    )
    assert above <= 0.1


def test_many_sizes_cost_less_than_shares_of_the_error():
    sizes, right = (62, 125, 250, 500), [60, 115, 216, 395]
    together = Walk(1000, sizes, 1e-5).lower_bound(right)
    by_shares = max(
        Walk(1000, (size,), 1e-5).lower_bound([correct], 1 - 0.05 / 4)
        for size, correct in zip(sizes, right, strict=True)
    )
    assert together > by_shares + 0.05


def test_what_is_needed_is_the_first_count_that_rejects():
    walk = Walk(100, (10, 30), 1e-4)
    for place, fewest in enumerate(walk.needed(0.5, 0.05)):
        right = [0, 0]
        right[place] = fewest
        assert walk.p_value(right, 0.5) <= 0.05
        right[place] -= 1
        assert walk.p_value(right, 0.5) > 0.05
    assert Walk(100, (3,)).needed(5.0, 0.05) == [4]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Walk(10, ()), r"sizes is \(\)"),
        (lambda: Walk(10, (0, 2)), "it must be increasing numbers above 0"),
        (lambda: Walk(10, (4, 4)), "it must be increasing"),
        (lambda: Walk(10, (4, 11)), "guesses is 11; it must be at most the 10"),
        (lambda: Walk(10, (4,), 1.0), "delta is 1"),
        (lambda: Walk(10, (4,)).p_value([5], 1.0), "correct is 5; it must be at most the 4"),
        (lambda: Walk(10, (4,)).p_value([4], -1.0), "epsilon is -1"),
        (lambda: Walk(10, (4,)).lower_bound([4], 1.0), "confidence is 1"),
    ],
)
def test_bad_input_is_named(make, words):
    with pytest.raises(InputError, match=words):
        make()
