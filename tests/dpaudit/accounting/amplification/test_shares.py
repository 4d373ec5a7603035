"""Random shares of a unit's part, against mpmath, dp_accounting and other schemes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from accounting_builders import plan, poisson, use
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.stats import norm

from dpaudit.accounting import Interval, compose, for_group
from dpaudit.accounting.amplification.reductions import fallback
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.ledger.account import Account
from dpaudit.mechanisms import (
    ContinualGaussian,
    Gaussian,
    Laplace,
    Mechanism,
    PureBlackBox,
    SquareRootToeplitz,
)
from dpaudit.plan import AddRemove, MixtureSampling, PoissonSampling, ReplaceOne, ZeroOut

SHARES, RATES = (0.25, 0.5, 1.0), (0.2, 0.3, 0.1)
MIXTURES = [
    (SHARES, RATES),
    ((1.0, 0.25), (0.4, 0.6)),
    ((0.5,), (1.0,)),
    ((1.0,), (1e-9,)),
    ((1e-3, 1.0), (0.999, 1e-6)),
]


def drawn(
    mechanism: Mechanism,
    shares: Sequence[float] = SHARES,
    rates: Sequence[float] = RATES,
    n: int = 1,
) -> Interval:
    sampling = MixtureSampling(tuple(shares), tuple(rates))
    return compose(plan(use(mechanism, count=n, sampling=sampling)))


def one_way(
    law: str, scale: float, parts: Sequence[tuple[mp.mpf, mp.mpf]], epsilon: float, *, joins: bool
) -> mp.mpf:
    """The hockey-stick divergence by quadrature to 20 digits, where the integrand is above 0."""

    def at(x: mp.mpf, shift: mp.mpf) -> mp.mpf:
        z = (x - shift) / scale
        return mp.exp(-abs(z)) / 2 / scale if law == "laplace" else mp.npdf(z) / scale

    def gap(x: mp.mpf) -> mp.mpf:
        mixed, alone = sum(w * at(x, s) for s, w in parts), at(x, mp.mpf(0))
        first, second = (alone, mixed) if joins else (mixed, alone)
        return first - mp.e**epsilon * second

    grid = [mp.mpf(n) * scale / 2 for n in range(-30, 31)]
    grid = sorted({*grid, mp.mpf(0), *(s for s, _ in parts)})
    total = mp.mpf(0)
    for a, b in itertools.pairwise(grid):
        left, right = gap(a), gap(b)
        if left * right < 0:
            root = mp.findroot(gap, (a, b), solver="anderson", tol=1e-30)
            a, b = (a, root) if left > 0 else (root, b)
        elif left + right <= 0:
            continue
        total += mp.quad(gap, [a, b], maxdegree=5)
    return total


@pytest.mark.parametrize(("shares", "rates"), MIXTURES)
@pytest.mark.parametrize(("law", "scale"), [("gaussian", 0.8), ("laplace", 1.5)])
def test_one_use_is_the_hockey_stick_of_the_mixture(shares, rates, law, scale):
    mechanism = Gaussian(scale) if law == "gaussian" else Laplace(scale)
    found = drawn(mechanism, shares, rates)
    with mp.workdps(20):
        parts = [(mp.mpf(s), mp.mpf(w)) for s, w in zip(shares, rates, strict=True)]
        parts.append((mp.mpf(0), 1 - mp.fsum(w for _, w in parts)))
        for epsilon in (0.1, 1.5):
            true = max(one_way(law, scale, parts, epsilon, joins=way) for way in (True, False))
            ends = found.delta(epsilon)
            assert ends.lower <= float(true) * (1 + 1e-6) + 1e-15
            assert float(true) * (1 - 1e-9) - 1e-15 <= ends.upper
            assert ends.upper <= float(true) * 1.003 + 1e-9


@pytest.mark.parametrize(("sigma", "n"), [(1.0, 1), (3.0, 200)])
def test_many_uses_are_those_of_dp_accounting(sigma, n):
    rest = 1 - math.fsum(RATES)
    theirs = pld.from_mixture_gaussian_mechanism(
        sigma, [0.0, *SHARES], [rest, *RATES], value_discretization_interval=1e-3
    ).self_compose(n)
    found = drawn(Gaussian(sigma), n=n)
    assert found.epsilon(1e-6).upper == pytest.approx(theirs.get_epsilon_for_delta(1e-6), rel=2e-3)


def test_shares_that_are_whole_are_a_poisson_sample():
    for mechanism in (Gaussian(0.7), Laplace(0.7)):
        other = compose(plan(use(mechanism, sampling=poisson(0.25), count=5)))
        found = drawn(mechanism, (1.0,), (0.25,), 5)
        assert found.epsilon(1e-6).upper == pytest.approx(other.epsilon(1e-6).upper, rel=1e-6)
    pure = drawn(Laplace(1.0), n=3).epsilon(0.0).upper
    each = math.log(0.4 + sum(w * math.exp(s) for s, w in zip(SHARES, RATES, strict=True)))
    assert pure == pytest.approx(3 * each, rel=1e-10)


def test_times_of_rows_are_shares_with_binomial_rates():
    rows = compose(plan(use(Gaussian(1.0), sampling=PoissonSampling(0.3, rows=2), count=7)))
    shares = MixtureSampling((0.5, 1.0), (0.42, 0.09))
    found = compose(plan(use(Gaussian(1.0), 2.0, sampling=shares, count=7)))
    assert found.epsilon(1e-6).upper == pytest.approx(rows.epsilon(1e-6).upper, rel=1e-6)
    stream = ContinualGaussian(sigma=2.0, factorization=SquareRootToeplitz(8), participations=1)
    whole = compose(plan(use(stream))).epsilon(1e-6).upper
    assert drawn(stream).epsilon(1e-6).upper < whole


@pytest.mark.parametrize("accountant", ["pld", "rdp"])
def test_no_order_of_the_shares_matters_and_more_costs_more(accountant):
    def cost(shares, rates):
        sampling = MixtureSampling(shares, rates)
        one = plan(use(Gaussian(0.6), sampling=sampling, count=20))
        return compose(one, accountant).epsilon(1e-6).upper

    usual = cost(SHARES, RATES)
    assert cost(SHARES[::-1], RATES[::-1]) == usual
    for shares, rates in (((0.3, 0.5, 1.0), RATES), (SHARES, (0.2, 0.3, 0.11))):
        assert cost(shares, rates) > usual
    assert cost(SHARES, (0.1, 0.1, 0.8)) <= cost((1.0,), (1.0,))
    many = tuple(np.full(100, 0.01).tolist())  # a sum of floats that is a little above 1
    assert cost(tuple(np.linspace(0.01, 1, 100).tolist()), many) < cost((1.0,), (1.0,))


@pytest.mark.parametrize(
    ("mechanism", "relation"),
    [
        (PureBlackBox(1.0), AddRemove()),
        (Gaussian(1.0), ReplaceOne()),
        (PureBlackBox(1.0), ZeroOut()),
    ],
)
def test_where_no_sum_is_noisy_any_share_counts_as_the_whole(mechanism, relation):
    one = use(mechanism, 1.0, relation, sampling=MixtureSampling(SHARES, RATES))
    whole = use(mechanism, 1.0, relation, sampling=poisson(0.6))
    found, other = (compose(plan(each)).epsilon(1e-6).upper for each in (one, whole))
    assert found == pytest.approx(other, rel=1e-9)
    said = fallback(one)[0]
    assert ("any share of a unit's part as the whole" in said) is (relation == AddRemove())
    assert ("takes the drawn units as known" in said) is (relation != AddRemove())
    assert fallback(use(Gaussian(1.0), sampling=MixtureSampling(SHARES, RATES))) is None


def test_wrong_shares_are_refused_in_a_sentence():
    for shares, rates, said in (
        ((1.0,), (0.5, 0.5), "rates has 2 entries and shares 1; give one rate for every share"),
        ((), (), "rates has 0 entries"),
        ((1.0, 0.5), (0.6, 0.6), "rates add up to 1.2; it must be at most 1"),
        ((1.5,), (0.1,), "shares is 1.5; it must be"),
        ((1.0,), (0.0,), "rates is 0"),
    ):
        with pytest.raises(InputError, match=said):
            MixtureSampling(shares, rates)
    with pytest.raises(UnsupportedError, match="gaussian"):
        for_group(plan(use(Gaussian(1.0), sampling=MixtureSampling(SHARES, RATES))), 2)


def test_the_ledger_draws_no_shares():
    account = Account(plan(use(Gaussian(1.0), sampling=MixtureSampling(SHARES, RATES))))
    with pytest.raises(Exception, match="mixture samples are not drawn by the ledger"):
        account.sampled("", 10)


# Turns whose batches are cut at a size


def test_a_cut_turn_costs_what_the_worst_others_make_of_it():
    """All others of the group add −1, so that a unit that takes a place moves the sum by 2."""
    from dpaudit.mechanisms import BandedToeplitz
    from dpaudit.plan import CyclicPoissonSampling, TruncatedPoissonSampling

    q, most, units, sigma = 0.5, 2, 5, 1.2
    stream = ContinualGaussian(
        sigma=sigma, factorization=BandedToeplitz(6, 1), participations=2, min_separation=3
    )
    sampling = CyclicPoissonSampling(q, 3, size=most, population=units)
    found = compose(plan(use(stream, sampling=sampling)))
    cut = TruncatedPoissonSampling(q, most, units)
    apart = compose(plan(use(Gaussian(sigma), count=2, sampling=cut)))
    assert found.epsilon(1e-6).upper == pytest.approx(apart.epsilon(1e-6).upper, rel=1e-9)
    with_one, without = _sums(q, most, units)
    x = np.linspace(-12, 12, 24001)
    p, r = (sum(w * norm.pdf(x, v, sigma) for v, w in law.items()) for law in (with_one, without))
    for epsilon in (0.1, 0.5, 1.0):
        true = np.maximum(p - math.exp(epsilon) * r, 0).sum() * (x[1] - x[0])
        once = compose(plan(use(Gaussian(sigma), sampling=cut))).delta(epsilon).upper
        assert true * (1 - 1e-6) <= once
    p, r = p[::20], r[::20]
    both = np.maximum(np.outer(p, p) - math.e**0.5 * np.outer(r, r), 0).sum()
    assert both * (20 * (x[1] - x[0])) ** 2 * (1 - 1e-3) <= found.delta(0.5).upper
    with pytest.raises(InputError, match="give both or none"):
        CyclicPoissonSampling(q, 3, size=2)
    whole = use(stream, sampling=CyclicPoissonSampling(q, 3, size=9, population=units))
    coins = use(stream, sampling=CyclicPoissonSampling(q, 3))
    assert compose(plan(whole)).epsilon(1e-6) == compose(plan(coins)).epsilon(1e-6)


def _sums(q: float, most: int, units: int) -> tuple[dict[int, float], dict[int, float]]:
    """The law of a cut sample's sum with the unit, which adds 1, and without it."""
    found: tuple[dict[int, float], dict[int, float]] = {}, {}
    for law, records in zip(found, ((1, *[-1] * (units - 1)), (-1,) * (units - 1)), strict=True):
        for taken in itertools.product((0, 1), repeat=len(records)):
            share = math.prod(q if t else 1 - q for t in taken)
            kept = [v for v, t in zip(records, taken, strict=True) if t]
            subsets = list(itertools.combinations(kept, min(most, len(kept))))
            for one in subsets:
                law[sum(one)] = law.get(sum(one), 0.0) + share / len(subsets)
    assert Fraction(sum(found[0].values())).limit_denominator(100) == 1
    return found
