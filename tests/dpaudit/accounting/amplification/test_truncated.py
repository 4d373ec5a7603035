"""Truncated samples and draws with replacement, against all pairs of tiny data sets."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from accounting_builders import plan, use
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.stats import laplace, norm

from dpaudit.accounting import compose
from dpaudit.accounting.amplification.truncated import truncation
from dpaudit.accounting.terms import directed
from dpaudit.mechanisms import DiscreteLaplace, Gaussian, Laplace, Mechanism, PureBlackBox
from dpaudit.plan import (
    AddRemove,
    FixedSizeSampling,
    Invocation,
    MetricBall,
    PoissonSampling,
    Relation,
    ReplaceOne,
    Sampling,
    TruncatedPoissonSampling,
    WithReplacementSampling,
    ZeroOut,
)

RELATIONS = [AddRemove(), ReplaceOne(), ZeroOut()]
EPSILONS = (-0.7, 0.0, 0.2, 0.8, 2.0)
UNITS, SIZE, RATE = 3, 2, 0.6
X = np.linspace(-16, 16, 6401)
Records = tuple[int, ...]
Law = dict[int, float]


def truncated(records: Records) -> Law:
    """The probability of every sum of a Poisson sample that is cut."""
    found: Counter[int] = Counter()
    for taken in itertools.product((0, 1), repeat=len(records)):
        share = math.prod(RATE if t else 1 - RATE for t in taken)
        drawn = [v for v, t in zip(records, taken, strict=True) if t]
        kept = list(itertools.combinations(drawn, min(SIZE, len(drawn))))
        for one in kept:
            found[sum(one)] += share / len(kept)
    return dict(found)


def again_and_again(records: Records) -> Law:
    found: Counter[int] = Counter()
    for drawn in itertools.product(records, repeat=SIZE):
        found[sum(drawn)] += len(records) ** -SIZE
    return dict(found)


def neighbours(relation: Relation) -> list[tuple[Records, Records]]:
    pairs = []
    for others in itertools.combinations_with_replacement((-1, 0, 1), UNITS - 1):
        for one in (-1, 0, 1):
            changed = {"add-remove": [()], "zero-out": [(0,)]}.get(
                relation.kind, [(-1,), (0,), (1,)]
            )
            for other in changed:
                pairs += [((one, *others), (*other, *others)), ((*other, *others), (one, *others))]
    return pairs


def worst(law: Callable[[Records], Law], relation: Relation, density: np.ndarray) -> np.ndarray:
    """The largest divergence of neighbours at each ε; density of the noise at X."""
    step = X[1] - X[0]

    def mixed(sums: Law) -> np.ndarray:
        return sum(w * np.roll(density, round(s / step)) for s, w in sums.items())

    found = np.zeros(len(EPSILONS))
    for one, other in neighbours(relation):
        p, q = mixed(law(one)), mixed(law(other))
        cost = [np.maximum(p - math.exp(e) * q, 0).sum() * step for e in EPSILONS]
        found = np.maximum(found, cost)
    return found


def curve(mechanism: Mechanism, relation: Relation, sampling: Sampling) -> np.ndarray:
    sensitivity = 2.0 if relation.replaces else 1.0
    both = directed(use(mechanism, sensitivity, relation, sampling=sampling))
    return np.max([pair.delta(EPSILONS) for pair in both], axis=0)


@pytest.mark.parametrize("relation", RELATIONS, ids=str)
@pytest.mark.parametrize(
    ("mechanism", "density"),
    [(Gaussian(1.2), norm.pdf(X / 1.2) / 1.2), (Laplace(1.5), laplace.pdf(X / 1.5) / 1.5)],
    ids=["gaussian", "laplace"],
)
def test_no_neighbours_cost_more(
    mechanism: Mechanism, density: np.ndarray, relation: Relation
) -> None:
    part = 1.0 if relation.replaces else None
    cut = TruncatedPoissonSampling(RATE, SIZE, UNITS, contribution=part)
    assert (worst(truncated, relation, density) <= curve(mechanism, relation, cut) + 1e-4).all()
    twice = WithReplacementSampling(SIZE, UNITS)
    stated, truth = curve(mechanism, relation, twice), worst(again_and_again, relation, density)
    assert (truth <= stated + 1e-4).all()
    if isinstance(relation, AddRemove):
        np.testing.assert_allclose(truth, stated, atol=2e-4)  # which is attained


@pytest.mark.parametrize(
    ("size", "units", "rate"), [(130, 10**4, 0.01), (2, 3, 0.6), (60, 1000, 1e-3), (9, 10, 0.99)]
)
def test_the_probability_of_a_full_sample(size: int, units: int, rate: float) -> None:
    with mp.workdps(60):
        q = mp.mpf(rate)

        def more(trials: int, least: int) -> mp.mpf:
            return mp.fsum(
                mp.binomial(trials, k) * q**k * (1 - q) ** (trials - k)
                for k in range(least, min(trials, least + 400) + 1)
            )

        full = more(units - 1, size)
        taken = mp.fsum(
            mp.binomial(units - 1, k) * q**k * (1 - q) ** (units - 1 - k) * q * size / (k + 1)
            for k in range(size, min(units - 1, size + 400) + 1)
        )
        found = truncation(TruncatedPoissonSampling(rate, size, units))
        assert found[0] == pytest.approx(float(full), rel=1e-11)
        assert float(taken / full) <= found[1] <= float(taken / full) * (1 + 2e-9)


@pytest.mark.parametrize("units", [10**4, 10**6])
def test_less_than_dp_accounting_says(units: int) -> None:
    size = round(units * 0.01 * 1.05)
    drawn = TruncatedPoissonSampling(0.01, size, units)
    own = compose(plan(use(Gaussian(4.0), count=100, sampling=drawn))).epsilon(1e-6)
    theirs = pld.from_truncated_subsampled_gaussian_mechanism(units, 0.01, size, 4.0)
    assert own.upper <= theirs.self_compose(100).get_epsilon_for_delta(1e-6)
    poisson = use(Gaussian(4.0), count=100, sampling=PoissonSampling(0.01))
    assert own.upper >= compose(plan(poisson)).epsilon(1e-6).upper
    assert own.lower is None


def test_what_is_never_cut_or_never_left_out_is_another_scheme() -> None:
    def epsilon(sampling: Sampling) -> float:
        return compose(plan(use(Gaussian(2.0), count=9, sampling=sampling))).epsilon(1e-6).upper

    assert epsilon(TruncatedPoissonSampling(0.3, 50, 50)) == epsilon(PoissonSampling(0.3))
    assert epsilon(TruncatedPoissonSampling(1, 5, 50)) == epsilon(FixedSizeSampling(5, 50))
    assert epsilon(WithReplacementSampling(1, 50)) == pytest.approx(
        epsilon(FixedSizeSampling(1, 50)), rel=1e-3
    )


@pytest.mark.parametrize(
    "sampling",
    [
        TruncatedPoissonSampling(1e-12, 2, 10**6),
        TruncatedPoissonSampling(1 - 1e-12, 2, 10**6),
        WithReplacementSampling(3, 10**15),
        WithReplacementSampling(2000, 10),
    ],
    ids=repr,
)
@pytest.mark.parametrize("mechanism", [Gaussian(5.0), DiscreteLaplace(3.0), PureBlackBox(0.1)])
def test_samples_cost_at_most_all_that_they_change(
    mechanism: Mechanism, sampling: Sampling
) -> None:
    def epsilon(one: Invocation) -> float:
        return compose(plan(one)).epsilon(1e-6).upper

    times = 2 * (sampling.size if isinstance(sampling, WithReplacementSampling) else 1)
    one = use(mechanism, sampling=sampling)
    longer = Fraction(1) * times
    if isinstance(mechanism, PureBlackBox):
        whole = use(PureBlackBox(float(longer * Fraction(mechanism.epsilon))), 1.0)
    else:
        whole = use(mechanism, float(longer))
    assert 0 <= epsilon(one) <= epsilon(whole) * (1 + 1e-9)


def test_without_a_contribution_the_draw_counts_as_known() -> None:
    for relation in (ReplaceOne(), MetricBall(1.0)):
        drawn = TruncatedPoissonSampling(0.01, 5, 100)
        known = use(Gaussian(2.0), 1.0, relation, count=9, sampling=drawn)
        plain = use(Gaussian(2.0), 1.0, relation, count=9, sampling=PoissonSampling(0.01))
        ours, theirs = (compose(plan(one)).epsilon(1e-6).upper for one in (known, plain))
        assert ours == pytest.approx(theirs, rel=1e-6)
