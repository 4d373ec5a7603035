import numpy as np
import pytest
from mechanism_conformance import MechanismConformance, grid_delta

from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.mechanisms import Gaussian, IndividualGaussian, Laplace
from dpaudit.mechanisms.exact import ExactSource


class TestIndividualGaussian(MechanismConformance):
    """Three steps that one unit moves by a length of 1 together."""

    mechanism = IndividualGaussian(sigma=1.6, steps=3)
    bad_parameters = ({"sigma": 0}, {"steps": 0}, {"steps": 1.5})
    unlike = Laplace(scale=1.6)
    value = (0.0, 0.0, 0.0)
    neighbour = (0.6, 0.0, 0.8)

    def mean(self):
        return 0.0

    def variance(self):
        return 1.6**2

    def exact_delta(self, epsilon):
        return float(Gaussian(1.6).pair(1.0).delta(epsilon))


def test_steps_do_not_count():
    assert IndividualGaussian(2.0, 10**6).pair(1.0).mu == Gaussian(2.0).pair(1.0).mu
    calibrated = IndividualGaussian.calibrated(epsilon=1, delta=1e-5, sensitivity=1, steps=7)
    assert (calibrated.steps, round(calibrated.sigma, 4)) == (7, 3.7306)
    with pytest.raises(InputError, match="clip_norm is of one release"):
        IndividualGaussian.calibrated(epsilon=1, delta=1e-5, sensitivity=1, clip_norm=1.0)


def test_a_running_release_has_the_law_of_the_whole():
    mechanism = IndividualGaussian(2.0, steps=3)
    sums = mechanism.start((2,), np.random.default_rng(4))
    released = np.array([sums.add([step, 0.0]) for step in range(3)])
    noise = np.random.default_rng(4).normal(scale=2.0, size=(3, 2))
    np.testing.assert_array_equal(released, np.array([[0, 0], [1, 0], [2, 0]]) + noise)
    with pytest.raises(InputError, match="steps is 3 and all have been released"):
        sums.add([0.0, 0.0])


def test_it_has_no_exact_sampler_yet():
    assert not IndividualGaussian.has_exact_sampler()
    with pytest.raises(UnsupportedError, match="individual-gaussian has no exact sampler"):
        IndividualGaussian(1.0, 2).require_exact(1.0, ExactSource)


def test_adaptive_steps_cost_no_more_than_one_release():
    """By quadrature: a second step that depends on the first, in the worst way that is allowed."""
    grid = np.arange(-9, 9, 0.02)
    one, two = np.meshgrid(grid, grid, indexing="ij")
    pair = IndividualGaussian(1.0, 2).pair(1.0)
    for first in (0.3, 0.7, 1.0):
        rest = np.sqrt(1 - first**2) * np.where(one > first / 2, 1.0, -0.4)
        log_p = -((one - first) ** 2 + (two - rest) ** 2) / 2
        log_q = -(one**2 + two**2) / 2
        for epsilon in (0.1, 1.0, 2.0):
            spent = grid_delta(log_p.ravel(), log_q.ravel(), epsilon, 0.02**2 / (2 * np.pi))
            back = grid_delta(log_q.ravel(), log_p.ravel(), epsilon, 0.02**2 / (2 * np.pi))
            assert max(spent, back) <= float(pair.delta(epsilon)) * (1 + 1e-6)
