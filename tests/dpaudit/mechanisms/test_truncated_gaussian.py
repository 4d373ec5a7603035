import itertools
import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from accounting_builders import plan, use
from mechanism_conformance import MechanismConformance, grid_delta

from dpaudit import checker
from dpaudit.accounting import compose
from dpaudit.base.errors import InputError
from dpaudit.mechanisms import DiscreteGaussian, TruncatedDiscreteGaussian


@pytest.fixture(autouse=True)
def _precise():
    with mp.workdps(60):
        yield


def masses(sigma: float, bound: int) -> dict[int, mp.mpf]:
    """Of the noise, by the definition."""
    found = {
        k: mp.exp(-(mp.mpf(k) ** 2) / (2 * mp.mpf(sigma) ** 2)) for k in range(-bound, bound + 1)
    }
    whole = mp.fsum(found.values())
    return {k: mass / whole for k, mass in found.items()}


def delta(sigma: float, bound: int, shift: int, epsilon: float) -> mp.mpf:
    law, factor = masses(sigma, bound), mp.exp(mp.mpf(epsilon))
    outputs = range(-bound, bound + shift + 1)
    gaps = (law.get(k - shift, mp.mpf(0)) - factor * law.get(k, mp.mpf(0)) for k in outputs)
    return mp.fsum(max(gap, mp.mpf(0)) for gap in gaps)


class TestTruncatedDiscreteGaussian(MechanismConformance):
    mechanism = TruncatedDiscreteGaussian(2.0, 5)
    unlike = TruncatedDiscreteGaussian(4.0, 5)
    bad_parameters = (
        *({"sigma": sigma} for sigma in (0.0, -1.0, math.nan, math.inf, "1", 101.0)),
        *({"bound": bound} for bound in (0, 1.5, -1, 10**7)),
    )
    bad_values = (math.nan, math.inf, "a", None, [1.0, math.nan], 0.5, 2.0**60)

    def mean(self):
        return 0.0

    def variance(self):
        return float(sum(k * k * mass for k, mass in masses(2.0, 5).items()))

    def exact_delta(self, epsilon):
        outputs = np.arange(-5.0, 7.0)
        laws = (self.mechanism.log_density(outputs, value) for value in (1.0, 0.0))
        with np.errstate(invalid="ignore"):
            return grid_delta(*laws, epsilon)


class TestShiftsThatLeaveLittleInCommon(TestTruncatedDiscreteGaussian):
    sensitivity = 9.0
    neighbour = 9.0

    def exact_delta(self, epsilon):
        return float(delta(2.0, 5, 9, epsilon))


CASES = [(0.1, 1, 1), (0.3, 5, 3), (1.0, 2, 1), (1.0, 60, 40), (1.0, 42, 40), (10.0, 5, 3),
         (3.0, 300, 2), (40.0, 2, 4)]  # fmt: skip


@pytest.mark.parametrize(("sigma", "bound", "shift"), CASES)
def test_both_ends_hold_by_summation(sigma, bound, shift):
    mechanism = TruncatedDiscreteGaussian(sigma, bound)
    composed = compose(plan(use(mechanism, shift)))
    for epsilon in (0.0, 0.3, 2.0, 20.0, 700.0, 1500.0):
        exact, found = delta(sigma, bound, shift, epsilon), composed.delta(epsilon)
        assert found.upper >= exact * (1 - mp.mpf(10) ** -11)
        assert found.lower is None or found.lower <= exact * (1 + mp.mpf(10) ** -11)
        assert found.upper <= float(exact) * (1 + 1e-3) + 1e-9
    assert composed.epsilon(float(delta(sigma, bound, shift, 10**4)) * 0.9).upper == math.inf


@pytest.mark.parametrize(
    ("sigma", "bound", "shift"),
    [(1.0, 38, 1), (1.0, 40, 1), (1.0, 41, 3), (100.0, 3890, 1), (0.02, 1, 1)],
)
def test_an_output_that_one_law_alone_has_leaves_no_pure_epsilon(sigma, bound, shift):
    composed = compose(plan(use(TruncatedDiscreteGaussian(sigma, bound), shift)))
    assert composed.epsilon(0.0).upper == math.inf  # however far beyond all floats its mass is


def test_a_longer_shift_costs_more():
    mechanism = TruncatedDiscreteGaussian(1.7, 6)
    for one, other in itertools.pairwise(range(1, 14)):
        for epsilon in (0.0, 0.5, 2.0):
            less, more = (mechanism.pair(float(s)).delta(epsilon) for s in (one, other))
            assert less <= more
    assert mechanism.pair(13.0).delta(50.0) == 1


def test_without_a_bound_that_matters_it_is_discrete_gaussian_noise():
    cut, whole = TruncatedDiscreteGaussian(3.0, 400), DiscreteGaussian(3.0)
    for epsilon in (0.0, 0.4, 2.0):
        assert cut.pair(2.0).delta(epsilon) == pytest.approx(whole.pair(2.0).delta(epsilon), 1e-12)
    assert cut.accuracy(0.95) == whole.accuracy(0.95)
    assert TruncatedDiscreteGaussian(3.0, 2).accuracy(0.999) == 2


def test_noise_never_exceeds_its_bound():
    released = TruncatedDiscreteGaussian(40.0, 2).release_many(7, 5000, np.random.default_rng(0))
    assert set(released.tolist()) == {5, 6, 7, 8, 9}
    with pytest.raises(InputError, match="bound is 2; it must be at least sigma/20"):
        TruncatedDiscreteGaussian(41.0, 2)


@pytest.mark.parametrize(("sigma", "bound", "shift"), CASES)
def test_the_checker_has_the_same_curve(sigma, bound, shift):
    record = TruncatedDiscreteGaussian(sigma, bound).to_dict()
    ((law, _),) = checker.uses_of(record, Fraction(shift), 1, drawn=False)
    w = 200
    for epsilon in (0, 1, 2, 20):
        t = checker.exp(epsilon, 1, w)[1]
        told = mp.mpf(checker.base_curve(law, t, w)) / mp.mpf(2) ** w
        exact = delta(sigma, bound, shift, epsilon)
        assert exact * (1 - mp.mpf(10) ** -50) <= told <= exact + mp.mpf(10) ** -40
        below = mp.mpf(checker.base_curve(law, (1 << 2 * w) // t, w)) / mp.mpf(2) ** w
        assert below >= 1 - mp.exp(-epsilon) + mp.exp(-epsilon) * exact - mp.mpf(10) ** -50
    assert checker.pure_of(law) is None
    assert checker.concentration_of(checker.Part(law, "all", Fraction(1))) is None
