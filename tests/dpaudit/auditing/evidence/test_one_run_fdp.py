from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.special import ndtr
from scipy.stats import binom

from dpaudit.auditing.evidence.gdp_estimate import gdp_delta, gdp_epsilon
from dpaudit.auditing.evidence.one_run import one_run_lower_bound, one_run_p_value
from dpaudit.auditing.evidence.one_run_families import (
    approximate_least,
    curve_least,
    gaussian_family,
    gaussian_least,
    largest_refuted,
    scaled_family,
)
from dpaudit.auditing.evidence.one_run_fdp import fdp_p_value, fdp_rejects, fdp_strength
from dpaudit.errors import InputError
from dpaudit.mechanisms import Gaussian, RandomizedResponse
from dpaudit.plan import AddRemove, Invocation, Plan, PoissonSampling, PrivacyUnit, TrustModel


def gaussian_curve(mu):
    return lambda epsilons: np.array([gdp_delta(float(e), mu) for e in np.asarray(epsilons)])


def plan(mechanism, **fields):
    row = PrivacyUnit("row")
    return Plan.of(Invocation(mechanism, 1, row, AddRemove(), TrustModel.CENTRAL, **fields))


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
        plain = one_run_lower_bound(canaries, guesses, correct, delta).epsilon
        strength = fdp_strength(canaries, guesses, correct, family, 0.95)
        refined = family.epsilon(strength, delta)
        assert 1.3 * plain < refined < gdp_epsilon(mu, delta)


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


def test_a_gaussian_curve_read_at_points_is_slightly_more_permissive_than_the_closed_form():
    read, exact = curve_least(gaussian_curve(1.3)), gaussian_least(1.3)
    p = np.concatenate([np.geomspace(1e-6, 0.5, 60), 1 - np.geomspace(1e-6, 0.5, 60)])
    assert (read(p) <= exact(p) * (1 + 1e-9)).all()
    np.testing.assert_allclose(read(p), exact(p), rtol=0.02, atol=1e-9)


def test_a_pure_curve_is_followed_to_its_jump():
    least = curve_least(plan_curve := privacy_curve_of(RandomizedResponse.calibrated(epsilon=1.0)))
    assert plan_curve(np.array([1.001]))[0] == 0
    p = np.array([0.3, 0.5, 0.9])
    expected = approximate_least(1.0, 0.0)(p)
    assert (least(p) <= expected + 1e-12).all()
    np.testing.assert_allclose(least(p), expected, rtol=1e-3)


def privacy_curve_of(mechanism):
    from dpaudit.accounting import privacy_curve

    return privacy_curve(plan(mechanism))


def test_least_of_a_point_spelt_out():
    least = approximate_least(math.log(2), 0.1)
    # (0.5 - 0.1) / 2, and 1 - 0.1 - 2 (1 - 0.98).
    np.testing.assert_allclose(least(np.array([0.05, 0.5, 0.98, 1.0])), [0.0, 0.2, 0.86, 0.9])
    assert gaussian_least(0.7)(np.array([0.5]))[0] == pytest.approx(ndtr(-0.7))


def test_the_scaled_family_is_the_plan_at_strength_one():
    steps = plan(Gaussian(2.0), count=4)
    family = scaled_family(steps)
    # Four times sigma 2 is mu = 1; with half the noise 2.
    for strength, mu in ((1.0, 1.0), (2.0, 2.0)):
        assert family.epsilon(strength, 1e-5) == pytest.approx(gdp_epsilon(mu, 1e-5), rel=1e-6)
        np.testing.assert_allclose(
            family.least(strength)(np.array([0.1, 0.6])),
            gaussian_least(mu)(np.array([0.1, 0.6])),
            rtol=0.02,
        )
    assert family.epsilon(0.0, 1e-5) == 0.0
    assert 1.0 in family.strengths
    assert list(family.strengths) == sorted(family.strengths)


def test_the_largest_refuted_strength_is_the_last_below_the_threshold():
    family = gaussian_family()

    def below(limit):
        # A curve is rejected where it allows too little.
        return lambda least: least(np.array([0.5]))[0] > ndtr(-limit)

    assert largest_refuted(family, below(0.5012)) == 0.5
    assert largest_refuted(family, below(0.004)) == 0.0
    assert largest_refuted(family, below(50.0)) == family.strengths[-1]


def test_bad_input_is_named():
    with pytest.raises(InputError, match="guesses is 11"):
        fdp_p_value(10, 11, 5, gaussian_least(1.0))
    with pytest.raises(InputError, match="correct is 6"):
        fdp_rejects(10, 5, 6, gaussian_least(1.0), 0.05)
    with pytest.raises(InputError, match="error is 0"):
        fdp_rejects(10, 5, 5, gaussian_least(1.0), 0)
    with pytest.raises(InputError, match="mu is -1"):
        gaussian_least(-1)
    with pytest.raises(InputError, match="curve has shape"):
        curve_least(lambda epsilons: np.zeros(3))
    with pytest.raises(InputError, match="no noise that can be scaled"):
        scaled_family(plan(RandomizedResponse.calibrated(epsilon=1.0)))
    assert scaled_family(plan(Gaussian(1.0), sampling=PoissonSampling(0.1))).strengths
