from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import softmax

from dpaudit.errors import InputError
from dpaudit.mechanisms import ExponentialMechanism, Mechanism

UTILITIES = np.array([0.0, 1.0, 2.5, -1.0])
CHOICE = ExponentialMechanism(epsilon=1.5, utility_sensitivity=2.0)


def test_choices_have_the_declared_law() -> None:
    drawn = CHOICE.release_many(UTILITIES, 40_000, np.random.default_rng(3))
    expected = softmax(1.5 * UTILITIES / 4.0)
    counts = np.bincount(drawn, minlength=4)
    assert stats.chisquare(counts, 40_000 * expected).pvalue > 1e-6
    assert np.exp(CHOICE.log_density(np.arange(4), UTILITIES)) == pytest.approx(expected)
    assert CHOICE.log_density(np.array([-1, 4]), UTILITIES).tolist() == [-math.inf, -math.inf]


def test_its_pair_dominates_random_neighbours() -> None:
    rng = np.random.default_rng(5)
    pair = CHOICE.pair(1)
    for _ in range(200):
        other = UTILITIES + rng.choice([-2.0, 2.0], size=4)
        p, q = softmax(1.5 * UTILITIES / 4), softmax(1.5 * other / 4)
        for epsilon in (0.0, 0.3, 1.0, 1.499):
            exact = np.maximum(p - math.exp(epsilon) * q, 0).sum()
            assert exact <= float(pair.delta(epsilon)) + 1e-12
        for order in (1.5, 4.0, 20.0):
            divergence = math.log((p**order * q ** (1 - order)).sum()) / (order - 1)
            assert divergence <= float(pair.renyi(order)) * (1 + 1e-12)


def test_it_is_better_concentrated_than_randomised_response() -> None:
    assert CHOICE.pair(1).zcdp_rho == pytest.approx(1.5**2 / 8)
    assert CHOICE.pair(1).pure_epsilon == 1.5
    assert CHOICE.pair(0).pure_epsilon == 0


def test_it_serialises_and_comes_back_equal() -> None:
    assert Mechanism.parse(CHOICE.to_dict()) == CHOICE


@pytest.mark.parametrize("value", [[], 1.0, [[1.0]], [math.nan]])
def test_utilities_are_a_vector(value: object) -> None:
    with pytest.raises(InputError, match="value"):
        CHOICE.release(value, np.random.default_rng(0))  # type: ignore[arg-type]


@pytest.mark.parametrize("fields", [{"epsilon": 0.0}, {"epsilon": 1, "utility_sensitivity": -1}])
def test_bad_parameters_are_refused(fields: dict[str, float]) -> None:
    with pytest.raises(InputError):
        ExponentialMechanism(**fields)
