"""Directed pairs of samples and mixtures, and which scheme amplifies what."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import mpmath
import mpmath as mp
import numpy as np
import pytest
from accounting_builders import ROW, plan, poisson, use
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.privacy_accountant import NeighboringRelation
from scipy.stats import binom, laplace, norm

from dpaudit.accounting import compose
from dpaudit.accounting.amplification import Amplification, DirectedPair, PlainPair, amplification
from dpaudit.accounting.amplification.base import even
from dpaudit.accounting.amplification.fixed_size import ReplacedPair
from dpaudit.accounting.amplification.mixtures import (
    MixturePair,
    binomial_tail,
    drawn_pairs,
    replaced_pair,
)
from dpaudit.accounting.amplification.poisson import PoissonAmplification
from dpaudit.accounting.amplification.poisson_pairs import AddedPair, RemovedPair
from dpaudit.accounting.closed_forms.additive import PureAccountant
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.mechanisms import (
    DominatingPair,
    Gaussian,
    GaussianPair,
    Laplace,
    LaplacePair,
    RandomizedResponse,
    approximate_pair,
)
from dpaudit.mechanisms.pairs import Floats
from dpaudit.plan import (
    FixedSizeSampling,
    Invocation,
    PoissonSampling,
    ReplaceOne,
    Sampling,
    TrustModel,
    ZeroOut,
)

# What all sampling schemes share, and the door for others


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 8.0])
@pytest.mark.parametrize("rate", [1e-6, 0.01, 0.5, 0.999])
def test_amplified_pure_epsilon_is_rounded_up(epsilon: float, rate: float) -> None:
    sampled = use(Laplace(1.0), epsilon, sampling=PoissonSampling(rate))
    found = PureAccountant().compose([sampled]).epsilon(0.0).upper
    with mp.workdps(50):
        exact = mp.log1p(mp.mpf(rate) * mp.expm1(epsilon))
    assert exact <= found <= exact * (1 + 1e-14)


def test_fixed_size_sampling_amplifies_under_replace_one() -> None:
    sampled = use(Laplace(1.0), 1.0, ReplaceOne(), sampling=FixedSizeSampling(10, 100))
    found = PureAccountant().compose([sampled]).epsilon(0.0).upper
    assert found == pytest.approx(math.log1p(0.1 * math.expm1(1.0)), rel=1e-14)


def test_amplification_never_raises_and_keeps_the_ends() -> None:
    drawn = PoissonAmplification(0.1)
    assert drawn.epsilon(Fraction(0)) == 0
    assert drawn.epsilon(math.inf) == math.inf
    assert drawn.epsilon(Fraction(1, 10**30)) <= Fraction(1, 10**30)
    assert PoissonAmplification(1 - 2**-53).epsilon(Fraction(1)) <= 1
    # Beyond e^700, where e^ε overflows: ε + ln q.
    assert drawn.epsilon(1e5) == pytest.approx(1e5 + math.log(0.1), rel=1e-14)
    assert drawn.epsilon(700.0) == pytest.approx(drawn.epsilon(701.0) - 1, rel=1e-12)


@dataclass(frozen=True)
class HalfSampling(Sampling):
    """Exactly one of two halves of the units, by a fair coin."""

    kind: ClassVar[str] = "test-half"


@dataclass(frozen=True)
class HalfAmplification(Amplification):
    """For the test: as Poisson sampling of rate 1/2, but for integer moments."""

    def directed(self, pair: DominatingPair) -> tuple[DirectedPair, DirectedPair]:
        return PoissonAmplification(self.rate).directed(pair)

    def log_moments(self, pair: DominatingPair) -> Floats:
        return PoissonAmplification(self.rate).log_moments(pair)


def test_a_scheme_takes_part_in_every_accountant_once_it_is_registered() -> None:
    half = use(Gaussian(2.0), sampling=HalfSampling(), count=3, at="x")
    with pytest.raises(UnsupportedError, match=r"gaussian at 'x' has .* no amplification is prov"):
        compose(plan(half), "pld")
    amplification.register(HalfSampling)(lambda sampling, invocation: HalfAmplification(0.5))
    same = use(Gaussian(2.0), sampling=poisson(0.5), count=3)
    for name in ("zcdp", "rdp", "pld"):
        found, known = (compose(plan(each), name).epsilon(1e-5) for each in (half, same))
        assert found == known
    with pytest.raises(UnsupportedError, match="at 'x': the moments accountant has no formula"):
        compose(plan(half), "moments")


def test_a_rate_is_between_the_ends() -> None:
    for rate in (0.0, 1.0, -0.1, math.nan):
        with pytest.raises(InputError, match="rate is"):
            PoissonAmplification(rate)


# Directed pairs: where their law lies, and the symmetric ones among them

BASES = [
    GaussianPair(0.7),
    LaplacePair(Fraction(3, 2)),
    RandomizedResponse(0.4, 3).pair(1),
    approximate_pair(1.0, 0.05),
]


def test_nodes_hold_all_but_the_tails() -> None:
    for base in BASES:
        pairs = [PlainPair(base)] + [k(base, 0.1) for k in (RemovedPair, AddedPair, ReplacedPair)]
        for pair in pairs:
            nodes = pair.nodes(1e-9, 50)
            assert (np.diff(nodes) > 0).all()
            assert pair.above(nodes[-1])[0] - pair.infinite <= 1.1e-9
            assert pair.below(nodes[0] - 1e-9)[0] <= 1.1e-9


def test_a_plain_pair_is_its_base_both_ways() -> None:
    epsilons = np.linspace(-2, 2, 41)
    for base in BASES:
        pair = PlainPair(base)
        np.testing.assert_allclose(pair.delta(epsilons), base.delta(epsilons), atol=1e-14)
        assert pair.span == base.span
        assert pair.max_loss == float(base.pure_epsilon)
    atoms = PlainPair(BASES[2]).atoms()
    assert atoms is not None
    assert atoms[1].sum() == pytest.approx(1)
    assert PlainPair(BASES[0]).atoms() is None
    assert PlainPair(BASES[3]).infinite == pytest.approx(0.05)


def test_losses_that_meet_are_one_node() -> None:
    assert even(1.0, 1.0, 7).tolist() == [1.0]
    assert even(0.0, 1.0, 2).tolist() == [0.0, 1.0]
    assert even(0.0, 1.0, 5).tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]


def test_the_total_variation_of_tiny_losses_is_not_rounded_down() -> None:
    with mpmath.workdps(40):
        truth = 2 * mpmath.ncdf(1 / mpmath.mpf(361780526.761) / 2) - 1
    pair = GaussianPair(1 / 361780526.761)
    assert truth <= PlainPair(pair).total_variation <= truth * (1 + 1e-5)
    assert truth / 2 <= RemovedPair(pair, 0.5).total_variation <= truth / 2 * (1 + 1e-5)


# Pairs of mixtures against integration over outputs, and against dp-accounting

EPSILONS = np.array([-1.0, -0.2, 0.0, 0.1, 0.5, 1.3])
DRAWN = list(zip((0.0, 0.5, 1.0), (0.49, 0.42, 0.09), strict=True))  # two rows at rate 0.3


def integrated(pair: MixturePair, epsilon: float) -> float:
    """The hockey-stick divergence by the trapezoidal rule over outputs."""
    x = np.linspace(-30.0, 30.0, 600_001)
    base = pair.base
    law = laplace.pdf if isinstance(base, LaplacePair) else norm.pdf
    unit = base.epsilon if isinstance(base, LaplacePair) else base.mu
    p, q = (sum(w * law(x - s * unit) for s, w in parts) for parts in (pair.p, pair.q))
    return float(np.trapezoid(np.maximum(p - math.exp(epsilon) * q, 0), x))


@pytest.mark.parametrize("base", [GaussianPair(1.4), LaplacePair(Fraction(3, 2))], ids=repr)
def test_curves_are_those_of_the_mixtures(base: DominatingPair) -> None:
    for pair in (*drawn_pairs(base, DRAWN), replaced_pair(base, 0.3)):
        truth = [integrated(pair, epsilon) for epsilon in EPSILONS]
        np.testing.assert_allclose(pair.delta(EPSILONS), truth, atol=2e-8)
        for above, below in zip(pair.above(EPSILONS), pair.below(EPSILONS), strict=True):
            np.testing.assert_allclose(above + below, 1, atol=1e-14)


@pytest.mark.parametrize("rate", [1e-12, 1e-3, 0.5, 1 - 1e-12])
@pytest.mark.parametrize("mu", [1e-9, 0.3, 4.0])
def test_tails_at_the_ends_of_floats(rate: float, mu: float) -> None:
    weights = binomial_tail(3, rate)
    assert weights is not None
    drawn = [(j / 4, weight) for j, weight in enumerate(weights)]
    with mp.workdps(50):
        for pair in (
            *drawn_pairs(GaussianPair(4 * mu), drawn),
            replaced_pair(GaussianPair(mu), rate),
        ):
            for x in np.linspace(-4, 3 * mu + 4, 9):
                loss = float(_loss(pair, mp.mpf(float(x))))
                # A threshold off by some units in its last place lies between these two.
                lower, upper = (
                    float(pair.above(loss + side * 2.0**-50 * abs(loss))[0]) for side in (1, -1)
                )
                unit = pair.base.mu
                truth = float(sum(w * mp.ncdf(mp.mpf(s) * unit - x) for s, w in pair.p))
                assert lower * (1 - 1e-11) <= truth <= upper * (1 + 1e-11)


def _loss(pair: MixturePair, x: mp.mpf) -> mp.mpf:
    def gain(parts: tuple[tuple[float, float], ...]) -> mp.mpf:
        shifts = [(mp.mpf(s) * pair.base.mu, mp.mpf(w)) for s, w in parts]
        least = min((one for one in shifts), key=lambda one: abs(one[0]))[0]
        # Weights are floats, so that their sum is 1 but for a rounding: that of the least shift.
        logs = [(w, s * (x - s / 2) - least * (x - least / 2)) for s, w in shifts]
        return least * (x - least / 2) + mp.log(1 + sum(w * mp.expm1(log) for w, log in logs))

    return gain(pair.p) - gain(pair.q)


@pytest.mark.parametrize("angle", [0.0, 0.7, 1.6, 2.5, math.pi])
def test_vectors_in_any_directions_cost_no_more(angle: float) -> None:
    x = np.linspace(-7, 8, 301)
    grid, cell = np.meshgrid(x, x), (x[1] - x[0]) ** 2

    def law(*at: tuple[float, float, float]) -> np.ndarray:
        return sum(w * norm.pdf(grid[0] - a) * norm.pdf(grid[1] - b) for a, b, w in at)

    one = (1.0, 0.0)
    two = (math.cos(angle), math.sin(angle))
    none, both = (0.0, 0.0, 0.49), (one[0] + two[0], one[1] + two[1], 0.09)
    rows = law(none, (*one, 0.21), (*two, 0.21), both)
    remove, add = drawn_pairs(GaussianPair(2.0), DRAWN)
    replaced = replaced_pair(GaussianPair(2.0), 0.3)
    p, q = law((0.0, 0.0, 0.7), (*one, 0.3)), law((0.0, 0.0, 0.7), (*two, 0.3))
    empty = law((0.0, 0.0, 1.0))
    for pair, first, second in ((remove, rows, empty), (add, empty, rows), (replaced, p, q)):
        for epsilon in EPSILONS:
            cost = np.maximum(first - math.exp(epsilon) * second, 0).sum() * cell
            assert cost <= float(pair.delta(epsilon)) + 5e-5
            if angle == (math.pi if pair is replaced else 0.0):
                assert cost == pytest.approx(float(pair.delta(epsilon)), abs=2e-4)


@pytest.mark.parametrize(("rows", "rate"), [(5, 0.01), (40, 1e-12), (512, 0.5), (10**9, 1e-9)])
def test_weights_are_binomial_and_rounded_up(rows: int, rate: float) -> None:
    weights = binomial_tail(rows, rate)
    assert weights is not None
    at_least = np.cumsum(np.array(weights)[::-1])[::-1]
    exact = binom.sf(np.arange(len(weights)) - 1, rows, rate)
    np.testing.assert_allclose(at_least, exact, rtol=1e-7, atol=1e-290)
    assert sum(weights) == pytest.approx(1, abs=1e-15)


def test_too_many_rows_have_no_weights() -> None:
    assert binomial_tail(10**6, 0.01) is None


@pytest.mark.parametrize(("rows", "stated"), [(2, 0.5797), (5, 1.5872)])
def test_rows_as_dp_accounting_has_them(rows: int, stated: float) -> None:
    sampling = PoissonSampling(0.01, rows=rows)
    own = compose(plan(use(Gaussian(4.0), count=1000, sampling=sampling)), "pld").epsilon(1e-5)
    j = range(rows + 1)
    theirs = pld.from_mixture_gaussian_mechanism(
        4.0, list(j), binom.pmf(j, rows, 0.01), value_discretization_interval=1e-3
    )
    assert own.lower is not None
    assert own.lower <= theirs.self_compose(1000).get_epsilon_for_delta(1e-5)
    assert own.upper == pytest.approx(stated, abs=5e-5)


def test_replaced_units_as_dp_accounting_has_them() -> None:
    sampling = PoissonSampling(0.01, contribution=1.0)
    replaced = use(Gaussian(4.0), 2.0, ReplaceOne(), count=1000, sampling=sampling)
    own = compose(plan(replaced), "pld").epsilon(1e-5)
    theirs = (
        pld.from_gaussian_mechanism(
            4.0, sampling_prob=0.01, neighboring_relation=NeighboringRelation.REPLACE_ONE
        )
        .self_compose(1000)
        .get_epsilon_for_delta(1e-5)
    )
    assert own.lower is not None
    assert own.lower <= theirs
    assert own.upper <= theirs * 1.001
    assert own.upper == pytest.approx(0.5614, abs=5e-5)


def test_nothing_is_cheaper_than_fewer_rows_or_dearer_than_all_of_them() -> None:
    def epsilon(**facts: object) -> float:
        one = Invocation(
            Laplace(5.0),
            1.0,
            ROW,
            ZeroOut(),
            TrustModel.CENTRAL,
            count=20,
            **facts,  # type: ignore[arg-type]
        )
        return compose(plan(one)).epsilon(1e-6).upper

    found = [epsilon(sampling=PoissonSampling(0.2, rows=rows)) for rows in (1, 2, 3)]
    assert found == sorted(found)
    whole = use(Laplace(5.0), 3.0, ZeroOut(), count=20)
    assert found[-1] < compose(plan(whole)).epsilon(1e-6).upper
