"""The cost of private selection, against the law of the best of a random number of runs."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from mechanism_conformance import PrivacyConformance

from dpaudit import (
    AddRemove,
    Gaussian,
    Invocation,
    Laplace,
    Plan,
    PoissonSampling,
    PrivacyUnit,
    TrustModel,
    checker,
)
from dpaudit.accounting import for_group, guarantee
from dpaudit.accounting.orders import ORDERS
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.certificate.checking import witness_of
from dpaudit.mechanisms import (
    ApproximateBlackBox,
    ConcentratedBlackBox,
    Opaque,
    ProfileBlackBox,
    PureBlackBox,
    Shuffled,
)
from dpaudit.plan import (
    NegativeBinomialRuns,
    PoissonRuns,
    PrivateSelection,
    ReplaceOne,
    Runs,
    ZeroOut,
)

FACTS = (PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL)
LAWS: list[Runs] = [
    NegativeBinomialRuns(0.1),
    NegativeBinomialRuns(0.01, 0.0),
    NegativeBinomialRuns(0.3, -0.7),
    NegativeBinomialRuns(0.2, 2.5),
    NegativeBinomialRuns(1e-6),
    PoissonRuns(0.4),
    PoissonRuns(20.0),
]


def one_run(mechanism, **facts) -> Plan:
    return Plan.of(Invocation(mechanism, 1.0, *FACTS, **facts))


def of(mechanism, runs: Runs, **facts) -> PrivateSelection:
    return PrivateSelection(one_run(mechanism, **facts), runs)


def generating(runs: Runs, x):
    """E[x^K], by the papers' closed forms, in mpmath."""
    x = mpmath.mpf(x)
    if isinstance(runs, PoissonRuns):
        return mpmath.exp(runs.mean * (x - 1))
    assert isinstance(runs, NegativeBinomialRuns)
    gamma, shape = mpmath.mpf(runs.gamma), mpmath.mpf(runs.shape)
    if shape == 0:
        return mpmath.log1p(-(1 - gamma) * x) / mpmath.log(gamma)
    top = (1 - (1 - gamma) * x) ** -shape - 1
    return top / (gamma**-shape - 1)


def best_of(runs: Runs, masses) -> list:
    """The law of the best of K draws, outputs in the order of their scores, and of none at all."""
    sums = [mpmath.fsum(masses[:n]) for n in range(len(masses) + 1)]
    ends = [generating(runs, each) for each in sums]
    return [ends[0], *(b - a for a, b in pairwise(ends))]


def exceeds(p, q, epsilon: float):
    return mpmath.fsum(max(a - mpmath.exp(epsilon) * b, 0) for a, b in zip(p, q, strict=True))


def renyi(p, q, order: float):
    moments = [a**order * b ** (1 - order) for a, b in zip(p, q, strict=True) if a]
    return mpmath.log(mpmath.fsum(moments)) / (order - 1)


def neighbours(epsilon: float):
    """Laws of three outputs whose ratios are e^ε, 1/e^ε and between, the rare one in the middle."""
    e = mpmath.exp(epsilon)
    for top in (0.3 / e, 0.01, 1e-4):
        for middle in (0.2 / e, 1e-3):
            one = [1 - top - middle, middle, top]
            two = [1 - e * top - middle / e, middle / e, e * top]
            yield one, two
            yield two, one


@pytest.mark.parametrize("runs", LAWS, ids=str)
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 2.0])
def test_no_pure_run_costs_more_than_is_proved(runs, epsilon):
    pair = of(PureBlackBox(epsilon), runs).pair(1.0)
    for p, q in neighbours(epsilon):
        one, two = best_of(runs, p), best_of(runs, q)
        worst = max(mpmath.log(a / b) for a, b in zip(one, two, strict=True) if a)
        assert worst <= float(pair.pure_epsilon) * (1 + 1e-9)
        for at in np.linspace(0, 3 * epsilon, 7):
            assert exceeds(one, two, at) <= float(pair.delta(at)) * (1 + 1e-9) + 1e-15
        for order in (1.01, 1.5, 2.0, 8.0, 100.0):
            assert renyi(one, two, order) <= float(pair.renyi([order])[0]) * (1 + 1e-9)


@pytest.mark.parametrize("runs", LAWS, ids=str)
def test_no_gaussian_run_costs_more_than_is_proved(runs):
    """A run on a fine grid of its outputs, the best of which is the largest."""
    pair = of(Gaussian(2.0), runs).pair(1.0)
    ends = [mpmath.mpf(x) / 4 for x in range(-24, 25)]
    for shift in (0.5, -0.5):
        p, q = (
            [
                mpmath.ncdf(b / 2 - side) - mpmath.ncdf(a / 2 - side)
                for a, b in zip([-mpmath.inf, *ends], [*ends, mpmath.inf], strict=True)
            ]
            for side in (shift, 0)
        )
        with mpmath.workdps(50):
            one, two = best_of(runs, p), best_of(runs, q)
        for at in (0.0, 0.3, 1.0, 2.0):
            assert exceeds(one, two, at) <= float(pair.delta(at)) * (1 + 1e-9)
        for order in (1.1, 2.0, 5.0, 20.0):
            assert renyi(one, two, order) <= float(pair.renyi([order])[0]) * (1 + 1e-9)


@pytest.mark.parametrize("shape", [-0.5, 0.0, 1.0, 3.0])
def test_the_pure_cost_is_attained_in_the_limit(shape):
    """A rare output of ratio e^ε below a tail of ratio e^−ε that is far above γ."""
    runs, epsilon, e = NegativeBinomialRuns(1e-6, shape), 0.3, mpmath.exp(0.3)
    top, middle = mpmath.mpf("1e-2"), mpmath.mpf("1e-12")
    with mpmath.workdps(60):
        one = best_of(runs, [1 - top - middle, middle, top])
        two = best_of(runs, [1 - e * top - middle / e, middle / e, e * top])
    worst = mpmath.log(one[2] / two[2])
    proved = of(PureBlackBox(epsilon), runs).pair(1.0).pure_epsilon
    assert proved == pytest.approx(float((2 + Fraction(shape)) * Fraction(epsilon)), rel=1e-5)
    assert 0.995 * float(proved) < worst < float(proved)


@pytest.mark.parametrize("runs", LAWS, ids=str)
def test_the_mean_number_of_runs_is_the_slope_at_one(runs):
    with mpmath.workdps(80):
        step = mpmath.mpf(10) ** -40
        slope = (generating(runs, 1) - generating(runs, 1 - step)) / step
    assert runs.expected == pytest.approx(float(slope), rel=1e-12)


def test_the_mean_number_of_runs_at_the_extremes_of_floats():
    assert NegativeBinomialRuns(1 - 1e-12, 5e-324).expected == pytest.approx(1.0)
    assert NegativeBinomialRuns(1e-12, 1.0).expected == pytest.approx(1e12)
    assert NegativeBinomialRuns(0.1, 1e-12).expected == pytest.approx(9 / math.log(10), rel=1e-9)
    assert math.isfinite(NegativeBinomialRuns(1e-12, -0.999).expected)


@pytest.mark.parametrize(
    ("epsilon", "mean"), [(1e-17, 1e17), (1e-16, 1e16), (1e-12, 1e12), (1e-8, 1e8), (1e-6, 10.0)]
)
def test_many_runs_that_cost_next_to_nothing_cost_what_they_are(epsilon, mean):
    pure = of(PureBlackBox(epsilon), PoissonRuns(mean)).pair(1.0).pure_epsilon
    with mpmath.workdps(40):  # ε + μ tanh(ε/2), attained in the limit
        exact = epsilon + mean * mpmath.tanh(mpmath.mpf(epsilon) / 2)
        assert exact <= mpmath.mpf(pure.numerator) / pure.denominator <= exact * (1 + 1e-9)


@pytest.mark.parametrize("shape", [0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("sampled", [False, True])
def test_divergences_are_those_of_dp_accounting_or_less(shape, sampled):
    """Papernot and Steinke 2022, Theorem 2, by another library on the same orders."""
    from dp_accounting import dp_event
    from dp_accounting.rdp import RdpAccountant

    gamma = 0.05
    facts = {"count": 100, "sampling": PoissonSampling(0.1)} if sampled else {}
    runs = NegativeBinomialRuns(gamma, shape)
    pair = of(Gaussian(3.0), runs, **facts).pair(1.0)
    orders = [float(each) for each in ORDERS if 1.5 < each < 200]
    event = dp_event.GaussianDpEvent(3.0)
    if sampled:
        event = dp_event.PoissonSampledDpEvent(0.1, event)
        event = dp_event.SelfComposedDpEvent(event, 100)
    theirs = RdpAccountant(orders).compose(
        dp_event.RepeatAndSelectDpEvent(event, runs.expected, shape)
    )
    ours = pair.renyi(orders)
    assert np.all(ours <= theirs._rdp * (1 + 1e-3))


def test_divergences_of_a_poisson_number_are_those_of_dp_accounting():
    from dp_accounting import dp_event
    from dp_accounting.rdp import RdpAccountant

    orders = [float(each) for each in ORDERS if 2 < each < 200]
    event = dp_event.RepeatAndSelectDpEvent(dp_event.GaussianDpEvent(5.0), 20.0, math.inf)
    theirs = RdpAccountant(orders).compose(event)
    ours = of(Gaussian(5.0), PoissonRuns(20.0)).pair(1.0).renyi(orders)
    assert np.all(ours <= theirs._rdp * (1 + 1e-3))


class TestPrivateSelection(PrivacyConformance):
    mechanism = of(Laplace(2.0), NegativeBinomialRuns(0.1))


class TestSelectionOfGaussians(PrivacyConformance):
    mechanism = of(Gaussian(2.0), NegativeBinomialRuns(0.1, 0.0))


class TestPoissonSelection(PrivacyConformance):
    mechanism = of(Gaussian(2.0), PoissonRuns(5.0))


def whole(selection: PrivateSelection, **facts) -> Plan:
    return Plan.of(Invocation(selection, 1.0, *FACTS, at="search", **facts))


def test_more_runs_cost_more_and_more_searches_too():
    costs = [
        guarantee(whole(of(Gaussian(4.0), NegativeBinomialRuns(gamma))), 1e-6).epsilon
        for gamma in (0.5, 0.1, 0.01)
    ]
    assert costs == sorted(costs)
    twice = guarantee(whole(of(Gaussian(4.0), NegativeBinomialRuns(0.5)), count=2), 1e-6)
    assert costs[0] < twice.epsilon < 2.1 * costs[0]


def test_one_run_alone_costs_less_than_any_search():
    one = guarantee(one_run(Gaussian(4.0)), 1e-6).epsilon
    for runs in LAWS[:5]:  # of a Poisson number there may be none
        assert guarantee(whole(of(Gaussian(4.0), runs)), 1e-6).epsilon >= one * (1 - 1e-9)


def test_a_run_without_noise_and_one_that_costs_nothing():
    assert guarantee(whole(of(PureBlackBox(0.0), NegativeBinomialRuns(0.1))), 0.0).epsilon == 0
    vast = guarantee(whole(of(Gaussian(1e-300), NegativeBinomialRuns(0.1))), 1e-6)
    assert vast.epsilon == math.inf
    large = guarantee(whole(of(Laplace(1e-3), NegativeBinomialRuns(0.1))), 0.0)
    assert large.epsilon == 3000


def test_runs_that_fail_with_probability_keep_their_failure():
    """A run of (ε, δ) costs E[K] δ at least, as each run may fail."""
    box = ApproximateBlackBox(0.1, 1e-7)
    found = guarantee(whole(of(box, NegativeBinomialRuns(0.1))), 1e-5).epsilon
    assert 0.299 <= found <= 0.3
    below = guarantee(whole(of(box, NegativeBinomialRuns(0.1))), 1e-7).epsilon
    assert below == math.inf


def test_what_has_divergences_alone_can_be_run():
    found = guarantee(whole(of(ConcentratedBlackBox(0.01), NegativeBinomialRuns(0.1))), 1e-6)
    assert guarantee(one_run(ConcentratedBlackBox(0.01)), 1e-6).epsilon < found.epsilon < 3


def test_a_run_that_nothing_is_proved_of_is_refused():
    with pytest.raises(UnsupportedError, match="opaque"):
        guarantee(whole(of(Opaque("mine", 1.0), NegativeBinomialRuns(0.1))), 1e-6)


def test_a_group_is_that_of_the_runs():
    selection = of(Laplace(2.0), NegativeBinomialRuns(0.1))
    assert guarantee(for_group(whole(selection), 3), 0.0).epsilon == 4.5


def test_the_run_protects_the_same_unit_under_the_same_relation():
    selection = of(Laplace(2.0), NegativeBinomialRuns(0.1))
    for facts in (
        (PrivacyUnit("day"), AddRemove(), TrustModel.CENTRAL),
        (PrivacyUnit("row"), ZeroOut(), TrustModel.CENTRAL),
    ):
        with pytest.raises(InputError, match="protect another unit"):
            Plan.of(Invocation(selection, 1.0, *facts))


@pytest.mark.parametrize("wrap", [1, 2])
def test_a_shuffle_of_searches_protects_what_their_runs_do(wrap):
    inner = PoissonRuns(0.001)
    report = of(PureBlackBox(0.5), inner)  # of rows that are added or removed
    for _ in range(wrap):
        report = Shuffled(report, 2)
    patient = (PrivacyUnit("patient"), ReplaceOne(), TrustModel.CENTRAL)
    with pytest.raises(InputError, match="protect another unit"):
        Plan.of(Invocation(report, 1.0, *patient))
    own = Plan.of(Invocation(PureBlackBox(0.5), 1.0, *patient))
    same = Plan.of(Invocation(Shuffled(PrivateSelection(own, inner), 2), 1.0, *patient))
    assert guarantee(same, 0.0).epsilon > 0.5


@pytest.mark.parametrize(
    "bad",
    [
        *({"gamma": each} for each in (0.0, 1.0, 5e-324, 1 - 2.0**-53)),
        *({"shape": each} for each in (-1.0, -1 + 2.0**-53, 101)),
    ],
)
def test_bad_laws_are_refused(bad):
    with pytest.raises(InputError, match=next(iter(bad))):
        NegativeBinomialRuns(**({"gamma": 0.1} | bad))


# -- the checker, and black boxes of which a profile is stated ---------------------------------


@pytest.mark.parametrize("runs", LAWS, ids=str)
@pytest.mark.parametrize(
    ("mechanism", "facts"),
    [
        (Laplace(2.0), {}),
        (Gaussian(4.0), {}),
        (Laplace(20.0), {"count": 30}),
    ],
)
def test_the_checker_proves_nearly_as_much(runs, mechanism, facts):
    plan = whole(of(mechanism, runs, **facts))
    proved = guarantee(plan, 1e-6)
    record = {"plan": plan.to_dict(), "guarantee": {"delta": 1e-6}}
    proof = checker.prove(record | {"witness": witness_of(plan, proved)})
    assert proof.epsilon is not None
    far = 1.35 if isinstance(runs, PoissonRuns) else 1.1
    assert 0.97 * proved.epsilon <= proof.epsilon <= far * proved.epsilon


@pytest.mark.parametrize("runs", LAWS, ids=str)
def test_the_checker_proves_a_pure_cost(runs):
    plan = whole(of(Laplace(2.0), runs))
    proof = checker.prove({"plan": plan.to_dict(), "guarantee": {"delta": 0.0}})
    assert proof.epsilon is not None
    exact = float(of(Laplace(2.0), runs).pair(1.0).pure_epsilon)
    # Grids of δ differ, of which each bounds by how much the best run may differ.
    assert 0.99 * exact <= float(proof.epsilon) <= 1.03 * exact


@pytest.mark.parametrize("runs", LAWS, ids=str)
def test_the_checker_proves_no_less_than_the_truth(runs):
    plan = whole(of(PureBlackBox(0.5), runs))
    for delta in (1e-3, 1e-8):
        proof = checker.prove({"plan": plan.to_dict(), "guarantee": {"delta": delta}})
        assert proof.epsilon is not None
        for p, q in neighbours(0.5):
            assert exceeds(best_of(runs, p), best_of(runs, q), float(proof.epsilon)) <= delta


def test_a_profile_is_the_hull_of_its_points():
    box = ProfileBlackBox(((0.5, 1e-3), (1.0, 1e-5), (0.7, 0.5), (2.0, 0.0)))
    pair = box.pair(1.0)
    assert pair.pure_epsilon == 2
    assert pair.delta([0.5, 1.0, 2.0]) == pytest.approx([1e-3, 1e-5, 0.0], rel=1e-9, abs=1e-15)
    share = (math.exp(0.7) - math.exp(0.5)) / (math.exp(1.0) - math.exp(0.5))
    assert float(pair.delta(0.7)) == pytest.approx(1e-3 + share * (1e-5 - 1e-3), rel=1e-9)


@pytest.mark.parametrize("epsilon", [1e-9, 0.5, 3.0, 500.0])
@pytest.mark.parametrize("delta", [0.0, 1e-300, 1e-6, 0.9])
def test_a_profile_of_one_point_is_that_black_box(epsilon, delta):
    pair = ProfileBlackBox(((epsilon, delta),)).pair(1.0)
    same = ApproximateBlackBox(epsilon, delta).pair(1.0)
    asked = np.array([0.0, epsilon / 2, epsilon, 2 * epsilon])
    np.testing.assert_allclose(pair.delta(asked), same.delta(asked), rtol=1e-9, atol=1e-15)


def test_at_just_the_least_delta_a_profile_has_its_last_epsilon():
    """As much mass is infinitely lossy, and no more."""
    plan = Plan.of(Invocation(ProfileBlackBox(((3.0, 1e-3), (1.0, 0.1))), 1.0, *FACTS))
    assert guarantee(plan, 1e-3).epsilon == 3.0
    assert guarantee(plan, 1e-3 * (1 - 1e-9)).epsilon == math.inf
    assert guarantee(plan, 0.1).epsilon <= 1.0 + 1e-9


def test_a_profile_of_gaussian_noise_composes_as_that_nearly():
    points = np.geomspace(0.01, 6, 200)
    deltas = Gaussian(2.0).pair(1.0).delta(points)
    box = ProfileBlackBox(tuple(zip(points.tolist(), deltas.tolist(), strict=True)))
    boxes = guarantee(Plan.of(Invocation(box, 1.0, *FACTS, count=4)), 1e-5).epsilon
    exact = guarantee(Plan.of(Invocation(Gaussian(2.0), 1.0, *FACTS, count=4)), 1e-5).epsilon
    assert exact <= boxes <= 1.01 * exact


@pytest.mark.parametrize("curve", [[], [[1.0]], [[-1.0, 0.1]], [[1.0, 1.0]], 3, [["a", 0.1]]])
def test_a_profile_that_is_none_is_refused(curve):
    with pytest.raises(InputError, match="curve"):
        ProfileBlackBox(curve)


class TestProfileBlackBox(PrivacyConformance):
    mechanism = ProfileBlackBox(((0.2, 1e-2), (0.5, 1e-3), (1.0, 1e-6)))
