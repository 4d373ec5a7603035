import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from accounting_builders import plan, use
from mechanism_conformance import MechanismConformance, PlainSource, grid_delta
from scipy import stats

from dpaudit.accounting import guarantee
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.mechanisms import RandomizedResponse, SubsetSelection, UnaryEncoding
from dpaudit.plan import ReplaceOne
from dpaudit.workflow.calibrating import calibrate_target

BIT = 1 / (1 + math.exp(0.5))
OPTIMISED = UnaryEncoding(4, 1 / (1 + math.e))
SYMMETRIC = UnaryEncoding(4, BIT, 1 - BIT)
SUBSETS = SubsetSelection(6, 3 / (math.e + 2), 2)


class EncodingSuite(MechanismConformance):
    value = 0
    neighbour = 2
    bad_parameters = ({"lie": 0}, {"lie": 1}, {"k": 1}, {"k": 2.0}, {"lie": math.nan})
    bad_values = (math.nan, 6, -1, 0.5, [0, 1], "a", None)

    @property
    def released_shape(self):
        return (self.mechanism.k,)

    def mean(self):  # of the bit of the answer
        return self.mechanism.keep

    def variance(self):
        return self.mean() * (1 - self.mean())

    def exact_delta(self, epsilon):
        return grid_delta(*(np.log(self.mechanism.probabilities(v)) for v in (2, 0)), epsilon)


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
    unlike = SubsetSelection(6, 0.15, 2)
    bad_parameters = ({"p": 0}, {"p": 1.5}, {"k": 1}, {"members": 0}, {"members": 6})

    def mean(self):
        return 1 - SUBSETS.p * (1 - 2 / 6)


def exact_masses(mechanism, answer: int) -> list[Fraction]:
    """Of each output, in rational arithmetic."""
    masses = []
    for bits in mechanism.outputs(np.array(answer)).tolist():
        if isinstance(mechanism, SubsetSelection):
            p, k, size = Fraction(mechanism.p), mechanism.k, mechanism.members
            seen = (1 - p) / math.comb(k - 1, size - 1) if bits[answer] else 0
            masses.append(p / math.comb(k, size) + seen)
            continue
        lie = Fraction(mechanism.lie)
        ones = [Fraction(mechanism.keep) if at == answer else lie for at in range(mechanism.k)]
        told = (one if bit else 1 - one for bit, one in zip(bits, ones, strict=True))
        masses.append(math.prod(told, start=Fraction(1)))
    return masses


@pytest.mark.parametrize("mechanism", [OPTIMISED, SYMMETRIC, SUBSETS, UnaryEncoding(3, 0.7, 0.2)])
def test_the_pair_is_that_of_the_enumerated_likelihood_ratio(mechanism):
    p, q = (exact_masses(mechanism, answer) for answer in (1, 0))
    assert sum(p) == sum(q) == 1
    assert mechanism.probabilities(1) == pytest.approx(list(map(float, p)), rel=1e-13)
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


@pytest.mark.parametrize(
    ("kind", "fields"), [("unary-encoding", {"k": 10}), ("subset-selection", {"k": 10})]
)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0])
def test_a_claim_finds_its_lie(kind, fields, epsilon):
    settings = [f"{name}={value}" for name, value in fields.items()]
    found = calibrate_target(kind, settings, f"epsilon = {epsilon}")
    (mechanism,) = (each.mechanism for each in found.certificate.plan.invocations)
    assert epsilon * (1 - 1e-4) < float(mechanism.pair(1).pure_epsilon) <= epsilon


def test_one_bit_alone_is_not_what_it_costs():
    """Both bits matter: symmetric encoding with e^(ε/2) a bit costs ε, and not half."""
    assert SYMMETRIC.keep / (1 - SYMMETRIC.keep) == pytest.approx(math.exp(0.5))
    assert float(SYMMETRIC.pair(1).pure_epsilon) == pytest.approx(1.0)
    one, response = SubsetSelection(5, 0.4).pair(1), RandomizedResponse(0.4, 5).pair(1)
    assert one.pure_epsilon == pytest.approx(response.pure_epsilon, rel=1e-15)
    assert one.p == pytest.approx(response.p)


def test_alike_answers_cost_nothing():
    assert UnaryEncoding(4, 0.3, 0.3).pair(1).pure_epsilon == 0
    assert SubsetSelection(4, 1.0, 2).pair(1).pure_epsilon == 0


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


def test_extremes_are_served():
    assert float(UnaryEncoding(2, 5e-324).pair(1).pure_epsilon) == pytest.approx(744.44, 1e-4)
    assert float(SubsetSelection(2, 5e-324).pair(1).pure_epsilon) == pytest.approx(745.13, 1e-4)
    nearly = UnaryEncoding(2, 0.5, math.nextafter(0.5, 1)).pair(1)
    assert 0 < float(nearly.pure_epsilon) < 1e-15
    with pytest.raises(InputError, match="below k"):
        SubsetSelection(2, 0.5, 2)
    for mechanism in (UnaryEncoding(17, 0.25), SubsetSelection(30, 0.5, 9)):
        with pytest.raises(UnsupportedError, match="more than 100000 outputs"):
            mechanism.probabilities(0)
