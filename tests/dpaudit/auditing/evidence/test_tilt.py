"""Smoothed rates against the laws that the scores were drawn from."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import laplace, norm

from dpaudit.auditing.evidence.events import smooth_rates

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
