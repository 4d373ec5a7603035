import math

import mpmath
import numpy as np
import pytest
from mechanism_conformance import MechanismConformance, grid_delta

from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.mechanisms import Mechanism, RandomizedResponse


class TestRandomizedResponse(MechanismConformance):
    mechanism = RandomizedResponse(p=0.5, k=3)
    value = 0
    neighbour = 2
    unlike = RandomizedResponse(p=0.8, k=3)
    bad_parameters = ({"p": 0}, {"p": 1.5}, {"k": 1}, {"k": 2.0}, {"p": math.nan})
    bad_values = (math.nan, 3, -1, 0.5, "a", None)

    def mean(self):
        return 0.5

    def variance(self):
        return (1 + 4) / 6 - 0.25

    def exact_delta(self, epsilon):
        answers = np.arange(3)
        return grid_delta(
            self.mechanism.log_density(answers, 0), self.mechanism.log_density(answers, 2), epsilon
        )

    def test_partial_sensitivity_is_refused(self):
        with pytest.raises(InputError, match="0 or 1"):
            self.mechanism.pair(0.5)


def test_known_epsilon():
    assert float(RandomizedResponse(p=0.5, k=2).pair(1).pure_epsilon) == pytest.approx(math.log(3))


@pytest.mark.parametrize(("epsilon", "k"), [(0.1, 2), (1.0, 2), (3.0, 10)])
def test_calibration(epsilon, k):
    mechanism = RandomizedResponse.calibrated(epsilon=epsilon, k=k)
    assert epsilon * (1 - 1e-9) < float(mechanism.pair(1).pure_epsilon) <= epsilon


def test_missing_field_is_named():
    with pytest.raises(InputError, match="lacks the key 'p'"):
        Mechanism.parse({"kind": "randomized-response"})
    with pytest.raises(InputError, match="must be one of"):
        Mechanism.parse({"kind": "magic"})


def test_probabilities_are_those_of_the_density_and_exact():
    mechanism = RandomizedResponse(p=0.3, k=3)
    masses = mechanism.probabilities([0, 2])
    assert sum(masses) == 1
    outputs = np.array([[first, second] for first in range(3) for second in range(3)])
    np.testing.assert_allclose(
        np.array(masses, dtype=float), np.exp(mechanism.log_density(outputs, [0, 2]))
    )
    with pytest.raises(UnsupportedError, match="more than 1000000 outputs"):
        mechanism.probabilities([0] * 13)


@pytest.mark.parametrize(
    ("p", "k"), [(1e-300, 2**53), (5e-324, 2), (1e-307, 3), (2.0**-1000, 2**53)]
)
def test_a_lie_that_hardly_ever_comes_has_the_exact_epsilon(p, k):
    with mpmath.workdps(60):
        exact = mpmath.log1p(mpmath.mpf(k) * (1 - mpmath.mpf(p)) / mpmath.mpf(p))
        found = RandomizedResponse(p, k).pair(1).pure_epsilon
        assert exact <= mpmath.mpf(found) <= exact * (1 + mpmath.mpf(2) ** -48)


def test_an_answer_that_cannot_be_has_no_tail():
    mechanism = RandomizedResponse(0.5, 2**53)
    tails = mechanism.tails([-1, 2**53, 3], np.array([3, 3, 3]), np.random.default_rng(0))
    assert tails.tails[:2].tolist() == [0.0, 0.0]
    assert tails.tails[2] > 0
