"""A score of entries that tell only together."""

import numpy as np
import pytest

from dpaudit import AuditPair
from dpaudit.auditing import audit_release
from dpaudit.auditing.distinguishing.covariances import NormalScore

RNG = np.random.default_rng


def beside_its_noise(data, size, rng):
    noise = rng.normal(scale=1e3, size=size)
    return np.stack([data + noise, noise], axis=1)


def exact_sum(data, size, rng):
    noisy = rng.laplace(size=(size, 6))
    if data:
        noisy[:, 5] = noisy[:, 0] + noisy[:, 2]
    return noisy


@pytest.mark.parametrize("release", [beside_its_noise, exact_sum])
def test_noise_that_can_be_taken_away_again_is_found(release):
    record = audit_release(release, AuditPair(0.0, 1.0), epsilon=1.0, runs=2000, seed=1)
    assert record.refuted
    assert record.epsilon_lower > 5
    assert "normal laws" in record.method


def test_it_is_the_ratio_of_two_normal_laws():
    x, other = RNG(0).normal(size=(40_000, 2)), RNG(1).normal([1, 0], [1, 2], size=(40_000, 2))
    score = NormalScore.fit(x, other)
    points = np.array([[0.0, 0.0], [1.0, 2.0]])
    expected = (points[:, 0] - 1) ** 2 + points[:, 1] ** 2 / 4 - np.square(points).sum(axis=1)
    assert score(points) == pytest.approx(expected, abs=0.15)


@pytest.mark.parametrize(
    "outputs", [RNG(0).normal(size=(50, 1)), RNG(0).normal(size=(8, 3)), np.full((50, 2), np.inf)]
)
def test_there_is_none_of_numbers_of_few_runs_and_of_infinities(outputs):
    assert NormalScore.fit(outputs, outputs) is None


@pytest.mark.parametrize("scale", [1e-300, 5e-324, 1.0, 1e149])
def test_constant_and_extreme_entries_give_numbers(scale):
    outputs = scale * np.c_[np.ones(50), RNG(0).integers(0, 2, 50), np.zeros(50)]
    assert np.isfinite(NormalScore.fit(outputs, outputs)(outputs)).all()


def test_many_entries_are_reduced_to_those_that_differ():
    x, other = RNG(0).normal(size=(400, 300)), RNG(1).normal(size=(400, 300))
    other[:, 7] += 3
    score = NormalScore.fit(x, other)
    assert 7 in score.places
    assert score(x).mean() > score(other).mean()
