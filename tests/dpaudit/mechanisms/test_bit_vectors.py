import itertools
import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from accounting_builders import plan, use
from mechanism_conformance import MechanismConformance, grid_delta

from dpaudit import checker
from dpaudit.accounting import compose, guarantee
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.mechanisms import BitVectorResponse, RandomizedResponse
from dpaudit.plan import ReplaceOne
from dpaudit.workflow.calibrating import calibrate_target


class TestBitVectorResponse(MechanismConformance):
    mechanism = BitVectorResponse(0.7, 5, 2)
    unlike = BitVectorResponse(0.2, 5, 2)
    value = (1, 1, 0, 0, 0)
    neighbour = (0, 0, 0, 1, 1)
    bad_parameters = (
        *({"p": p} for p in (0.0, 1.5, math.nan)),
        *({"bits": bits} for bits in (0, 2.0, 10_001)),
        *({"ones": ones} for ones in (0, 6, 1.5)),
    )
    bad_values = (0, (1, 1, 1, 0, 0), (1, 0), (0.5, 0, 0, 0, 0), (2, 0, 0, 0, 0), "a", None)

    def mean(self):  # of the first bit, which is 1
        return 1 - 0.7 / 2

    def variance(self):
        return self.mean() * (1 - self.mean())

    def exact_delta(self, epsilon):
        masses = (self.mechanism.probabilities(each) for each in (self.neighbour, self.value))
        return grid_delta(*(np.log(np.array(each, dtype=float)) for each in masses), epsilon)


def law(mechanism: BitVectorResponse, vector) -> list[Fraction]:
    """Of all vectors, bit by bit."""
    lie = Fraction(mechanism.p) / 2
    return [
        math.prod((lie if a != b else 1 - lie for a, b in zip(vector, out, strict=True)), start=1)
        for out in itertools.product((0, 1), repeat=mechanism.bits)
    ]


@pytest.mark.parametrize(("bits", "ones"), [(1, 1), (3, 1), (4, 2), (4, 3), (3, 3)])
def test_the_pair_is_the_worst_of_all_vectors_by_enumeration(bits, ones):
    mechanism = BitVectorResponse(0.4, bits, ones)
    vectors = [v for v in itertools.product((0, 1), repeat=bits) if sum(v) <= ones]
    laws = [law(mechanism, vector) for vector in vectors]
    pair = mechanism.pair(1)
    for epsilon in (0.0, 0.6, 1.4, 3.0, 5.0):
        factor = Fraction(math.exp(epsilon))
        worst = max(
            sum(max(a - factor * b, 0) for a, b in zip(p, q, strict=True))
            for p, q in itertools.product(laws, repeat=2)
        )
        assert float(pair.delta(math.log(factor))) == pytest.approx(float(worst), rel=1e-12)
    ratio = max(
        max(a / b for a, b in zip(p, q, strict=True)) for p, q in itertools.product(laws, laws)
    )
    with mp.workdps(50):
        exact = mp.log(mp.mpf(ratio.numerator) / ratio.denominator)
        assert exact <= mp.mpf(pair.bound.numerator) / pair.bound.denominator <= exact * (1 + 1e-14)


def binomial_delta(p: float, differing: int, epsilon: float) -> mp.mpf:
    lie = mp.mpf(p) / 2
    step, total = mp.log((1 - lie) / lie), mp.mpf(0)
    for j in range(differing + 1):
        if (loss := (2 * j - differing) * step) > epsilon:
            mass = mp.binomial(differing, j) * (1 - lie) ** j * lie ** (differing - j)
            total += mass * -mp.expm1(epsilon - loss)
    return total


@pytest.mark.parametrize("p", [5e-324, 1e-300, 1e-9, 0.5, 0.999, 1 - 2**-53])
@pytest.mark.parametrize("ones", [1, 3, 200])
def test_both_ends_hold_at_the_extremes_of_floats(p, ones):
    mechanism = BitVectorResponse(p, 1000, ones)
    composed = compose(plan(use(mechanism, relation=ReplaceOne())))
    with mp.workdps(60):
        top = 2 * ones * mp.log((2 - mp.mpf(p)) / mp.mpf(p))
        assert mp.mpf(composed.epsilon(0.0).upper) >= top
        for share in (0.0, 0.1, 0.5, 0.999):
            epsilon = float(top) * share
            exact, found = binomial_delta(p, 2 * ones, epsilon), composed.delta(epsilon)
            assert found.upper >= exact * (1 - mp.mpf(10) ** -11)
            assert found.upper >= float(exact) * (1 - 1e-11)
            assert found.lower is None or found.lower <= exact * (1 + mp.mpf(10) ** -11)


def test_it_costs_what_so_many_randomised_responses_do():
    vector = BitVectorResponse(0.8, 64, 8)
    found = guarantee(plan(use(vector, relation=ReplaceOne(), count=5)), 1e-5)
    bits = guarantee(plan(use(RandomizedResponse(0.8), relation=ReplaceOne(), count=80)), 1e-5)
    assert found.epsilon == pytest.approx(bits.epsilon, rel=1e-3)


def test_no_difference_and_uniform_bits_cost_nothing():
    assert BitVectorResponse(1.0, 8, 2).pair(1).pure_epsilon == 0
    with pytest.raises(InputError, match="sensitivity is 2"):
        BitVectorResponse(0.5, 8, 2).pair(2)
    with pytest.raises(UnsupportedError, match="more than"):
        BitVectorResponse(0.5, 30, 2).probabilities([0] * 30)


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_a_claim_finds_its_p(epsilon):
    found = calibrate_target("bit-vector-response", ["bits=32", "ones=2"], f"epsilon = {epsilon}")
    (mechanism,) = (each.mechanism for each in found.certificate.plan.invocations)
    assert epsilon * (1 - 1e-4) < float(mechanism.pair(1).pure_epsilon) <= epsilon


def test_the_checker_charges_each_bit_that_may_differ():
    for bits, ones in ((32, 2), (3, 2)):
        record = BitVectorResponse(0.5, bits, ones).to_dict()
        ((law_of_bit, times),) = checker.uses_of(record, Fraction(1), 1, drawn=False)
        assert (law_of_bit.numbers, times) == ((Fraction(3, 4), Fraction(1, 4)), min(4, bits))
