"""What one run shows of canaries that do not act on each other, against simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, norm

from dpaudit.auditing.evidence.one_run import (
    approximate_least,
    gaussian_family,
    gaussian_least,
    independent_p_value,
    independent_strength,
)
from dpaudit.base.errors import InputError


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


def test_bad_counts_are_named():
    with pytest.raises(InputError, match="guesses is 11"):
        independent_p_value(10, 11, 5, gaussian_least(1.0))
    with pytest.raises(InputError, match="confidence is 1"):
        independent_strength(10, 5, 5, gaussian_family(), 1.0)
