import itertools
import json
import math
from fractions import Fraction
from functools import cache

import mpmath as mp
import numpy as np
import pytest
from accounting_builders import plan, use
from mechanism_conformance import MechanismConformance, PlainSource

from dpaudit import ReplaceOne, checker
from dpaudit.accounting import compose, guarantee
from dpaudit.base.errors import InputError
from dpaudit.certificate import Claim, SubjectRecord, certify
from dpaudit.mechanisms import DiscreteGaussian, GaussianHistogram, StableHistogram


@pytest.fixture(autouse=True)
def _precise():
    with mp.workdps(40):
        yield


@cache
def law(mechanism: GaussianHistogram, count: int) -> dict[int, float]:
    """All that may be told of one key, 0 for silence, by the definition."""
    if count == 0:
        return {0: 1.0}
    first, reach = math.ceil(mechanism.threshold), int(14 * mechanism.scale) + 3
    places = range(count - reach, count + reach + 1)
    masses = {z: math.exp(-(((z - count) / mechanism.scale) ** 2) / 2) for z in places}
    whole = math.fsum(masses.values())
    told = {z: mass / whole for z, mass in masses.items() if z >= first}
    return {0: 1 - math.fsum(told.values()), **told}


def of_both(mechanism, counts) -> np.ndarray:
    """What may be told of several keys."""
    first = math.ceil(mechanism.threshold)
    outs = [0, *range(first, first + int(20 * mechanism.scale) + 10)]
    joint = np.ones(1)
    for count in counts:
        told = law(mechanism, count)
        joint = np.outer(joint, [told.get(out, 0.0) for out in outs]).ravel()
    return joint


def apart(p, q, epsilon) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


class TestGaussianHistogram(MechanismConformance):
    mechanism = GaussianHistogram(1.5, 6.0)
    unlike = GaussianHistogram(3.0, 6.0)
    value = 6.0
    neighbour = 7.0
    attained = False
    bad_parameters = (
        *({"scale": scale} for scale in (0.0, -1.0, math.nan, 0.05, 1e4, "1")),
        *({"threshold": least} for least in (1.0, -2.0, math.nan, 1e16, None)),
        *({"key_sensitivity": keys} for keys in (0, 1.5, 10**7)),
        *({"count_sensitivity": most} for most in (0, 1.5, 101)),
        {"threshold": 7.0, "count_sensitivity": 7},
    )
    bad_values = (math.nan, math.inf, "a", None, [1.0, math.nan], -1.0, 0.5, 2.0**60)

    def moments(self):
        told = law(self.mechanism, int(np.ravel(self.value)[0]))
        return (sum(p * out**power for out, p in told.items()) for power in (1, 2))

    def mean(self):
        return next(self.moments())

    def variance(self):
        first, second = self.moments()
        return second - first**2

    def exact_delta(self, epsilon):
        return apart(*(of_both(self.mechanism, (int(x),)) for x in (7, 6)), epsilon)


class TestOfTwoKeys(TestGaussianHistogram):
    mechanism = GaussianHistogram(1.5, 5.0, key_sensitivity=2, count_sensitivity=2)
    unlike = GaussianHistogram(4.0, 5.0, key_sensitivity=2, count_sensitivity=2)
    value = (5.0, 0.0, 2.0, 40.0)
    neighbour = (6.0, 2.0, 2.0, 40.0)
    bad_values = ([math.nan, 1.0], [-1.0, 2.0], [0.5, 1.0], "a")

    def exact_delta(self, epsilon):
        p, q = (of_both(self.mechanism, counts) for counts in ((6, 2), (5, 0)))
        return max(apart(p, q, epsilon), apart(q, p, epsilon))


@pytest.mark.parametrize(
    ("scale", "threshold", "most"), [(1.0, 4.0, 1), (0.4, 2.0, 1), (2.0, 4.0, 3), (3.0, 12.5, 2)]
)
@pytest.mark.parametrize("keys", [1, 2])
def test_neighbours_of_any_counts_cost_no_more_than_is_proved(scale, threshold, most, keys):
    """Each key's count moves up, down or not, from none or from around the threshold."""
    mechanism = GaussianHistogram(scale, threshold, keys, most)
    composed, first = compose(plan(use(mechanism))), math.ceil(threshold)
    starts = sorted({0, 1, first - most, first - 1, first, first + most})
    moves = [(a, a + step) for a in starts for step in {1, most} if a >= 0]
    both = [*moves, *(move[::-1] for move in moves)]
    for epsilon in (0.0, 0.3, 1.0, 2.5):
        worst = 0.0
        for each in itertools.product(both, repeat=keys):
            p, q = (of_both(mechanism, counts) for counts in zip(*each, strict=True))
            worst = max(worst, apart(p, q, epsilon))
        proved = composed.delta(epsilon)
        assert proved.lower is None
        assert worst * (1 - 1e-9) <= proved.upper <= 4 * worst + 1e-12
        assert worst * (1 - 1e-9) <= float(mechanism.pair(1.0).delta(epsilon))


@pytest.mark.parametrize("sigma", [0.1, 0.5, 1.0, 7.3, 900.0, 9999.0])
@pytest.mark.parametrize("far", [1, 2, 9, 350, 10**6, 10**14])
def test_what_tells_a_new_key_is_rounded_up(sigma, far):
    told = GaussianHistogram(sigma, far + 1.0)._told
    exponent = (far / sigma) ** 2 / 2
    if exponent > 3000:
        assert told == 5e-324
        return
    with mp.workdps(60):
        s = mp.mpf(sigma)
        if sigma >= 100:  # the masses between two halves, to a part in 10^5
            exact = mp.ncdf(-(far - mp.mpf(1) / 2) / s) * (1 - (far / s) ** 2 / s**2 / 12)
            assert float(exact) * (1 - 1e-5) <= told <= float(exact) * (1 + 1e-4) + 1e-323
            return
        whole = mp.jtheta(3, 0, mp.exp(-1 / (2 * s**2)))
        exact = mp.fsum(
            mp.exp(-(mp.mpf(far + j) ** 2) / (2 * s**2)) for j in range(int(60 * s) + 9)
        )
        assert exact / whole <= mp.mpf(told)
        assert told <= float(exact / whole) * (1 + 1e-10) + 1e-323


@pytest.mark.parametrize("keys", [1, 3, 1000])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("delta", [1e-30, 1e-9, 1e-2])
def test_what_calibration_returns_is_certified_at_its_target(keys, epsilon, delta):
    mechanism = GaussianHistogram.calibrated(
        epsilon=epsilon, delta=delta, key_sensitivity=keys, count_sensitivity=2
    )
    assert compose(plan(use(mechanism)), "zcdp").epsilon(delta).upper <= epsilon * (1 + 1e-9)


def test_what_cannot_be_calibrated_is_one_sentence():
    for wish in ({"epsilon": 0.0}, {"delta": 0.0}, {"epsilon": 1e-9}, {"key_sensitivity": 0}):
        with pytest.raises(InputError) as caught:
            GaussianHistogram.calibrated(**{"epsilon": 1.0, "delta": 1e-6, **wish})
        assert str(caught.value).endswith(".")


def test_many_keys_cost_less_than_with_laplace_noise():
    """100 keys at (1, 1e-6): the threshold is a sixth."""
    facts = {"epsilon": 1.0, "delta": 1e-6, "key_sensitivity": 100}
    normal, laplace = GaussianHistogram.calibrated(**facts), StableHistogram.calibrated(**facts)
    assert (normal.threshold, laplace.threshold) == (270, 1775)
    assert guarantee(plan(use(normal)), 1e-6).epsilon < 0.93


def test_keys_are_accounted_as_that_many_uses_of_discrete_gaussian_noise():
    five = GaussianHistogram(9.0, 80.0, key_sensitivity=5, count_sensitivity=2)
    told = five.pair_and_failure(1.0)[1]
    apart_from = compose(plan(use(DiscreteGaussian(9.0), 2.0, count=5))).delta(0.7).upper
    found = compose(plan(use(five))).delta(0.7).upper
    assert found == pytest.approx(apart_from + told, rel=1e-3)
    assert guarantee(plan(use(five, relation=ReplaceOne())), 1e-2).epsilon < math.inf


@pytest.mark.parametrize("keys", [1, 20])
def test_the_checker_proves_about_the_same(keys):
    mechanism = GaussianHistogram(8.0, 70.0, keys, 2)
    record = json.loads(json.dumps(mechanism.to_dict()))
    uses = checker.uses_of(record, Fraction(1), 1, drawn=False)
    told = Fraction(mechanism._told) / keys
    ((response, n), (lattice, m)) = uses
    assert (lattice.numbers, n, m) == ((64, 2), keys, keys)
    assert told * (1 - Fraction(1, 10**9)) <= response.numbers[1] <= told * (1 + Fraction(1, 10**9))
    with pytest.raises(checker.InputError, match="threshold must be above"):
        checker.uses_of(record | {"threshold": 2.0}, Fraction(1), 1, drawn=False)


def test_silence_and_absence_look_alike():
    mechanism, rng = GaussianHistogram(2.0, 5.0), np.random.default_rng(3)
    for released in (
        mechanism.release_many([0, 1, 5, 9], 2000, rng),
        mechanism.release_exactly([0, 1, 5, 9], 1.0, 2000, PlainSource(rng)),
    ):
        assert (released[:, 0] == 0).all()
        assert ((released == 0) | (released >= 5)).all()
        assert (released[:, 1:3] == 0).any(axis=0).all()


def test_its_distance_is_in_keys_and_in_counts():
    mechanism = GaussianHistogram(1.0, 5.0, key_sensitivity=2, count_sensitivity=2)
    far = {(1, 2, 3): 0.0, (3, 2, 3): 0.5, (2, 1, 3): 1.0, (2, 3, 5): 1.5, (5, 2, 3): 2.0}
    for other, expected in far.items():
        assert mechanism.distance(np.array([1, 2, 3]), np.array(other)) == expected
    assert mechanism.distance(np.array([1]), np.array([1, 0])) == math.inf


def test_a_threshold_that_is_too_low_is_told():
    low = plan(use(GaussianHistogram(5.0, 10.0)))
    made = certify(low, subject=SubjectRecord("keys"), claim=Claim(1.0, 1e-9))
    (found,) = made.findings
    assert "Raise the threshold of gaussian-histogram" in found.remedy
