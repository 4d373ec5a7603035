"""The one-run test of a whole curve against a linear programme, enumeration and simulation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import binom

from dpaudit.auditing.evidence.one_run import (
    Walk,
    approximate_least,
    fdp_p_value,
    fdp_rejects,
    fdp_strength,
    gaussian_family,
    gaussian_least,
    one_run_p_value,
)
from dpaudit.base.errors import InputError
from dpaudit.mechanisms import GaussianPair


def gaussian_curve(mu):
    return lambda epsilons: GaussianPair(mu).delta(epsilons)


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


def test_bad_input_is_named():
    with pytest.raises(InputError, match="guesses is 11"):
        fdp_p_value(10, 11, 5, gaussian_least(1.0))
    with pytest.raises(InputError, match="correct is 6"):
        fdp_rejects(10, 5, 6, gaussian_least(1.0), 0.05)
    with pytest.raises(InputError, match="error is 0"):
        fdp_rejects(10, 5, 5, gaussian_least(1.0), 0)
