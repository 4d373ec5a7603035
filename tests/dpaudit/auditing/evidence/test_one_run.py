"""Curves as a test sees them, and families of them ordered by strength.

The one-run test of a whole curve against a linear programme, enumeration and simulation.
What one run shows of canaries that do not act on each other, against simulation.
Many numbers of guesses in one test, against enumeration.
"""

from __future__ import annotations

import itertools
import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.special import ndtr
from scipy.stats import binom, norm

from dpaudit.accounting import privacy_curve
from dpaudit.auditing.evidence.one_run import (
    Walk,
    approximate_least,
    curve_least,
    fdp_p_value,
    fdp_rejects,
    fdp_strength,
    gaussian_family,
    gaussian_least,
    independent_p_value,
    independent_strength,
    largest_refuted,
    one_run_p_value,
)
from dpaudit.base.errors import InputError
from dpaudit.mechanisms import GaussianPair, RandomizedResponse
from dpaudit.plan import AddRemove, Invocation, Plan, PrivacyUnit, TrustModel


def test_pure_case_is_a_binomial_tail():
    for epsilon in (0.0, 0.5, 3.0):
        accuracy = math.exp(epsilon) / (1 + math.exp(epsilon))
        expected = sum(
            math.comb(30, k) * accuracy**k * (1 - accuracy) ** (30 - k) for k in range(22, 31)
        )
        assert one_run_p_value(50, 30, 22, epsilon, 0.0) == pytest.approx(expected, rel=1e-9)


def test_delta_term_matches_the_theorem_spelt_out():
    m, r, v, epsilon, delta = 40, 25, 20, 0.7, 1e-3
    law = binom(r, 1 / (1 + math.exp(-epsilon)))
    alpha = max((law.cdf(v - 1) - law.cdf(v - i - 1)) / i for i in range(1, v + 1))
    expected = law.sf(v - 1) + 2 * m * delta * alpha
    assert one_run_p_value(m, r, v, epsilon, delta) == pytest.approx(expected, rel=1e-9)


def test_randomised_response_that_fails_openly_with_probability_delta():
    # All canaries are revealed with probability delta; otherwise randomised response.
    epsilon, delta, r = 0.5, 0.01, 40
    accuracy = 1 / (1 + math.exp(-epsilon))
    values = np.array([one_run_p_value(r, r, v, epsilon, delta) for v in range(r + 1)])
    law = (1 - delta) * binom.pmf(np.arange(r + 1), r, accuracy)
    law[r] += delta
    for error in (0.01, 0.05, 0.2):
        assert law[values <= error].sum() <= error


def gaussian_curve(mu):
    return lambda epsilons: GaussianPair(mu).delta(epsilons)


def plan(mechanism, **fields):
    row = PrivacyUnit("row")
    return Plan.of(Invocation(mechanism, 1, row, AddRemove(), TrustModel.CENTRAL, **fields))


def test_a_gaussian_curve_read_at_points_is_slightly_more_permissive_than_the_closed_form():
    read, exact = curve_least(gaussian_curve(1.3)), gaussian_least(1.3)
    p = np.concatenate([np.geomspace(1e-6, 0.5, 60), 1 - np.geomspace(1e-6, 0.5, 60)])
    assert (read(p) <= exact(p) * (1 + 1e-9)).all()
    np.testing.assert_allclose(read(p), exact(p), rtol=0.02, atol=1e-9)


def test_a_pure_curve_is_followed_to_its_jump():
    plan_curve = privacy_curve(plan(RandomizedResponse.calibrated(epsilon=1.0)))
    least = curve_least(plan_curve)
    assert plan_curve(np.array([1.001]))[0] == 0
    p = np.array([0.3, 0.5, 0.9])
    expected = approximate_least(1.0, 0.0)(p)
    assert (least(p) <= expected + 1e-12).all()
    np.testing.assert_allclose(least(p), expected, rtol=1e-3)


def test_least_of_a_point_spelt_out():
    least = approximate_least(math.log(2), 0.1)
    # (0.5 - 0.1) / 2, and 1 - 0.1 - 2 (1 - 0.98).
    np.testing.assert_allclose(least(np.array([0.05, 0.5, 0.98, 1.0])), [0.0, 0.2, 0.86, 0.9])
    assert gaussian_least(0.7)(np.array([0.5]))[0] == pytest.approx(ndtr(-0.7))


def test_the_largest_refuted_strength_is_the_last_below_the_threshold():
    family = gaussian_family()

    def below(limit):
        # A curve is rejected where it allows too little.
        return lambda least: least(np.array([0.5]))[0] > ndtr(-limit)

    assert largest_refuted(family, below(0.5012)) == 0.5
    assert largest_refuted(family, below(0.004)) == 0.0
    assert largest_refuted(family, below(50.0)) == family.strengths[-1]


def largest_by_linear_programme(canaries, guesses, correct, epsilons, deltas):
    """The largest P(C >= correct) that the inequalities of the module allow, written out."""
    slopes = np.concatenate([np.exp(epsilons), np.exp(-epsilons)])
    heights = np.concatenate([deltas, 1 - (1 - deltas) * np.exp(-epsilons)])
    counts = np.arange(guesses + 1)
    rows, limits = [], []
    for least in range(1, guesses + 1):
        right = np.where(counts >= least, counts / canaries, 0.0)
        wrong = np.where(counts >= least - 1, (guesses - counts) / canaries, 0.0)
        rows += [right - slope * wrong for slope in slopes]
        limits += heights.tolist()
    found = linprog(
        np.where(counts >= correct, -1.0, 0.0),
        A_ub=np.array(rows),
        b_ub=limits,
        A_eq=np.ones((1, guesses + 1)),
        b_eq=[1.0],
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    return -found.fun


@pytest.mark.parametrize(("canaries", "guesses"), [(8, 8), (15, 6), (12, 12), (40, 10)])
def test_p_value_is_the_optimum_of_a_linear_programme(canaries, guesses):
    grid = np.linspace(0.0, 6.0, 25)
    curves = [
        (np.array([0.7]), np.array([0.0])),
        (np.array([0.5]), np.array([0.05])),
        (grid, gaussian_curve(1.0)(grid)),
    ]
    for epsilons, deltas in curves:
        table = dict(zip(epsilons.tolist(), deltas.tolist(), strict=True))

        def least(p, table=table):
            return np.max([approximate_least(e, d)(p) for e, d in table.items()], axis=0)

        for correct in range(guesses // 2, guesses + 1):
            best = largest_by_linear_programme(canaries, guesses, correct, epsilons, deltas)
            value = fdp_p_value(canaries, guesses, correct, least)
            assert best * (1 - 1e-6) <= value <= min(1.0, best * 1.001)


def randomised_response_law(epsilon, guesses):
    return binom(guesses, 1 / (1 + math.exp(-epsilon)))


@pytest.mark.parametrize("guesses", [3, 8])
def test_false_alarms_under_randomised_response_by_enumeration(guesses):
    # Every canary through randomised response on its own, the first guessed from its report.
    for epsilon in (0.0, 0.4, 1.0, 2.0):
        least = approximate_least(epsilon, 0.0)
        values = np.array([fdp_p_value(guesses, guesses, c, least) for c in range(guesses + 1)])
        law = randomised_response_law(epsilon, guesses).pmf(np.arange(guesses + 1))
        assert (np.diff(values) <= 1e-12).all()
        for error in np.append(values, [0.01, 0.05, 0.2, 0.5]):
            assert law[values <= error].sum() <= error + 1e-12


def test_false_alarms_of_discrete_gaussian_scores_with_abstentions_by_enumeration():
    # Four canaries with a binary score each that is exactly f-DP for the curve through one point;
    # the auditor guesses the first two that report 1 to be in, and the others not at all.
    true_rate, false_rate = 0.6, 0.2
    edges = np.array([[0.0, 0.0], [false_rate, true_rate], [1.0, 1.0]])
    swapped = 1 - edges[::-1, ::-1]

    def least(p):
        # The inverse of the upper concave envelope of both orders of the two laws.
        one = np.interp(p, edges[:, 1], edges[:, 0])
        return np.minimum(one, np.interp(p, swapped[:, 1], swapped[:, 0]))

    size, guesses = 4, 2
    law = np.zeros(guesses + 1)
    for inside in itertools.product([0, 1], repeat=size):
        for report in itertools.product([0, 1], repeat=size):
            chance = 0.5**size
            for member, shown in zip(inside, report, strict=True):
                rate = true_rate if member else false_rate
                chance *= rate if shown else 1 - rate
            guessed = [j for j in range(size) if report[j]][:guesses]
            law[sum(inside[j] for j in guessed)] += chance
    assert law.sum() == pytest.approx(1.0)
    for correct in range(guesses + 1):
        assert law[correct:].sum() <= fdp_p_value(size, guesses, correct, least) + 1e-12


@pytest.mark.parametrize("guesses", [40, 100, 200])
def test_false_alarms_of_exact_gaussian_mechanisms(guesses):
    mu, canaries, trials = 1.0, 400, 2000
    rng = np.random.default_rng(7)
    members = rng.random((trials, canaries)) < 0.5
    order = np.argsort(rng.normal(mu * members), axis=1)
    truth = np.take_along_axis(members, order, axis=1)
    low = guesses // 2
    correct = truth[:, canaries - (guesses - low) :].sum(axis=1) + (~truth[:, :low]).sum(axis=1)

    def refuted(curve, error):
        every = [fdp_rejects(canaries, guesses, c, curve, error) for c in range(guesses + 1)]
        assert any(every)
        return int(np.array(every)[correct].sum())

    # More alarms than that would be chance once in 10^7.
    for error in (0.2, 0.5):
        assert refuted(gaussian_least(mu), error) <= binom.isf(1e-7, trials, error)
    # A curve that is too strict is found out by the same guesses.
    assert refuted(gaussian_least(0.4), 0.05) > 0.7 * trials


def test_is_tighter_than_the_bound_of_2023_for_gaussian_canaries():
    rng = np.random.default_rng(3)
    family, delta = gaussian_family(), 1e-5
    for mu, canaries, guesses in ((0.5, 1000, 250), (1.0, 1000, 62), (2.0, 500, 125)):
        members = rng.random(canaries) < 0.5
        truth = members[np.argsort(rng.normal(mu * members))]
        low = guesses // 2
        correct = int(truth[canaries - (guesses - low) :].sum() + (~truth[:low]).sum())
        plain = Walk(canaries, (guesses,), delta).lower_bound([correct])
        strength = fdp_strength(canaries, guesses, correct, family, 0.95)
        refined = family.epsilon(strength, delta)
        assert 1.3 * plain < refined < GaussianPair(mu).least_epsilon(delta)


def test_is_close_to_the_binomial_bound_where_that_one_is_exact():
    for correct in (40, 50, 58):
        plain = one_run_p_value(100, 60, correct, 0.5, 0.0)
        assert plain <= fdp_p_value(100, 60, correct, approximate_least(0.5, 0.0)) <= 4 * plain


def test_rejection_and_p_value_agree():
    least = gaussian_least(0.8)
    for correct in range(20, 41):
        value = fdp_p_value(100, 40, correct, least)
        for error in (0.5, 0.05, 1e-4):
            if abs(math.log(value / error)) > 1e-3:
                assert fdp_rejects(100, 40, correct, least, error) == (value <= error)


@settings(deadline=None, max_examples=60)
@given(
    st.integers(1, 60).flatmap(
        lambda g: st.tuples(st.integers(g, 120), st.just(g), st.integers(0, g))
    ),
    st.floats(0.05, 4.0),
    st.floats(1.01, 2.0),
)
def test_p_value_grows_with_the_curve_and_shrinks_with_right_guesses(counts, mu, factor):
    canaries, guesses, correct = counts
    value = fdp_p_value(canaries, guesses, correct, gaussian_least(mu))
    assert 0 < value <= 1
    assert value <= fdp_p_value(canaries, guesses, correct, gaussian_least(mu * factor)) * 1.001
    if correct:
        fewer = fdp_p_value(canaries, guesses, correct - 1, gaussian_least(mu))
        assert value <= fewer * 1.001


def test_no_right_guess_has_p_value_one():
    assert fdp_p_value(10, 10, 0, gaussian_least(0.1)) == 1.0


@pytest.mark.parametrize("guesses", [1, 7, 20])
def test_under_pure_privacy_every_guess_is_a_coin(guesses):
    least, chance = approximate_least(1.0, 0.0), 1 / (1 + np.exp(-1.0))
    for correct in range(guesses + 1):
        exact = binom.sf(correct - 1, guesses, chance)
        found = independent_p_value(20, guesses, correct, least)
        assert exact <= found <= exact * (1 + 1e-6) + 1e-8


def test_of_all_guesses_on_normal_scores_the_best_threshold_decides():
    exact = binom.sf(649, 1000, norm.cdf(0.5))
    found = independent_p_value(1000, 1000, 650, gaussian_least(1.0))
    assert found == pytest.approx(exact, rel=1e-6)


def right_guesses(shift, canaries, guesses, trials, seed):
    """Right guesses on the scores furthest from the middle, shape (trials,)."""
    rng = np.random.default_rng(seed)
    members = rng.random((trials, canaries)) < 0.5
    scores = rng.normal(shift * members) - shift / 2
    surest = np.argsort(-np.abs(scores), axis=1)[:, :guesses]
    right = (scores > 0) == members
    return np.take_along_axis(right, surest, axis=1).sum(axis=1)


@pytest.mark.parametrize("shift", [0.5, 2.0])
def test_the_surest_guesses_on_normal_scores_have_this_law(shift):
    """Within 5 standard errors of 40 000 simulations: false alarms below 1e-6 in all."""
    right = right_guesses(shift, 30, 8, 40_000, seed=1)
    for correct in (4, 6, 7, 8):
        share = (right >= correct).mean()
        found = independent_p_value(30, 8, correct, gaussian_least(shift))
        margin = 5 * np.sqrt(share * (1 - share) / right.size) + 1e-4
        assert share - margin <= found <= share + margin + 2e-3  # rounded up, by intervals


def test_the_strength_is_below_the_true_one_and_near_it():
    """At 1 - 10⁻⁸ for each of 20 runs a false alarm has probability 2·10⁻⁷."""
    right = right_guesses(1.0, 1000, 500, 20, seed=2)
    family = gaussian_family()
    bounds = [independent_strength(1000, 500, int(c), family, 1 - 1e-8) for c in right]
    assert max(bounds) <= 1.0
    assert np.median(bounds) > 0.5
    assert independent_strength(1000, 500, 250, family, 0.95) == 0.0


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
        (lambda: one_run_p_value(10, 11, 5, 1.0, 0.0), "guesses is 11"),
        (lambda: one_run_p_value(10, 5, 6, 1.0, 0.0), "correct is 6"),
        (lambda: gaussian_least(-1), "mu is -1"),
        (lambda: curve_least(lambda epsilons: np.zeros(3)), "curve has shape"),
        (lambda: fdp_p_value(10, 11, 5, gaussian_least(1.0)), "guesses is 11"),
        (lambda: fdp_rejects(10, 5, 6, gaussian_least(1.0), 0.05), "correct is 6"),
        (lambda: fdp_rejects(10, 5, 5, gaussian_least(1.0), 0), "error is 0"),
        (lambda: independent_p_value(10, 11, 5, gaussian_least(1.0)), "guesses is 11"),
        (lambda: independent_strength(10, 5, 5, gaussian_family(), 1.0), "confidence is 1"),
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
