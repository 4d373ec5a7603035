import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest
from accounting_builders import plan, use
from mechanism_conformance import MechanismConformance, PlainSource, grid_delta
from scipy import integrate, stats
from scipy.special import softmax

from dpaudit import RunResult, Subject
from dpaudit.accounting import guarantee
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.mechanisms import NoisyMax, PermuteAndFlip
from dpaudit.rehearsal.rehearse import rehearse

UTILITIES = np.array([0.0, 1.0, 2.5, -1.0])
OTHERS = (2.0, -1.0, 4.5, -3.0)
FLIP = PermuteAndFlip(1.5, 2.0)


def by_orders(exponents: np.ndarray) -> np.ndarray:
    """Permute-and-flip as it is written: the mean over all orders."""
    accept, chosen = np.exp(exponents), np.zeros(len(exponents))
    for order in itertools.permutations(range(len(exponents))):
        left = 1.0
        for candidate in order:
            chosen[candidate] += left * accept[candidate]
            left *= 1 - accept[candidate]
    return chosen / math.factorial(len(exponents))


def by_adaptive_quadrature(exponents: np.ndarray) -> np.ndarray:
    """Laplace noise: the largest is i where all others lie below it."""

    def chance(i: int) -> float:
        rest = np.delete(exponents, i)
        found = integrate.quad(
            lambda v: stats.laplace.pdf(v - exponents[i]) * stats.laplace.cdf(v - rest).prod(),
            -45,
            45,
            points=[0.0, *exponents],
            limit=400,
            epsabs=1e-13,
        )
        return found[0]

    return np.array([chance(i) for i in range(len(exponents))])


class ChoiceSuite(MechanismConformance):
    value = tuple(UTILITIES)
    neighbour = OTHERS
    attained = False
    released_shape = ()
    bad_parameters = ({"epsilon": 0.0}, {"utility_sensitivity": -1}, {"monotonic": 1})
    bad_values = ([], 1.0, [[1.0]], [math.nan], [math.inf, 0.0], [-math.inf], "a", None)

    def masses(self, value=tuple(UTILITIES)):
        return np.array(self.mechanism.probabilities(value))

    def mean(self):
        return float(self.masses() @ np.arange(4))

    def variance(self):
        return float(self.masses() @ (np.arange(4) - self.mean()) ** 2)

    def exact_delta(self, epsilon):
        log_p, log_q = (np.log(self.masses(v)) for v in (self.neighbour, self.value))
        return grid_delta(log_p, log_q, epsilon)


class TestPermuteAndFlip(ChoiceSuite):
    mechanism = FLIP
    unlike = PermuteAndFlip(4.5, 2.0)


class TestNoisyMaxOfExponentialNoise(ChoiceSuite):
    mechanism = NoisyMax(1.5, 2.0, noise="exponential")
    unlike = NoisyMax(4.5, 2.0, noise="exponential")
    bad_parameters = (*ChoiceSuite.bad_parameters, {"noise": "normal"})


class TestNoisyMaxOfGumbelNoise(ChoiceSuite):
    mechanism = NoisyMax(1.5, 2.0, noise="gumbel", monotonic=True)
    neighbour = (2.0, 1.0, 4.5, 1.0)
    unlike = NoisyMax(4.5, 2.0, noise="gumbel", monotonic=True)


class TestNoisyMax(ChoiceSuite):
    mechanism = NoisyMax(1.5, 2.0)
    unlike = NoisyMax(4.5, 2.0)

    def test_exact_releases_have_the_declared_law(self):
        source = PlainSource(np.random.default_rng(1))
        with pytest.raises(UnsupportedError, match="has no exact sampler yet"):
            self.mechanism.release_exactly(self.value, 1.0, 1, source)


@pytest.mark.parametrize("utilities", [[3.0], [2.0, 2.0, 2.0], UTILITIES, [0.0, -60.0, -1.0]])
@pytest.mark.parametrize("monotonic", [False, True])
def test_the_laws_are_those_of_enumeration_and_quadrature(utilities, monotonic):
    gaps = np.array(utilities) - np.max(utilities)
    exponents = gaps * 1.5 / (2.0 if monotonic else 4.0)
    facts = {"epsilon": 1.5, "utility_sensitivity": 2.0, "monotonic": monotonic}
    for mechanism in (PermuteAndFlip(**facts), NoisyMax(**facts, noise="exponential")):
        assert mechanism.probabilities(utilities) == pytest.approx(by_orders(exponents), abs=1e-14)
    laplace = NoisyMax(**facts).probabilities(utilities)
    assert laplace == pytest.approx(by_adaptive_quadrature(exponents), abs=1e-11)
    gumbel = NoisyMax(**facts, noise="gumbel").probabilities(utilities)
    assert gumbel == pytest.approx(softmax(exponents))


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("noise", ["exponential", "gumbel"])
def test_draws_have_the_enumerated_probabilities(noise, exact):
    mechanism, utilities = NoisyMax(2.0, noise=noise), [1.0, 0.0, 0.5]
    if exact:
        drawn = mechanism.release_exactly(
            utilities, 1.0, 4_000, PlainSource(np.random.default_rng(4))
        )
    else:
        drawn = mechanism.release_many(utilities, 40_000, np.random.default_rng(4))
    gaps = np.array(utilities) - 1.0
    law = softmax(gaps) if noise == "gumbel" else by_orders(gaps)
    assert stats.chisquare(np.bincount(drawn, minlength=3), len(drawn) * law).pvalue > 1e-6


@pytest.mark.parametrize("noise", ["laplace", "exponential", "gumbel"])
def test_no_neighbours_cost_more_than_the_pair(noise):
    rng, mechanism = np.random.default_rng(3), NoisyMax(1.2, 1.0, noise=noise)
    pair = mechanism.pair(1)
    for size in (2, 2, 3, 6):
        for _ in range(60):
            one = rng.uniform(-3.0, 3.0, size=size)
            p, q = (
                np.array(mechanism.probabilities(v))
                for v in (one, one + rng.choice([-1.0, 1.0], size=size))
            )
            for epsilon in (0.0, 0.4, 1.0, 1.19):
                exact = np.maximum(p - math.exp(epsilon) * q, 0).sum()
                assert exact <= float(pair.delta(epsilon)) + 1e-12
            divergence = math.log((p**4 * q**-3.0).sum()) / 3
            assert divergence <= float(pair.renyi(4.0)) * (1 + 1e-12)


@pytest.mark.parametrize("at", [0.0, 0.3, 1.1])
def test_two_candidates_attain_each_point_of_the_curve_of_permute_and_flip(at):
    """The gap moves from −(ε + x)/2 past 0 by ε, in units of the exponent."""
    epsilon = 1.5
    for monotonic, move in ((False, [2.0, -2.0]), (True, [2.0, 0.0])):
        mechanism = PermuteAndFlip(epsilon, 2.0, monotonic)
        start = np.array([-(epsilon + at) / 2 * 2.0 * mechanism.span / epsilon, 0.0])
        p, q = (np.array(mechanism.probabilities(v)) for v in (start + move, start))
        exact = np.maximum(p - math.exp(at) * q, 0).sum()
        assert exact == pytest.approx(float(mechanism.pair(1).delta(at)), rel=1e-9)
        assert mechanism.distance(start, start + np.array(move)) == 1
        found = guarantee(plan(use(mechanism)), float(exact))
        assert found.epsilon - found.error_bound <= at * (1 + 1e-9) + 1e-12
        assert found.epsilon == pytest.approx(at, abs=1e-9)


def test_permute_and_flip_is_not_of_bounded_range():
    """D₂/2 of q = (0, 0) from (1, −1) at ε = 2 is .6885, above ε²/8 = .5 (and below ε²/2 = 2)."""
    mechanism = PermuteAndFlip(2.0)
    p, q = (np.array(mechanism.probabilities(v)) for v in ([0.0, 0.0], [1.0, -1.0]))
    rho = math.log((p**2 / q).sum()) / 2
    assert rho == pytest.approx(0.6885, abs=5e-5)
    assert rho <= float(mechanism.pair(1).renyi(2.0)) / 2
    assert mechanism.pair(1).zcdp_rho >= rho
    assert NoisyMax(2.0, noise="gumbel").pair(1).zcdp_rho == pytest.approx(0.5)


def test_laplace_noise_comes_near_its_epsilon():
    """A far candidate is e^ε times as probable, but for a factor that tends to 1."""
    mechanism = NoisyMax(1.0)
    p, q = (mechanism.probabilities(v) for v in ([-48.0, 0.0], [-49.0, 1.0]))
    assert 0.9 < math.log(p[0] / q[0]) <= 1.0
    assert guarantee(plan(use(mechanism)), 1e-3).error_bound is None
    assert guarantee(plan(use(mechanism)), 0.0).epsilon == 1.0


def test_monotonic_utilities_that_move_apart_are_no_neighbours():
    one, up, apart = np.zeros(3), np.array([1.0, 0.0, 0.5]), np.array([1.0, -1.0, 0.0])
    assert NoisyMax(1.0, monotonic=True).distance(one, up) == 1
    assert NoisyMax(1.0, monotonic=True).distance(one, apart) == 2
    assert NoisyMax(1.0).distance(one, apart) == 1
    assert NoisyMax(1.0).distance(one, np.zeros(2)) == math.inf


@pytest.mark.parametrize("epsilon", [5e-324, 1e-300, 1e300])
@pytest.mark.parametrize("noise", ["laplace", "exponential", "gumbel"])
def test_extremes_are_served(epsilon, noise):
    mechanism = NoisyMax(epsilon, noise=noise)
    assert mechanism.release([0.0, 1e308, -1e308], np.random.default_rng(1)) in (0, 1, 2)
    assert sum(mechanism.probabilities([5e-324, 0.0, -5e-324])) == pytest.approx(1)
    for delta in (0.0, 1e-5):
        assert guarantee(plan(use(mechanism)), delta).epsilon <= epsilon
    assert guarantee(plan(use(mechanism)), 0.0).epsilon == epsilon


def test_too_many_candidates_have_no_computed_law():
    with pytest.raises(UnsupportedError, match="at most 500"):
        PermuteAndFlip(1.0).probabilities(np.zeros(501))
    assert sum(NoisyMax(1.0).probabilities(np.arange(500.0))) == pytest.approx(1)
    assert PermuteAndFlip(1.0).release(np.zeros(501), np.random.default_rng(0)) < 501
    with pytest.raises(InputError, match="0 or 1"):
        PermuteAndFlip(1.0).pair(0.5)


@dataclass(frozen=True)
class Votes(Subject):
    """The winner of a vote: a row counts for its candidate, or also against all others."""

    against: bool = False

    def plan(self):
        return plan(use(NoisyMax(1.0, monotonic=True), at="winner"))

    def run(self, rows, ledger, rng):
        counts = np.array([sum(row == candidate for row in rows) for candidate in range(3)])
        scores = counts - (len(rows) - counts) if self.against else counts
        chosen = ledger.release(NoisyMax(1.0, monotonic=True), scores, at="winner")
        return RunResult({"winner": chosen})


@pytest.mark.parametrize("against", [False, True])
def test_a_rehearsal_refuses_declared_monotonicity_that_is_false(against):
    found = {each.rule for each in rehearse(Votes(against), [0, 1, 1, 2, 0]).findings}
    assert ("sensitivity-understated" in found) == against
