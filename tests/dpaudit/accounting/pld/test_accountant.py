"""Intervals against closed forms, enumeration, mpmath and dp-accounting."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import mpmath
import pytest
from accounting_builders import gaussian_invocations, repeated, use
from accounting_conformance import AccountantLaws
from accounting_truths import ends, exact_gaussian_delta
from accounting_truths import pld_delta as delta
from accounting_truths import pld_epsilon as epsilon
from effort import few
from hypothesis import given
from hypothesis import strategies as st

from dpaudit.accounting.amplification.poisson_pairs import AddedPair, RemovedPair
from dpaudit.accounting.pld.accountant import PLDAccountant, compose_terms
from dpaudit.accounting.pld.terms import DirectedTerm
from dpaudit.base.errors import UnsupportedError
from dpaudit.mechanisms import (
    Gaussian,
    GaussianPair,
    Laplace,
    Opaque,
    RandomizedResponse,
)
from dpaudit.plan import (
    FixedSizeSampling,
    Invocation,
    ReplaceOne,
)


class TestPld(AccountantLaws):
    accountant = PLDAccountant()
    inversion_slack = 0.05  # numbers read from two grids
    deltas = st.sampled_from([1e-6, 1e-3, 0.05])  # below, a few Laplace uses need large grids
    curve = (1e-9, 1e-6, 1e-3, 0.3)
    big = use(Gaussian(1e5), count=10**9)
    ledgers = st.lists(
        st.one_of(gaussian_invocations(), gaussian_invocations(rates=st.floats(0.01, 0.5))),
        min_size=1,
        max_size=3,
    )


@given(
    sigma=st.floats(0.5, 50),
    count=st.integers(1, 3000),
    eps=st.floats(0.05, 6),
)
@few
def test_delta_of_gaussians_contains_the_closed_form(sigma: float, count: int, eps: float) -> None:
    lower, upper = ends(delta(repeated(Gaussian(sigma), count), epsilon=eps))
    exact = exact_gaussian_delta(math.sqrt(count) / sigma, eps)
    assert lower <= exact <= upper


@given(sigma=st.floats(0.7, 50), count=st.integers(1, 10**6), log_delta=st.floats(-12, -1))
@few
def test_epsilon_of_gaussians_contains_the_closed_form(
    sigma: float, count: int, log_delta: float
) -> None:
    wish = 10**log_delta
    lower, upper = ends(epsilon(repeated(Gaussian(sigma), count), delta=wish))
    mu = math.sqrt(count) / sigma
    assert exact_gaussian_delta(mu, upper) <= wish
    if lower > 0:
        assert exact_gaussian_delta(mu, lower) >= wish
    assert upper - lower <= 5e-3 * max(upper, 0.01)


def laplace_delta(ratio: float, eps: mpmath.mpf) -> mpmath.mpf:
    """δ of one Laplace release at any real ε."""
    if eps >= ratio:
        return mpmath.mpf(0)
    return 1 - mpmath.exp(eps) if eps <= -ratio else 1 - mpmath.exp((eps - ratio) / 2)


def two_laplace_delta(first: float, second: float, eps: float) -> mpmath.mpf:
    """∫ δ₂(ε − l) dP₁(l): two atoms and the density e^((l − r)/2)/4 between them."""
    atoms = laplace_delta(second, eps - first) + mpmath.exp(-first) * laplace_delta(
        second, eps + first
    )
    kinks = [x for x in (eps - second, eps + second) if -first < x < first]
    between = mpmath.quad(
        lambda x: mpmath.exp((x - first) / 2) / 4 * laplace_delta(second, eps - x),
        [-first, *sorted(kinks), first],
    )
    return atoms / 2 + between


@given(first=st.floats(0.05, 3), second=st.floats(0.05, 3), share=st.floats(0.01, 0.95))
@few
def test_two_laplace_releases_contain_the_integral(
    first: float, second: float, share: float
) -> None:
    eps = share * (first + second)
    invocations = (
        repeated(Laplace(1.0), sensitivity=first),
        repeated(Laplace(1.0), sensitivity=second),
    )
    lower, upper = ends(delta(*invocations, epsilon=eps))
    exact = two_laplace_delta(first, second, eps)
    assert lower <= exact * (1 + 1e-12)
    assert exact * (1 - 1e-12) <= upper
    assert upper - lower <= 0.05 * exact + 1e-6


@given(p=st.floats(0.05, 0.9), count=st.integers(1, 300), share=st.floats(0.01, 0.9))
@few
def test_randomised_response_is_the_binomial_sum(p: float, count: int, share: float) -> None:
    mechanism = RandomizedResponse(p, 2)
    single = math.log1p(2 * (1 - p) / p)
    eps = share * count * single
    with mpmath.workdps(40):
        lie, truth = mpmath.mpf(p) / 2, 1 - mpmath.mpf(p) / 2
        exact = mpmath.fsum(
            mpmath.binomial(count, k)
            * max(
                truth**k * lie ** (count - k) - mpmath.exp(eps) * lie**k * truth ** (count - k), 0
            )
            for k in range(count + 1)
        )
    lower, upper = ends(delta(repeated(mechanism, count), epsilon=eps))
    assert lower <= exact <= upper
    assert upper - lower <= 1e-3 * exact + 1e-300


def test_one_sampled_gaussian_is_the_mixture() -> None:
    rate, sigma, eps = 0.1, 0.8, 0.5
    # δ_remove(ε) = q δ(ln((e^ε − 1 + q)/q)) (Balle, Barthe and Gaboardi 2018, Theorem 8).
    inner = math.log((math.exp(eps) - 1 + rate) / rate)
    exact = rate * exact_gaussian_delta(1 / sigma, inner)
    lower, upper = ends(delta(repeated(Gaussian(sigma), rate=rate), epsilon=eps))
    assert lower <= exact <= upper
    assert upper - lower < 1e-2 * exact


MIXED = (
    repeated(Gaussian(3.0), 5),
    repeated(Laplace(4.0), 7),
    repeated(Gaussian(1.2), 20, rate=0.05),
    repeated(RandomizedResponse(0.9, 4), 3),
    repeated(Laplace(1.0), 4, rate=0.1),
)


def test_a_count_is_a_loop_and_order_does_not_matter() -> None:
    loop = [
        repeated(one.mechanism, sampling=one.sampling) for one in MIXED for _ in range(one.count)
    ]
    assert epsilon(*MIXED) == epsilon(*loop) == epsilon(*loop[::-1])


def test_more_invocations_cost_more() -> None:
    costs = [ends(epsilon(*MIXED[: size + 1])) for size in range(len(MIXED))]
    assert all(lower < later for (lower, _), (_, later) in itertools.pairwise(costs))
    counts = [
        ends(epsilon(repeated(Gaussian(1.0), n, rate=0.01)))[1] for n in (1, 10, 100, 1000, 10000)
    ]
    assert counts == sorted(counts)


def reference(events: Sequence[tuple[str, float, float | None, int]], wish: float) -> float:
    from dp_accounting import dp_event
    from dp_accounting.pld import pld_privacy_accountant

    accountant = pld_privacy_accountant.PLDAccountant(value_discretization_interval=1e-4)
    for kind, scale, rate, count in events:
        event = (
            dp_event.GaussianDpEvent(scale)
            if kind == "gaussian"
            else dp_event.LaplaceDpEvent(scale)
        )
        sampled = event if rate is None else dp_event.PoissonSampledDpEvent(rate, event)
        accountant.compose(sampled, count)
    return float(accountant.get_epsilon(wish))


@pytest.mark.parametrize(
    "events",
    [
        [("gaussian", 1.0, 0.01, 1000)],
        [("laplace", 20.0, None, 200), ("gaussian", 20.0, None, 100)],
        [("laplace", 1.0, 0.1, 20), ("gaussian", 2.0, 0.02, 50), ("gaussian", 5.0, None, 1)],
        [("gaussian", 1.0 + i / 2, 0.005 + i / 400, 1) for i in range(4)],
    ],
)
@pytest.mark.parametrize("wish", [1e-3, 1e-7])
def test_agrees_with_dp_accounting(
    events: list[tuple[str, float, float | None, int]], wish: float
) -> None:
    invocations = [
        repeated(Gaussian(scale) if kind == "gaussian" else Laplace(scale), count, rate=rate)
        for kind, scale, rate, count in events
    ]
    lower, upper = ends(epsilon(*invocations, delta=wish))
    theirs = reference(events, wish)
    # Theirs is an upper bound, loose by less than a thousandth on these grids.
    assert lower <= theirs
    assert upper <= theirs * 1.001 + 1e-4
    assert theirs <= upper * 1.005 + 1e-3


@pytest.mark.parametrize(
    ("invocations", "wish", "expected", "within"),
    [
        ([repeated(Gaussian(20.0), 500)], 1e-5, 4.98331, 1e-3),
        ([repeated(Gaussian(1.0), 10**4, rate=0.01)], 1e-5, 6.1877, 1e-3),
        ([repeated(RandomizedResponse(0.5, 2), 100)], 1e-5, 90.7815, 1e-5),
        ([repeated(Gaussian(10.0), sensitivity=2.0, relation=ReplaceOne())], 1e-5, 0.7255, 1e-3),
        ([repeated(Gaussian(1.0), 40, rate=0.15)], 200**-1.1, 3.96, 2e-3),
        ([repeated(Gaussian(1.0), 40, rate=0.25)], 200**-1.1, 7.05, 2e-3),
        ([repeated(Gaussian(1.0), 40, rate=0.5)], 200**-1.1, 15.71, 2e-3),
        ([repeated(Gaussian(1.2), 40, rate=0.25)], 200**-1.1, 5.15, 2e-3),
        ([repeated(Gaussian(1.5), 40, rate=0.25)], 200**-1.1, 3.60, 2e-3),
        # Almost certainly the largest loss: 300 less ln(1 − 8δ).
        ([repeated(Laplace(0.01), 3)], 1e-5, 300 - 8e-5, 1e-6),
    ],
)
def test_printed_figures(
    invocations: list[Invocation], wish: float, expected: float, within: float
) -> None:
    lower, upper = ends(epsilon(*invocations, delta=wish))
    assert lower <= expected * (1 + within)
    assert upper == pytest.approx(expected, rel=within)
    assert upper - lower < 1.5e-3 * upper


def test_interleaved_invocations_are_merged() -> None:
    single = [repeated(Laplace(20.0))] * 10 + [repeated(Gaussian(20.0))]
    _, upper = ends(epsilon(*(single * 500)))
    assert upper == pytest.approx(21.79, abs=0.01)


def test_the_worse_direction_counts() -> None:
    base = GaussianPair(1.0)
    leave, join = (
        [DirectedTerm(RemovedPair(base, 0.1), 50)],
        [DirectedTerm(AddedPair(base, 0.1), 50)],
    )
    one = ends(compose_terms(leave, join).epsilon(1e-5))
    other = ends(compose_terms(join, leave).epsilon(1e-5))
    assert one == pytest.approx(other, rel=1e-12)
    assert one[0] > ends(compose_terms(join, join).epsilon(1e-5))[1]


def test_fixed_size_sampling_under_replace_one() -> None:
    fixed = FixedSizeSampling(10, 1000)
    sampled = repeated(Gaussian(1.0), 100, sensitivity=2.0, relation=ReplaceOne(), sampling=fixed)
    found = epsilon(sampled)
    _, whole = ends(epsilon(repeated(Gaussian(1.0), 100, sensitivity=2.0, relation=ReplaceOne())))
    # Leaving a Poisson sample of the same pair costs at most as much.
    poisson, _ = ends(epsilon(repeated(Gaussian(1.0), 100, sensitivity=2.0, rate=0.01)))
    assert poisson <= found.upper < whole
    # Composed, its gains and losses are those of no one pair of neighbours.
    assert found.lower is None


def test_opaque_mechanisms_are_named() -> None:
    with pytest.raises(UnsupportedError, match="vendor"):
        epsilon(repeated(Opaque("vendor", 1.0)))


def test_native_parameters_are_json_values() -> None:
    import json

    composition = PLDAccountant().compose([repeated(Gaussian(1.0), 100, rate=0.1)])
    composition.epsilon(1e-5)
    record = json.loads(json.dumps(composition.native))
    assert record["directions"]["remove"]["1e-5"]["size"] > 0


def test_losses_whose_squares_no_float_holds_are_added():
    many = [use(Laplace(1e300), count=10**7)]
    assert PLDAccountant().compose(many).epsilon(1e-12).upper == pytest.approx(1e-293)
