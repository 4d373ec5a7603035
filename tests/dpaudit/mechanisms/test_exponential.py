from __future__ import annotations

import math
import random
import time
from fractions import Fraction

import numpy as np
import pytest
from examples import gaussian_invocation
from mechanism_conformance import MechanismConformance, PlainSource, grid_delta
from scipy import stats
from scipy.special import softmax

from dpaudit import Plan
from dpaudit.accounting import guarantee
from dpaudit.base.errors import InputError
from dpaudit.mechanisms import ExponentialMechanism

UTILITIES = np.array([0.0, 1.0, 2.5, -1.0])
CHOICE = ExponentialMechanism(epsilon=1.5, utility_sensitivity=2.0)


class TestExponential(MechanismConformance):
    """Its pair dominates all neighbours, and is attained by none."""

    mechanism = CHOICE
    value = tuple(UTILITIES)
    neighbour = (2.0, -1.0, 4.5, -3.0)
    attained = False
    released_shape = ()
    bad_parameters = ({"epsilon": 0.0}, {"epsilon": math.nan}, {"utility_sensitivity": -1})
    bad_values = ([], 1.0, [[1.0]], [math.nan], "a", None)
    unlike = ExponentialMechanism(epsilon=4.5, utility_sensitivity=2.0)

    def mean(self):
        return float(softmax(1.5 * UTILITIES / 4) @ np.arange(4))

    def variance(self):
        return float(softmax(1.5 * UTILITIES / 4) @ (np.arange(4) - self.mean()) ** 2)

    def exact_delta(self, epsilon):
        log_p, log_q = (CHOICE.log_density(np.arange(4), v) for v in (self.neighbour, self.value))
        return grid_delta(log_p, log_q, epsilon)


def test_choices_have_the_declared_law() -> None:
    drawn = CHOICE.release_many(UTILITIES, 40_000, np.random.default_rng(3))
    expected = softmax(1.5 * UTILITIES / 4.0)
    counts = np.bincount(drawn, minlength=4)
    assert stats.chisquare(counts, 40_000 * expected).pvalue > 1e-6
    assert np.exp(CHOICE.log_density(np.arange(4), UTILITIES)) == pytest.approx(expected)
    assert CHOICE.probabilities(UTILITIES) == pytest.approx(expected)
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


@pytest.mark.parametrize("value", [[], 1.0, [[1.0]], [math.nan]])
def test_utilities_are_a_vector(value: object) -> None:
    with pytest.raises(InputError, match="value"):
        CHOICE.release(value, np.random.default_rng(0))  # type: ignore[arg-type]


def drawn_exactly(mechanism: ExponentialMechanism, utilities, size: int) -> np.ndarray:
    source = PlainSource(np.random.default_rng(5))
    return mechanism.release_exactly(utilities, 1.0, size, source)


@pytest.mark.parametrize(
    ("epsilon", "sensitivity", "utilities"),
    [
        (1.5, 2.0, UTILITIES),
        (1.0, 1.0, [3.0] * 7),
        (2.0, 1.0, [1e308, 1e308, -1e308, 0.0]),
        (1.0, 0.5, [5e-324, 0.0, -5e-324]),
        (1e308, 1e308, [0.0, 1.0, 2.0]),
        (5e-324, 1e308, [0.0, 1.0, 2.0]),
    ],
    ids=["usual", "ties", "huge", "subnormal", "huge fields", "vast sensitivity"],
)
def test_exact_choices_have_the_enumerated_probabilities(epsilon, sensitivity, utilities) -> None:
    mechanism, runs = ExponentialMechanism(epsilon, sensitivity), 20_000
    rate = Fraction(epsilon) / (2 * Fraction(sensitivity))
    gaps = [rate * (max(map(Fraction, utilities)) - Fraction(u)) for u in utilities]
    weights = np.array([math.exp(-gap) if gap < 700 else 0.0 for gap in gaps])
    masses = weights / weights.sum()
    counts = np.bincount(drawn_exactly(mechanism, utilities, runs), minlength=len(gaps))
    assert not counts[masses == 0].any()
    possible = masses > 0
    assert stats.chisquare(counts[possible], runs * masses[possible]).pvalue > 1e-6
    floats = mechanism.release_many(utilities, runs, np.random.default_rng(4))
    counts = np.bincount(floats, minlength=len(gaps))
    assert stats.chisquare(counts[possible], runs * masses[possible]).pvalue > 1e-6
    assert mechanism.probabilities(utilities) == pytest.approx(masses.tolist())


def test_one_of_many_candidates_takes_trials_in_their_number() -> None:
    utilities = np.zeros(100_000)
    utilities[77] = 1e6
    source = PlainSource(np.random.default_rng(6))
    source.below = random.Random(6).randrange
    start = time.perf_counter()
    assert ExponentialMechanism(1.0).release_exactly(utilities, 1.0, 1, source) == [77]
    assert time.perf_counter() - start < 30


def test_many_choices_cost_less_than_their_pairs() -> None:
    """The concentration of a choice is below that of its dominating pair: no contradiction."""
    choice = ExponentialMechanism(0.6787636340595198, 28.7)
    plan = Plan.of(gaussian_invocation(mechanism=choice, count=10_000))
    best, pairs = guarantee(plan, 1e-12), guarantee(plan, 1e-12, "pld")
    # The law of the pair has for small ε the variance ε²/3, a choice at most ε²/4.
    assert best.epsilon == guarantee(plan, 1e-12, "zcdp").epsilon < pairs.epsilon * 0.8
    assert best.error_bound is None
    assert pairs.error_bound is None


def test_the_interval_of_one_choice_holds_the_worst_of_all_utilities() -> None:
    """Two candidates whose utilities differ by u and change by 1 in opposite ways."""
    epsilon, delta = 1.0, 1e-3
    found = guarantee(Plan.of(gaussian_invocation(mechanism=ExponentialMechanism(epsilon))), delta)
    assert found.error_bound is not None

    def worst(at: float) -> float:
        u = np.linspace(-20.0, 20.0, 400_001)
        p, q = (1 / (1 + np.exp(-epsilon / 2 * (u + change))) for change in (1.0, -1.0))
        rest = np.maximum(1 - p - math.exp(at) * (1 - q), 0.0)
        return float((np.maximum(p - math.exp(at) * q, 0.0) + rest).max())

    assert worst(found.epsilon) <= delta <= worst(found.epsilon - found.error_bound) * (1 + 1e-8)
    assert found.epsilon == pytest.approx(0.94907, abs=5e-6)


def test_composed_choices_do_not_contradict_each_other() -> None:
    plan = Plan.of(gaussian_invocation(mechanism=ExponentialMechanism(0.1), count=20))
    found, pairs = guarantee(plan, 1e-3), guarantee(plan, 1e-3, "pld")
    assert found.accountant == "bounded-range"
    assert found.epsilon - found.error_bound < found.epsilon < pairs.epsilon
    assert pairs.error_bound is None
