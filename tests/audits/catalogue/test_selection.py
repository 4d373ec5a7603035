"""Losses of selection mechanisms by numerical integration, and the catalogue's own arithmetic."""

import math

import numpy as np
import pytest

from audits.catalogue import gaussian, selection
from audits.catalogue.claims import epsilon_of, gaussian_epsilon, true_epsilon
from dpaudit import RandomizedResponse
from dpaudit.mechanisms import FinitePair, GaussianPair


def test_noisy_max_by_numerical_integration():
    """The densities of the maximum of 10 queries at 0 or 1 with Lap(2) reach a ratio of e^5."""
    grid = np.linspace(-60, 60, 40_001)
    law = np.where(grid < 0, np.exp(grid / 2) / 2, 1 - np.exp(-grid / 2) / 2)
    shifted = np.where(grid < 1, np.exp((grid - 1) / 2) / 2, 1 - np.exp(-(grid - 1) / 2) / 2)
    at_0, at_1 = (np.diff(cumulative**10) for cumulative in (law, shifted))
    inside = (at_0 > 1e-280) & (at_1 > 1e-280)
    assert np.abs(np.log(at_0[inside] / at_1[inside])).max() == pytest.approx(5.0, abs=1e-3)


def test_the_least_rho_of_randomised_response_is_that_of_its_pair():
    mechanism = RandomizedResponse(p=0.4, k=2)
    pair = mechanism.pair(1)
    assert isinstance(pair, FinitePair)
    orders = np.array([1.01, *np.linspace(1.05, 4, 60), *np.geomspace(4, 1000, 60)])
    masses = [[float(mass) for mass in mechanism.probabilities(data)] for data in (0, 1)]
    wanted = (pair.renyi(orders) / orders).max()
    assert selection.least_rho(*masses) == pytest.approx(wanted)


def test_a_classic_calibration_at_epsilon_10_is_refuted_by_its_closed_form():
    record = gaussian._classic()
    assert record.refuted
    assert record.epsilon_lower == pytest.approx(10.39, abs=0.005)


def test_true_epsilons():
    sigma = 3.730631634816464  # of ε = 1 at δ = 1e-5 (Balle and Wang 2018)
    assert gaussian_epsilon(1 / sigma) == pytest.approx(1.0, abs=1e-6)
    assert epsilon_of(GaussianPair(1 / sigma)) > gaussian_epsilon(1 / sigma)
    assert true_epsilon(GaussianPair(0.0), 0.0) == 0
    assert true_epsilon(GaussianPair(60.0), 1e-5) == math.inf
