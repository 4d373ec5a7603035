"""Membership inference on DP-FTS-DE: exact scores and valid bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from federated_game import ALPHA, outputs
from scipy.stats import binom, multivariate_normal

from audits.catalogue.claims import gaussian_epsilon
from audits.catalogue.papers import FEDERATED
from audits.federated.game import (
    CanaryLikelihoodRatio,
    canary_pair,
    certified,
    landmines,
    proved_curve,
    white_box,
)
from audits.federated.servers import (
    Served,
)
from dpaudit import guarantee
from dpaudit.base.errors import InputError
from private_bo.federated import DPFTSDE


@pytest.mark.parametrize("rate", [0.35, 1.0])
def test_is_the_ratio_of_the_mixture_densities(rate):
    """Against scipy's normal density of each round's joint vector."""
    algorithm = landmines(rate, rounds=6, sharp_rounds=2, fading_rounds=3)
    agent = canary_pair(algorithm).x["agent"]
    weights = algorithm.public_weights.values[:, :, agent]
    transcripts, _ = outputs(algorithm, 20)
    found = CanaryLikelihoodRatio.of(algorithm)(transcripts)
    for transcript, score in zip(transcripts, found, strict=True):
        expected = 0.0
        for t, broadcast in enumerate(transcript):
            sigma = algorithm.noise_multiplier * weights_max(algorithm, t) * 22 / rate
            law = multivariate_normal(cov=sigma**2 * np.eye(4))
            without = law.pdf(broadcast)
            shift = weights[t] * 22 / 2 / rate
            with_canary = rate * law.pdf(broadcast - shift) + (1 - rate) * without
            expected += math.log(with_canary / without)
        assert score == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_further_entries_are_noise():
    subject = Served(agents=8, regions=2, rate=0.5, rounds=5, features=6)
    with_canary, _ = outputs(subject, 3)
    score = CanaryLikelihoodRatio.of(subject)
    assert with_canary.shape == (3, 5, 2, 6)
    assert np.array_equal(score(with_canary), score(with_canary[..., 0]))


def test_needs_independent_sampling():
    fixed = DPFTSDE(agents=8, rate=0.5, sampling="fixed-size", rounds=3)
    with pytest.raises(InputError, match="poisson"):
        CanaryLikelihoodRatio.of(fixed)


def weights_max(algorithm, t):
    return algorithm.public_weights.values[t].max()


def test_its_loss_is_what_is_certified():
    """E[(1 − e^(ε−L))₊] against the PLD in either direction; five standard errors."""
    algorithm = landmines()
    score, size = CanaryLikelihoodRatio.of(algorithm), 50_000
    with_canary, without = (score(side) for side in outputs(algorithm, size))
    for epsilon in (0.5, 1.5, 2.5):
        gains = [np.maximum(0, -np.expm1(epsilon - losses)) for losses in (with_canary, -without)]
        worst = max(gains, key=np.mean)
        proved = float(proved_curve(algorithm)(np.array([epsilon]))[0])
        assert worst.mean() == pytest.approx(proved, abs=5 * worst.std() / size**0.5 + 1e-4)


def test_mean_likelihood_ratio_is_one():
    algorithm = landmines(0.1, 2.0, rounds=20)
    _, without = outputs(algorithm, 50_000)
    ratios = np.exp(CanaryLikelihoodRatio.of(algorithm)(without))
    assert ratios.mean() == pytest.approx(1, abs=5 * ratios.std() / 50_000**0.5)


def test_most_of_the_certified_epsilon_is_real():
    algorithm = landmines()
    bounds = white_box(algorithm)
    claim = certified(algorithm)
    assert claim.delta == pytest.approx(29**-1.1)
    assert 0.75 * claim.epsilon <= bounds.epsilon <= claim.epsilon
    assert 0.7 * claim.epsilon <= bounds.add <= bounds.remove
    first, again = (white_box(algorithm, runs=2_000, seed=1) for _ in range(2))
    assert first == again


def test_they_hold_where_the_truth_is_known():
    """Everyone sampled: a Gaussian of μ = √T; errors at most 5 %, tested at 1e-6."""
    algorithm = DPFTSDE(agents=4, regions=1, rate=1.0, rounds=4, delta=1e-2)
    truth = gaussian_epsilon(2.0, 1e-2)
    found = [white_box(algorithm, runs=200, seed=seed) for seed in range(12)]
    errors = sum(bounds.epsilon > truth for bounds in found)
    assert binom.sf(errors - 1, len(found), 0.05) > ALPHA
    assert np.median([bounds.epsilon for bounds in found]) > 0.35 * truth


@pytest.mark.parametrize("runs", [0, 1, 1.5])
def test_too_few_runs(runs):
    with pytest.raises(InputError, match="runs"):
        white_box(landmines(), runs=runs)


def test_the_small_model_of_the_catalogue_has_the_same_loss():
    game = DPFTSDE(agents=20, regions=1, rate=0.25, rounds=5, delta=1e-5)
    assert certified(game).epsilon == pytest.approx(guarantee(FEDERATED, 1e-5).epsilon, rel=1e-9)
