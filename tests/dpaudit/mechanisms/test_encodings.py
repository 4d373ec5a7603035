import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from accounting_builders import plan, use
from mechanism_conformance import MechanismConformance, PlainSource
from scipy import stats

from dpaudit.accounting import guarantee
from dpaudit.errors import InputError, UnsupportedError
from dpaudit.mechanisms import RandomizedResponse, SubsetSelection, UnaryEncoding
from dpaudit.plan import ReplaceOne

OPTIMISED = UnaryEncoding.calibrated(epsilon=1.0, k=4)
SYMMETRIC = UnaryEncoding.calibrated(epsilon=1.0, k=4, symmetric=True)
SUBSETS = SubsetSelection.calibrated(epsilon=1.0, k=6)


class EncodingSuite(MechanismConformance):
    value = 0
    neighbour = 2
    bad_parameters = ({"lie": 0}, {"lie": 1}, {"k": 1}, {"k": 2.0}, {"lie": math.nan})
    bad_values = (math.nan, 6, -1, 0.5, [0, 1], "a", None)

    @property
    def released_shape(self):
        return (self.mechanism.k,)

    def mean(self):  # of the bit of the answer
        return getattr(self.mechanism, "keep", 1 - self.mechanism.lie)

    def variance(self):
        return self.mean() * (1 - self.mean())

    def exact_delta(self, epsilon):
        p, q = (self.mechanism.probabilities(value) for value in (2, 0))
        odds = Fraction(math.exp(epsilon))
        return float(sum((max(a - odds * b, 0) for a, b in zip(p, q, strict=True)), Fraction(0)))


class TestOptimisedUnaryEncoding(EncodingSuite):
    mechanism = OPTIMISED
    unlike = UnaryEncoding(4, 0.1, 0.9)
    bad_parameters = (*EncodingSuite.bad_parameters, {"keep": 0.0})
    value = 1  # the first bit is then another's

    def mean(self):
        return OPTIMISED.lie

    def variance(self):
        return OPTIMISED.lie * (1 - OPTIMISED.lie)


class TestSymmetricUnaryEncoding(EncodingSuite):
    mechanism = SYMMETRIC
    unlike = UnaryEncoding(4, 0.1, 0.9)


class TestSubsetSelection(EncodingSuite):
    mechanism = SUBSETS
    unlike = SubsetSelection(6, 0.1, 2)
    bad_parameters = (*EncodingSuite.bad_parameters, {"members": 0}, {"members": 6})


@pytest.mark.parametrize("mechanism", [OPTIMISED, SYMMETRIC, SUBSETS, UnaryEncoding(3, 0.7, 0.2)])
def test_the_pair_is_that_of_the_enumerated_likelihood_ratio(mechanism):
    p, q = (mechanism.probabilities(value) for value in (1, 0))
    assert sum(p) == sum(q) == 1
    ratios = {a / b for a, b in zip(p, q, strict=True)}
    pair = mechanism.pair(1)
    assert len(ratios) == 3
    with mpmath.workdps(50):
        largest = max(ratios)
        exact = mpmath.log(mpmath.mpf(largest.numerator) / largest.denominator)
        assert exact <= mpmath.mpf(pair.pure_epsilon) <= exact * (1 + mpmath.mpf(2) ** -48)
    masses = [sum(a for a, b in zip(p, q, strict=True) if a / b == each) for each in sorted(ratios)]
    assert pair.p == pytest.approx([float(each) for each in masses], rel=1e-14)
    found = guarantee(plan(use(mechanism, relation=ReplaceOne())), 1e-2)
    assert found.error_bound is not None


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 8.0, 30.0, 600.0])
@pytest.mark.parametrize("symmetric", [False, True])
def test_calibration_of_unary_encodings(epsilon, symmetric):
    if symmetric and epsilon > 72:
        with pytest.raises(InputError, match="floats end before"):
            UnaryEncoding.calibrated(epsilon=epsilon, k=10, symmetric=True)
        return
    made = UnaryEncoding.calibrated(epsilon=epsilon, k=10, symmetric=symmetric)
    found = float(made.pair(1).pure_epsilon)
    fits = 1e-9 if epsilon < 30 or not symmetric else 1e-3  # 1 − p is a float of few digits
    assert epsilon * (1 - fits) - 1e-15 < found <= epsilon


@pytest.mark.parametrize(("epsilon", "k"), [(0.1, 2), (1.0, 100), (4.0, 10)])
def test_calibration_of_subsets(epsilon, k):
    made = SubsetSelection.calibrated(epsilon=epsilon, k=k)
    assert epsilon * (1 - 1e-9) < float(made.pair(1).pure_epsilon) <= epsilon
    assert made.members == max(1, round(k / (math.exp(epsilon) + 1)))


def test_one_bit_alone_is_not_what_it_costs():
    """Both bits matter: symmetric encoding with e^(ε/2) a bit costs ε, and not half."""
    assert SYMMETRIC.keep / (1 - SYMMETRIC.keep) == pytest.approx(math.exp(0.5))
    assert float(SYMMETRIC.pair(1).pure_epsilon) == pytest.approx(1.0)
    one = SubsetSelection(5, 0.4, 1)
    lie = (1 - 0.6) * 5 / 4
    assert float(one.pair(1).pure_epsilon) == pytest.approx(
        float(RandomizedResponse(lie, 5).pair(1).pure_epsilon)
    )


def test_alike_answers_cost_nothing():
    assert UnaryEncoding(4, 0.3, 0.3).pair(1).pure_epsilon == 0
    assert SubsetSelection(4, 0.5, 2).pair(1).pure_epsilon == 0


@pytest.mark.parametrize("mechanism", [OPTIMISED, SUBSETS])
@pytest.mark.parametrize("exact", [False, True])
def test_outputs_have_the_enumerated_probabilities(mechanism, exact):
    if exact:
        source = PlainSource(np.random.default_rng(3))
        drawn = mechanism.release_exactly(1, 1.0, 6_000, source)
    else:
        drawn = mechanism.release_many(1, 20_000, np.random.default_rng(3))
    log_mass = mechanism.log_density(drawn, 1)
    distinct, counts = np.unique(drawn, axis=0, return_counts=True)
    masses = np.exp(mechanism.log_density(distinct, 1))
    assert masses.sum() == pytest.approx(1)
    assert sorted(masses) == pytest.approx(sorted(map(float, mechanism.probabilities(1))))
    assert stats.chisquare(counts, len(drawn) * masses).pvalue > 1e-6
    assert np.isfinite(log_mass).all()
    wrong = np.full((1, mechanism.k), 0.5)
    assert mechanism.log_density(wrong, 1).tolist() == [-math.inf]


def test_extremes_are_served_or_refused():
    assert float(UnaryEncoding(2, 5e-324).pair(1).pure_epsilon) == pytest.approx(744.44, 1e-4)
    with pytest.raises(InputError, match="floats end before"):
        UnaryEncoding.calibrated(epsilon=1e300, k=2)
    assert float(SubsetSelection.calibrated(epsilon=1e300, k=2).pair(1).pure_epsilon) > 20
    assert float(UnaryEncoding.calibrated(epsilon=1e-300, k=2).pair(1).pure_epsilon) == 0
    for mechanism in (UnaryEncoding(17, 0.25), SubsetSelection(30, 0.5, 9)):
        with pytest.raises(UnsupportedError, match="more than 100000 outputs"):
            mechanism.probabilities(0)
