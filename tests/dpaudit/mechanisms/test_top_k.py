import itertools
import math

import mpmath
import numpy as np
import pytest
from accounting_builders import plan, poisson, use
from mechanism_conformance import MechanismConformance, PlainSource, grid_delta
from scipy import integrate, stats

from dpaudit import Ledger, MetricBall, ReplaceOne
from dpaudit.accounting import compose, for_group, guarantee
from dpaudit.accounting.budgets import ZcdpFilter
from dpaudit.base.errors import BudgetExceededError, InputError
from dpaudit.mechanisms import ExponentialMechanism, TopK

UTILITIES = (0.0, 1.0, 2.5, -1.0)
OTHERS = (2.0, -1.0, 4.5, -3.0)


def by_peeling(utilities, k: int, factor: float) -> np.ndarray:
    """The exponential mechanism k times, each of those that are left; orders as permutations."""

    def chance(order):
        left, mass = list(range(len(utilities))), mpmath.mpf(1)
        for index in order:
            odds = {i: mpmath.exp(factor * (utilities[i] - max(utilities))) for i in left}
            mass *= odds[index] / sum(odds.values())
            left.remove(index)
        return mass

    orders = itertools.permutations(range(len(utilities)), k)
    return np.array([float(chance(order)) for order in orders])


class TestTopK(MechanismConformance):
    mechanism = TopK(1.5, 2.0, k=2)
    unlike = TopK(4.5, 2.0, k=2)
    value = UTILITIES
    neighbour = OTHERS
    attained = False
    released_shape = (2,)
    bad_parameters = ({"k": 0}, {"k": 1.5}, {"epsilon": 0.0}, {"utility_sensitivity": -1.0})
    bad_values = ([], 1.0, [[1.0]], [2.0], [math.nan, 1.0], [math.inf, 0.0], [-math.inf, 0], "a")

    def first(self, value):
        """The law of the first index, which is that of the exponential mechanism."""
        weights = np.exp(np.array(value) * 1.5 / 4)
        return weights / weights.sum()

    def mean(self):
        return float(self.first(self.value) @ np.arange(4))

    def variance(self):
        return float(self.first(self.value) @ (np.arange(4) - self.mean()) ** 2)

    def exact_delta(self, epsilon):
        p, q = (by_peeling(v, 2, 1.5 / 4) for v in (self.neighbour, self.value))
        return grid_delta(np.log(p), np.log(q), epsilon)


class TestOneOfThem(TestTopK):
    mechanism = TopK(1.5, 2.0, monotonic=True, k=1)
    unlike = TopK(4.5, 2.0, monotonic=True, k=1)
    neighbour = (2.0, 1.0, 4.5, 1.0)
    released_shape = (1,)
    bad_values = ([], 1.0, [[1.0]], [math.nan, 1.0], "a")

    def first(self, value):
        weights = np.exp(np.array(value) * 1.5 / 2)
        return weights / weights.sum()

    def exact_delta(self, epsilon):
        p, q = (self.first(v) for v in (self.neighbour, self.value))
        return grid_delta(np.log(p), np.log(q), epsilon)


@pytest.mark.parametrize("utilities", [UTILITIES, (2.0, 2.0, 2.0), (1e17, 5.0, 0.0)])
@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("monotonic", [False, True])
def test_its_law_is_that_of_peeling(utilities, k, monotonic):
    mechanism = TopK(1.5, 2.0, monotonic, k=k)
    mpmath.mp.dps = 40
    wanted = by_peeling([mpmath.mpf(u) for u in utilities], k, 1.5 / (2 if monotonic else 4))
    assert mechanism.probabilities(utilities) == pytest.approx(wanted, abs=1e-13)


def test_noise_that_is_drawn_once_orders_as_peeling_does():
    """P[x₀ + g > x₁ + g' > x₂ + g''] of Gumbel noise by quadrature."""
    x = np.array([0.3, 1.0, 0.0])
    law, tail = stats.gumbel_r.pdf, stats.gumbel_r.cdf
    wanted, _ = integrate.dblquad(
        lambda inner, outer: law(outer - x[0]) * law(inner - x[1]) * tail(inner - x[2]),
        -6, 40, -6, lambda outer: outer, epsabs=1e-8,
    )  # fmt: skip
    orders = list(itertools.permutations(range(3), 2))
    assert TopK(2.0, k=2).probabilities(x)[orders.index((0, 1))] == pytest.approx(wanted, abs=1e-7)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("utilities", [(1.0, 0.0, 0.5), (1e17, 5.0, 4.0)])
def test_draws_have_that_law(exact, utilities):
    mechanism = TopK(2.0, k=2)
    if exact:
        drawn = mechanism.release_exactly(
            utilities, 1.0, 4_000, PlainSource(np.random.default_rng(4))
        )
    else:
        drawn = mechanism.release_many(utilities, 40_000, np.random.default_rng(4))
    orders = list(itertools.permutations(range(3), 2))
    seen = np.array([(drawn == order).all(axis=1).sum() for order in orders])
    mpmath.mp.dps = 40
    law = by_peeling([mpmath.mpf(u) for u in utilities], 2, 1.0)
    possible = law > 1e-12
    assert seen[~possible].sum() == 0
    assert stats.chisquare(seen[possible], len(drawn) * law[possible]).pvalue > 1e-6


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("monotonic", [False, True])
def test_no_neighbours_cost_more_than_any_accountant_says(k, monotonic):
    mechanism, rng = TopK(0.8, 1.0, monotonic, k=k), np.random.default_rng(k)
    once, whole = plan(use(mechanism)), mechanism.pair(1)
    accountants = ("pld", "bounded-range", "rdp", "zcdp", "pure", "best")
    curves = [compose(once, name) for name in accountants]
    epsilons = (0.0, 0.4, 1.0, 0.8 * k - 0.01)
    bounds = [min(one.delta(e).upper for one in curves) for e in epsilons]
    pure = max(compose(once, "pure").epsilon(0.0).upper, 0)
    for _ in range(40):
        start = rng.uniform(-2, 2, size=4)
        move = rng.integers(0, 2, size=4) if monotonic else rng.choice([-1.0, 1.0], size=4)
        factor = 0.8 / (1 if monotonic else 2)
        p, q = (by_peeling(v.tolist(), k, factor) for v in (start, start + move))
        assert np.abs(np.log(p / q)).max() <= pure * (1 + 1e-12)
        for epsilon, bound in zip(epsilons, bounds, strict=True):
            spent = max(np.maximum(a - math.exp(epsilon) * b, 0).sum() for a, b in ((p, q), (q, p)))
            assert spent <= bound + 1e-12
            assert spent <= float(whole.delta(epsilon)) + 1e-12


def test_it_costs_k_adaptive_choices():
    for delta in (0.0, 1e-6, 1e-2):
        own = guarantee(plan(use(TopK(0.5, k=4), count=3)), delta)
        choices = guarantee(plan(use(ExponentialMechanism(0.5), count=12)), delta)
        assert own.epsilon == choices.epsilon
    assert compose(plan(use(TopK(0.5, k=4)))).epsilon(1e-3).lower is None
    assert compose(plan(use(TopK(0.5, k=4))), "zcdp").native["rho"] == pytest.approx(4 * 0.25 / 8)


def test_samples_and_groups_are_covered():
    mechanism = TopK(0.5, k=4)
    with pytest.raises(InputError, match="0 or 1"):
        guarantee(plan(use(mechanism, 2.0)), 0.0)
    sampled = guarantee(plan(use(mechanism, sampling=poisson(0.1))), 0.0)
    assert sampled.epsilon == pytest.approx(math.log1p(0.1 * math.expm1(2.0)))
    assert guarantee(for_group(plan(use(mechanism)), 3), 0.0).epsilon == 6.0
    for relation in (ReplaceOne(), MetricBall(2.0)):
        assert guarantee(plan(use(mechanism, relation=relation)), 0.0).epsilon == 2.0


def test_a_refused_release_charges_none_of_its_choices():
    budget = ZcdpFilter(epsilon=2.0, delta=1e-6)
    small, large = use(TopK(0.1, k=2)), use(TopK(0.1, k=10**4))
    budget.admit(small)
    before = dict(vars(budget))
    with pytest.raises(BudgetExceededError):
        budget.admit(large)
    assert vars(budget) == before


def test_the_ledger_releases_indices():
    mechanism = TopK(50.0, k=2, monotonic=True)
    with Ledger(plan(use(mechanism, at="top")), rng=np.random.default_rng(0)) as ledger:
        with pytest.raises(InputError, match="at least 2"):
            ledger.release(mechanism, [1.0])
        assert ledger.release(mechanism, [1, 50, 3, 90]).tolist() == [3, 1]


@pytest.mark.parametrize("epsilon", [5e-324, 1e-300, 1e300])
def test_extremes_are_served(epsilon):
    mechanism = TopK(epsilon, k=2)
    released = mechanism.release([0.0, 1e308, -1e308], np.random.default_rng(1))
    assert set(released.tolist()) < {0, 1, 2}
    assert sum(mechanism.probabilities([5e-324, 0.0, -5e-324])) == pytest.approx(1)
    for delta in (0.0, 1e-5):
        assert guarantee(plan(use(mechanism)), delta).epsilon <= 2 * epsilon
    assert guarantee(plan(use(mechanism)), 0.0).epsilon == 2 * epsilon


def test_what_is_no_order_of_the_indices_cannot_come():
    density = TopK(1.0, k=2).log_density([[0, 0], [0, 3], [0.5, 1], [-1, 1], [0, 1]], [1.0, 2, 3])
    assert np.isfinite(density).tolist() == [False, False, False, False, True]
