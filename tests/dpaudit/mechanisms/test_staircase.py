import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from accounting_builders import plan, poisson, use
from mechanism_conformance import MechanismConformance
from scipy import optimize, stats

from dpaudit import MetricBall, ReplaceOne
from dpaudit.accounting import compose, for_group, guarantee
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.mechanisms import Staircase
from dpaudit.plan import Contribution


def height(x: float, epsilon: float, width: float, share: float) -> float:
    """The density as Geng and Viswanath write it, by its steps from 0 on."""
    b, x = math.exp(-epsilon), abs(x)
    first = (1 - b) / (2 * width * (share + b * (1 - share)))
    level = 0
    while x >= share * width + level * width:
        level += 1
    return first * b**level


def brute_delta(e: float, shift: float, epsilon: float, width: float, share: float) -> float:
    """Σ (f(x − s) − e^e f(x))+ over the intervals on which both densities are constant."""
    edges = [s * (share + n) * width for n in range(round(40 / epsilon)) for s in (-1, 1)]
    places = np.unique([*edges, *(edge + shift for edge in edges)])
    total = 0.0
    for low, high in itertools.pairwise(places):
        middle = (low + high) / 2
        f, g = (height(x, epsilon, width, share) for x in (middle - shift, middle))
        total += max(f - math.exp(e) * g, 0.0) * (high - low)
    return total


class TestStaircase(MechanismConformance):
    mechanism = Staircase(0.8, 1.5)
    sensitivity = 1.5
    unlike = Staircase(0.8, 3.0)
    neighbour = 1.5
    bad_parameters = (
        {"epsilon": 0},
        {"epsilon": math.inf},
        {"width": -1.0},
        {"share": 0.0},
        {"share": 1.0},
        {"share": math.nan},
    )
    bad_values = (math.nan, math.inf, -math.inf, "a", None, [1.0, math.nan])

    @property
    def share(self):
        return self.mechanism.share or 1 / (1 + math.exp(0.4))

    def mean(self):
        return 0.0

    def variance(self):
        x = np.linspace(0, 120, 400_001)[:-1] + 60 / 400_000
        level = np.floor(x / 1.5 + 1 - self.share)
        return float((x**2 * np.exp(-0.8 * level)).sum() / np.exp(-0.8 * level).sum())

    def exact_delta(self, epsilon):
        return brute_delta(epsilon, 1.5, 0.8, 1.5, self.share)


class TestWideInnerSteps(TestStaircase):
    mechanism = Staircase(0.8, 1.5, 0.7)
    unlike = Staircase(0.4, 1.5, 0.7)


class TestHalfSteps(TestStaircase):
    """With γ = 1/2 it is randomised response."""

    mechanism = Staircase(0.8, 1.5, 0.5)


@pytest.mark.parametrize("share", [None, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("shift", [1e-3, 0.4, 1.0, 1.7, 2.0])
def test_every_shift_has_its_exact_pair_and_a_longer_one_dominates(share, shift):
    mechanism = Staircase(1.1, 2.0, share)
    inner = 1 / (1 + math.exp(0.55)) if share is None else share
    pair, whole = mechanism.pair(shift), mechanism.pair(2.0)
    for e in (-0.7, 0.0, 0.3, 1.09):
        exact = brute_delta(e, shift, 1.1, 2.0, inner)
        assert float(pair.delta(e)) == pytest.approx(exact, abs=1e-12)
        assert exact <= float(whole.delta(e)) + 1e-12
    assert pair.pure_epsilon == Fraction(1.1)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_share_that_is_taken_has_the_least_mean(epsilon):
    def mean(share):
        x = np.linspace(0, 60 / epsilon, 200_001)[:-1] + 15e-5 / epsilon
        masses = np.exp(-epsilon * np.floor(x + 1 - share))
        return float((x * masses).sum() / masses.sum())

    best = optimize.minimize_scalar(mean, bounds=(1e-3, 0.999), method="bounded").x
    assert best == pytest.approx(1 / (1 + math.exp(epsilon / 2)), abs=1e-2)
    inner = Staircase(epsilon).log_noise_density(
        np.array([0.98, 1.02]) / (1 + math.exp(epsilon / 2))
    )
    assert inner[0] - inner[1] == pytest.approx(epsilon)


def test_tails_are_those_of_the_density():
    for share in (None, 0.8):
        mechanism, step = Staircase(0.9, 1.0, share), 1e-4
        x = np.arange(0, 30, step) + step / 2
        mass = np.exp(mechanism.log_noise_density(x)) * step * 2
        beyond = mass[::-1].cumsum()[::-1]
        found = mechanism.noise_tails(x - step / 2, np.random.default_rng(0)).tails
        assert beyond[0] == pytest.approx(1, abs=1e-3)
        assert found[:100_000:777] == pytest.approx(beyond[:100_000:777], abs=1e-3)


def test_draws_have_the_law():
    mechanism = Staircase(0.9, 2.0, 0.3)
    drawn = mechanism.release_many(5.0, 20_000, np.random.default_rng(3)) - 5.0
    tails = mechanism.noise_tails(np.abs(drawn), np.random.default_rng(0)).tails
    assert stats.kstest(tails, "uniform").pvalue > 1e-6
    assert stats.binomtest(int((drawn > 0).sum()), 20_000).pvalue > 1e-6


def test_all_accountants_agree():
    mechanism = Staircase(1.0)
    once = plan(use(mechanism))
    assert guarantee(once, 0.0).epsilon == 1.0
    for delta in (1e-6, 1e-2):
        pure, pld = (compose(once, name).epsilon(delta) for name in ("pure", "pld"))
        assert max(pure.lower, pld.lower) <= min(pure.upper, pld.upper)
        for name in ("rdp", "zcdp"):
            assert compose(once, name).epsilon(delta).upper >= pld.lower
    assert guarantee(plan(use(mechanism, 0.01)), 0.0).epsilon == 1.0
    assert guarantee(plan(use(mechanism, 0.01)), 0.01).epsilon < 0.5


def test_longer_shifts_are_refused_and_groups_add_up():
    mechanism = Staircase(0.5, 2.0)
    with pytest.raises(InputError, match="takes at most 2"):
        mechanism.pair(2.1)
    assert guarantee(for_group(plan(use(mechanism, 2.0)), 3), 0.0).epsilon == 1.5
    assert guarantee(for_group(plan(use(mechanism, 0.5)), 3), 0.0).epsilon == 0.5
    for relation in (ReplaceOne(), MetricBall(2.0)):
        assert guarantee(plan(use(mechanism, relation=relation)), 0.0).epsilon == 0.5
    sampled = guarantee(plan(use(mechanism, sampling=poisson(0.1))), 0.0).epsilon
    assert sampled == pytest.approx(math.log1p(0.1 * math.expm1(0.5)))
    bounded = use(mechanism, 2.0, contribution=Contribution(2.0))
    assert guarantee(plan(bounded), 0.0).epsilon == 0.5


def test_several_numbers_are_released_one_by_one():
    with pytest.raises(UnsupportedError, match="one number at a time"):
        Staircase(1.0).release([1.0, 2.0], np.random.default_rng(0))


@pytest.mark.parametrize("epsilon", [5e-324, 1e-300, 800.0, 2000.0, 1e300])
@pytest.mark.parametrize("share", [None, 5e-324, 0.5, 1 - 2.0**-53])
def test_extremes_are_served(epsilon, share):
    mechanism = Staircase(epsilon, 1e-300, share)
    for shift in (1e-300, 5e-324):
        assert guarantee(plan(use(mechanism, shift)), 0.0).epsilon == epsilon
        for delta in (1e-300, 1e-5, 0.9):
            assert guarantee(plan(use(mechanism, shift)), delta).epsilon <= epsilon
    noise = np.array([mechanism.release(0.0, np.random.default_rng(1)), 0.0, 1e-300])
    assert not np.isnan(noise).any()
    assert not np.isnan(mechanism.log_noise_density(noise[1:])).any()
    tails = mechanism.noise_tails(noise[1:], np.random.default_rng(0)).tails
    assert ((tails >= 0) & (tails <= 1)).all()
