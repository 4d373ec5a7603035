import itertools
import math
import re
from functools import cache

import mpmath as mp
import numpy as np
import pytest
from accounting_builders import plan, poisson, use
from hypothesis import given, settings
from hypothesis import strategies as st
from mechanism_conformance import MechanismConformance, PlainSource, grid_delta

from dpaudit import ReplaceOne
from dpaudit.accounting import compose, for_group, guarantee
from dpaudit.base.errors import InputError
from dpaudit.mechanisms import Gaussian, StableHistogram

mp.mp.dps = 40


@cache
def law(mechanism: StableHistogram, count: int) -> dict[int, mp.mpf]:
    """All that may be told of one key, 0 for silence, by the definition."""
    if count == 0:
        return {0: mp.mpf(1)}
    r, first = mp.exp(-1 / mp.mpf(mechanism.scale)), math.ceil(mechanism.threshold)
    end = max(first, count) + int(60 * mechanism.scale) + 60
    told = {z: (1 - r) / (1 + r) * r ** abs(z - count) for z in range(first, end)}
    told[end] = r ** (end - count) / (1 + r)
    return {0: 1 - sum(told.values()), **told}


def apart(p, q, epsilon) -> mp.mpf:
    """Σ (p − e^ε q)₊."""
    factor = mp.exp(epsilon)
    return sum(max(mass - factor * q.get(out, 0), 0) for out, mass in p.items())


def of_both(mechanism, counts) -> np.ndarray:
    """What may be told of two keys, but for what is rarer than anything that matters."""
    outs = [0, *range(math.ceil(mechanism.threshold), math.ceil(mechanism.threshold) + 60)]
    told = [law(mechanism, count) for count in counts]
    return np.outer(*([float(one.get(out, 0)) for out in outs] for one in told)).ravel()


def apart_of(p, q, epsilon) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


class TestStableHistogram(MechanismConformance):
    mechanism = StableHistogram(0.5, 6.0)
    unlike = StableHistogram(1.0, 6.0)
    value = 6.0
    neighbour = 7.0
    bad_parameters = (
        *({"scale": scale} for scale in (0.0, -1.0, math.nan, math.inf, 1e-4, 1e16, "1")),
        *({"threshold": least} for least in (1.0, 0.5, -2.0, math.nan, math.inf, 1e16, None)),
        *({"key_sensitivity": keys} for keys in (0, 1.5, -1, 10**7)),
    )
    bad_values = (math.nan, math.inf, -math.inf, "a", None, [1.0, math.nan], -1.0, 0.5, 2.0**60)

    def moments(self):
        told = law(self.mechanism, int(self.value))
        return (float(sum(p * out**power for out, p in told.items())) for power in (1, 2))

    def mean(self):
        return next(self.moments())

    def variance(self):
        first, second = self.moments()
        return second - first**2

    def exact_delta(self, epsilon):
        return float(
            apart(*(law(self.mechanism, int(x)) for x in (self.neighbour, self.value)), epsilon)
        )


class TestOfTwoKeys(TestStableHistogram):
    mechanism = StableHistogram(1.5, 3.0, key_sensitivity=2)
    unlike = StableHistogram(4.0, 3.0, key_sensitivity=2)
    value = (3.0, 0.0, 2.0, 40.0)
    neighbour = (4.0, 1.0, 2.0, 40.0)
    attained = False
    bad_values = ([math.nan, 1.0], [-1.0, 2.0], [0.5, 1.0], "a")

    def moments(self):
        told = law(self.mechanism, 3)
        return (float(sum(p * out**power for out, p in told.items())) for power in (1, 2))

    def exact_delta(self, epsilon):
        p, q = (of_both(self.mechanism, counts) for counts in ((4, 1), (3, 0)))
        return max(apart_of(p, q, epsilon), apart_of(q, p, epsilon))


USUAL = [(1.0, 5.0), (2.0, 2.0), (0.3, 2.0), (8.0, 3.0), (6.0, 30.0), (1.7, 4.2)]


@pytest.mark.parametrize(("scale", "threshold"), USUAL)
def test_the_pair_of_one_key_is_the_worst_of_all_counts_in_both_directions(scale, threshold):
    mechanism = StableHistogram(scale, threshold)
    laws = [law(mechanism, count) for count in range(math.ceil(threshold) + 4)]
    near = [*itertools.pairwise(laws), *((q, p) for p, q in itertools.pairwise(laws))]
    for epsilon in (0.0, 0.3 / scale, 0.9 / scale, 0.99 / scale, 1 / scale, 2.0, -0.2 / scale):
        worst = max(apart(p, q, epsilon) for p, q in near)
        assert float(mechanism.pair(1.0).delta(epsilon)) == pytest.approx(float(worst), rel=1e-12)


@pytest.mark.parametrize(("scale", "threshold"), USUAL[:4])
def test_several_keys_cost_no_more_than_is_proved(scale, threshold):
    """Two keys of any counts, which go up or down by one each, by enumeration."""
    two = StableHistogram(scale, threshold, key_sensitivity=2)
    composed, first = compose(plan(use(two))), math.ceil(threshold)
    moves = [(0, 1), (1, 2), (first - 1, first), (first + 1, first + 2)]
    ways = [move[::step] for move in moves for step in (1, -1)]
    both = [tuple(zip(*each, strict=True)) for each in itertools.product(ways, ways)]
    laws = [tuple(of_both(two, counts) for counts in each) for each in both]
    for epsilon in (0.0, 0.8 / scale, 1.7 / scale):
        found = composed.delta(epsilon)
        assert found.lower is None, "different neighbours are the worst of each key"
        worst = max(apart_of(p, q, epsilon) for p, q in laws)
        assert worst <= found.upper <= 2 * worst
        assert worst <= float(two.pair(1.0).delta(epsilon)) * (1 + 1e-12)


def worst_of(mechanism, epsilon):
    """δ of one key by the definition: a new one, or one at the threshold."""
    r, first = mp.exp(-1 / mp.mpf(mechanism.scale)), math.ceil(mechanism.threshold)
    return max((1 - r * mp.exp(epsilon)) / (1 + r), r ** (first - 1) / (1 + r))


@pytest.mark.parametrize("scale", [1e-3, 0.02, 0.7, 3.0, 1e4, 1e9, 1e15])
@pytest.mark.parametrize("threshold", [1.0000001, 2.0, 3.0, 57.0, 1e6, 1e15])
def test_both_ends_of_one_use_hold(scale, threshold):
    mechanism = StableHistogram(scale, threshold)
    composed, told = compose(plan(use(mechanism))), float(worst_of(mechanism, 1e9))
    for epsilon in (0.0, 0.4 / scale, 1 / scale, 3 / scale):
        found, truth = composed.delta(epsilon), worst_of(mechanism, epsilon)
        assert found.upper >= truth
        assert found.lower is None or found.lower <= truth
    for delta in (0.9 * told, min(1.5 * told, 0.99), 1e-9, 1e-3):
        found = composed.epsilon(delta)
        if delta < told * (1 - 1e-12):
            assert found.upper == math.inf
        elif found.lower is not None and found.upper > 0:
            r = mp.exp(-1 / mp.mpf(scale))
            truth = mp.log(max((1 - delta * (1 + r)) / r, 1))
            assert found.lower <= truth
            assert found.upper >= truth


def test_a_lower_end_is_stated_of_one_use_of_one_key_alone():
    one, two = StableHistogram(2.0, 20.0), StableHistogram(2.0, 20.0, key_sensitivity=2)
    assert (one.is_tight, two.is_tight) == (True, False)
    alone = compose(plan(use(one)))
    assert alone.epsilon(1e-3).lower is not None
    for epsilon in (0.0, 0.4, 3.0):
        found = alone.delta(epsilon)
        assert found.lower == pytest.approx(found.upper, rel=1e-8)
    for uses in (
        [use(one, count=2)],
        [use(two)],
        [use(one), use(Gaussian(30.0), at="sum")],
        [use(one, sampling=poisson(0.3))],
        [use(two, sampling=poisson(0.3))],
    ):
        composed = compose(plan(*uses))
        assert composed.epsilon(1e-3).lower is composed.delta(0.3).lower is None


def test_keys_are_accounted_as_that_many_uses():
    five = guarantee(plan(use(StableHistogram(9.0, 120.0, key_sensitivity=5))), 1e-4)
    uses = guarantee(plan(use(StableHistogram(9.0, 120.0), count=5)), 1e-4)
    assert five.epsilon == uses.epsilon < 5 / 9
    pair = StableHistogram(9.0, 120.0, key_sensitivity=5).pair(1.0)
    assert five.epsilon < float(pair.bound) <= 5 / 9


def test_of_a_group_any_key_may_move_by_more_than_one():
    """Two units make a new key of count 2, which is told more often than two keys of count 1."""
    mechanism = StableHistogram(2.0, 6.0)
    proved = compose(for_group(plan(use(mechanism)), 2)).delta(1.0).upper
    assert proved >= float(apart(law(mechanism, 2), law(mechanism, 0), 1.0))
    twice = float(StableHistogram(2.0, 6.0, key_sensitivity=2).pair(1.0).delta(1.0))
    assert proved > twice
    assert guarantee(plan(use(mechanism, relation=ReplaceOne())), 1e-1).epsilon < math.inf


@pytest.mark.parametrize("keys", [1, 2, 30, 10**6])
@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 900.0])
@pytest.mark.parametrize("delta", [1e-300, 1e-9, 1e-3, 0.4, 0.99])
def test_calibrated_noise_certifies_and_a_lower_threshold_does_not(epsilon, delta, keys):
    facts = {"epsilon": epsilon, "delta": delta, "key_sensitivity": keys}
    mechanism = StableHistogram.calibrated(**facts)
    assert float(mechanism.pair(1.0).delta(epsilon)) <= delta
    assert mechanism.scale == pytest.approx(keys / epsilon)
    if mechanism.threshold > 2 and mechanism.scale < 1e6:
        less = StableHistogram(mechanism.scale, mechanism.threshold - 1, keys)
        assert less.pair_and_failure(1.0)[1] > delta


sizes = st.one_of(st.floats(1e-300, 1.7e308), st.floats(-15, 4).map(lambda power: 10.0**power))
shares = st.one_of(
    st.sampled_from([5e-324, 1e-310, 1e-300, 1e-16, 1e-6, 0.5, 1 - 2**-53]),
    st.floats(-300, -1e-3).map(lambda power: 10.0**power),
)


@settings(max_examples=60, derandomize=True, deadline=None)
@given(sizes, shares, st.sampled_from([1, 2, 3, 7, 10**6]))
def test_what_calibration_returns_is_certified_at_its_target(epsilon, delta, keys):
    facts = {"epsilon": epsilon, "delta": delta, "key_sensitivity": keys}
    mechanism, refusal = None, ""
    try:
        mechanism = StableHistogram.calibrated(**facts)
    except InputError as error:
        refusal = str(error)
    if mechanism is None:
        assert re.fullmatch(r"(scale|epsilon|delta) is .*\.", refusal)
        assert delta < 1e-300 or not 1e-12 * keys < epsilon < 1e3 * keys
        return
    assert compose(plan(use(mechanism))).epsilon(delta).upper <= epsilon


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"epsilon": 0.0}, "epsilon is 0.0"),
        ({"epsilon": 1e-20}, "scale is 1e.20; it must be from 0.001"),
        ({"epsilon": 1e9}, "scale is 1e-09; it must be from 0.001"),
        (
            {"epsilon": 1e-15, "delta": 1e-300},
            "delta is 1e-300; it is too small for scale 1e.15",
        ),
        ({"delta": 0.0}, "delta is 0.0"),
        ({"delta": 5e-324, "key_sensitivity": 2}, "it is too small for scale 2"),
        ({"key_sensitivity": 0}, "key_sensitivity is 0"),
    ],
)
def test_what_cannot_be_calibrated_is_one_sentence(changed, message):
    with pytest.raises(InputError, match=message):
        StableHistogram.calibrated(**{"epsilon": 1.0, "delta": 1e-6, **changed})


@pytest.mark.parametrize("scale", [2.0, 1e15])
def test_silence_and_absence_look_alike(scale):
    mechanism = StableHistogram(scale, 5.0)
    rng = np.random.default_rng(3)
    for released in (
        mechanism.release_many([0, 1, 5, 9], 2000, rng),
        mechanism.release_exactly([0, 1, 5, 9], 1.0, 2000, PlainSource(rng)),
    ):
        assert (released[:, 0] == 0).all()
        assert ((released == 0) | (released >= 5)).all()
        assert (released[:, 1:3] == 0).any(axis=0).all()
    assert mechanism.release(np.empty(0), rng).shape == (0,)


@pytest.mark.parametrize(("value", "told"), [([0, 3], [7, 0]), ([2], [3]), ([2], [-8])])
def test_what_cannot_be_told_has_no_density(value, told):
    mechanism = StableHistogram(1.0, 5.0)
    assert mechanism.log_density([told], value) == -np.inf
    if value[0] == 0:
        assert mechanism.tails(told, np.array(value), np.random.default_rng(0)).tails == [0.0]


def test_its_distance_is_in_keys_and_in_counts():
    mechanism = StableHistogram(1.0, 5.0, key_sensitivity=2)
    far = {(1, 2, 3): 0.0, (2, 2, 3): 0.5, (2, 1, 3): 1.0, (2, 3, 4): 1.5, (3, 2, 3): 2.0}
    for other, expected in far.items():
        assert mechanism.distance(np.array([1, 2, 3]), np.array(other)) == expected
    assert mechanism.distance(np.array([1]), np.array([1, 0])) == math.inf
    assert mechanism.distance(np.empty(0), np.empty(0)) == 0


def test_brute_force_agrees_with_the_declared_density():
    mechanism = StableHistogram(2.0, 3.0)
    outputs = np.array([0, *range(3, 90)])
    densities = [mechanism.log_density(outputs, count) for count in (4, 3)]
    assert np.exp(densities).sum(axis=1) == pytest.approx(1.0, abs=1e-12)
    for epsilon in (0.0, 0.2, 0.4):
        exact = float(apart(law(mechanism, 4), law(mechanism, 3), epsilon))
        assert grid_delta(*densities, epsilon) == pytest.approx(exact, abs=1e-12)


@pytest.mark.parametrize("threshold", [740.0, 743.0, 744.0, 745.0, 746.0, 800.0])
def test_delta_is_rounded_up_among_the_least_floats(threshold):
    with mp.workdps(60):
        exact = mp.exp(1 - threshold) / (1 + mp.exp(-1))
        assert mp.mpf(StableHistogram(1.0, threshold, 1)._told) >= exact
