"""A slice of ``tests.benchmarks.soundness``, and its oracle by other ways to the same numbers."""

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

from dpaudit.mechanisms import Gaussian, GaussianPair
from tests.benchmarks.soundness.__main__ import numbered
from tests.benchmarks.soundness.judging import judged
from tests.benchmarks.soundness.known import KNOWN
from tests.benchmarks.soundness.oracle import closed
from tests.benchmarks.soundness.oracle.laws import (
    BoundedRangeLaw,
    FiniteLaw,
    GaussianLaw,
    LaplaceLaw,
    TruncatedLaw,
)
from tests.benchmarks.soundness.oracle.sampled import AddedLaw, RemovedLaw
from tests.benchmarks.soundness.oracle.streams import factors
from tests.benchmarks.soundness.oracle.transform import Composition
from tests.benchmarks.soundness.oracle.truth import truth
from tests.benchmarks.soundness.table import lines, shown
from tests.benchmarks.soundness.uses import Case, Use

QUICK = (
    14,
    15,
    16,
    18,
    19,
    20,
    21,
    24,
    27,
    28,
    29,
    31,
    32,
    34,
    37,
    39,
    47,
    48,
    49,
    50,
    56,
    57,
    58,
    63,
    74,
    96,
    102,
    106,
    115,
    134,
    186,
    248,
    262,
)
"""Numbers of plans of most kinds that are proved in a moment."""


@pytest.mark.parametrize(
    "number",
    [pytest.param(n, marks=pytest.mark.pages if i % 4 else ()) for i, n in enumerate(QUICK)],
)
def test_certified_as_the_oracle_finds(number: int):
    verdict = judged(numbered(0, number), deep=False)
    assert verdict.misses == []
    assert verdict.failed == ""
    assert verdict.truth is not None


def test_noise_a_percent_too_large_in_one_pair_is_caught(monkeypatch: pytest.MonkeyPatch):
    pair = Gaussian.pair
    monkeypatch.setattr(
        Gaussian, "pair", lambda self, distance: GaussianPair(pair(self, distance).mu / 1.01)
    )
    for count, rate in ((1, None), (30, None), (10, 0.1)):
        case = Case(
            "gaussian", "add-remove", (Use("gaussian", {"sigma": 2.0}, 1.0, count, rate),), 1e-6
        )
        verdict = judged(case, deep=False)
        assert "unsound" in {kind for kind, _ in verdict.misses}
        assert all(len(line) <= 80 for line in [*shown(1, verdict).splitlines(), *lines([verdict])])


@pytest.mark.parametrize("turned", [False, True])
def test_allocations_of_several_mechanisms_of_a_kind_are_judged(turned: bool):
    uses = tuple(
        Use("pure-black-box", {"epsilon": one}, 1.0, 2, drawn=("allocated", 2))
        for one in (0.01, 3.0)
    )
    case = Case("drawn: allocated", "add-remove", uses[::-1] if turned else uses, 1e-3)
    verdict = judged(case, deep=False)
    assert verdict.misses == []
    assert verdict.truth is not None
    assert verdict.truth[0] > 2.0


def test_plans_that_were_wrong_are_tried():
    assert len(KNOWN) >= 14
    assert numbered(5, 0) == KNOWN[0]


def ends_enclose(composition: Composition, epsilon: float, delta: float) -> bool:
    return composition.lower(epsilon) <= delta <= composition.upper(epsilon)


@pytest.mark.parametrize(("delta", "epsilon"), [(1e-6, 4.885), (1e-30, 11.8), (0.1, 1.1)])
def test_transforms_enclose_the_closed_form_of_gaussians(delta: float, epsilon: float):
    found = Composition([(GaussianLaw(0.1), 100)], delta, 2**14)
    true = float(closed.gaussian_delta(100 * Fraction(0.1) ** 2, epsilon))
    assert ends_enclose(found, epsilon, true)
    near = closed.least_epsilon(found.upper, delta, 1.0)
    assert found.lower(0.97 * near) > delta


def test_transforms_enclose_the_enumeration_of_finite_laws():
    one = FiniteLaw(np.array([-0.7, 0.7]), np.array([1, math.exp(0.7)]) / (1 + math.exp(0.7)),
                    np.array([math.exp(0.7), 1]) / (1 + math.exp(0.7)), span=0.7)  # fmt: skip
    for law in (RemovedLaw(one, 0.3), AddedLaw(one, 0.3)):
        for epsilon in (0.1, 0.5, 0.9):
            true = binomial_delta(law, 12, epsilon)
            found = Composition([(law, 12)], true, 2**14)
            assert ends_enclose(found, epsilon, true)
            assert found.upper(epsilon) < 1.02 * true


def binomial_delta(law: RemovedLaw | AddedLaw, count: int, epsilon: float) -> float:
    """Over numbers of answers that the sampled unit's truth is."""
    sign = 1 if isinstance(law, RemovedLaw) else -1
    q, high = law.rate, math.exp(0.7)
    out, mixed = np.array([high, 1]) / (1 + high), np.array([1, high]) / (1 + high)
    mixed = (1 - q) * out + q * mixed
    p, other = (mixed, out) if sign > 0 else (out, mixed)
    odds, total = math.exp(epsilon), 0.0
    for k in range(count + 1):
        ways = math.comb(count, k)
        gap = p[0] ** (count - k) * p[1] ** k - odds * other[0] ** (count - k) * other[1] ** k
        total += ways * max(gap, 0.0)
    return float(total)


@pytest.mark.parametrize(
    ("mu", "rate", "epsilon"), [(1.0, 0.01, 0.05), (5.0, 0.3, 2.0), (0.1, 0.5, 0.02)]
)
def test_sampled_closed_forms_are_integrals_over_densities(mu: float, rate: float, epsilon: float):
    def gap(x: mp.mpf) -> mp.mpf:
        base, shifted = mp.npdf(x), mp.npdf(x, mu)
        return max(mp.mpf(0), (1 - rate) * base + rate * shifted - mp.exp(epsilon) * base)

    start = (math.log(math.expm1(epsilon) / rate + 1) + mu * mu / 2) / mu
    integral = mp.quad(gap, [start, start + 1, start + 4, start + 20])
    curve = closed.sampled(lambda e: closed.gaussian_delta(Fraction(mu) ** 2, e), rate, 1)
    assert float(curve(epsilon)) == pytest.approx(float(integral), rel=1e-9)
    law = RemovedLaw(GaussianLaw(mu), rate)
    p, q = law.above(np.array(epsilon))
    assert float(p - math.exp(epsilon) * q) == pytest.approx(float(integral), rel=1e-9)


def test_tails_of_laws_are_those_of_their_densities():
    draws = np.linspace(-40, 40, 800_001)
    p, q = np.exp(-np.abs(draws - 1.5)) / 2, np.exp(-np.abs(draws)) / 2
    losses = np.abs(draws) - np.abs(draws - 1.5)
    for x in (-1.0, 0.0, 1.2):
        above = LaplaceLaw(1.5).above(np.array(x))
        assert above[0] == pytest.approx(p[losses > x].sum() * 1e-4, abs=1e-3)
        assert above[1] == pytest.approx(q[losses > x].sum() * 1e-4, abs=1e-3)


@pytest.mark.parametrize("shift", [0.7, 2.0, 3.1])
def test_tails_of_noise_that_ends_are_those_of_its_densities(shift: float):
    draws = np.linspace(-3, 7, 1_000_001)[:-1] + 5e-6
    p, q = (np.where(np.abs(draws - c) <= 2, np.exp(-np.abs(draws - c)), 0.0) for c in (shift, 0))
    with np.errstate(divide="ignore", invalid="ignore"):
        losses = np.log(p) - np.log(q)
    law = TruncatedLaw(shift, 2.0)
    for x in (-4.0, -0.5, 0.0, 0.4, 4.0):
        above, below = law.above(np.array(x)), law.below(np.array(x))
        for one, up, down in zip((p, q), above, below, strict=True):
            assert up == pytest.approx(one[losses > x].sum() / one.sum(), abs=1e-4)
            assert down == pytest.approx(one[losses <= x].sum() / one.sum(), abs=1e-4)


def test_no_pair_of_choices_costs_more_than_bounded_range():
    weights = np.linspace(1e-3, 1 - 1e-3, 999)
    mean = 1 + weights * math.expm1(1.2)
    for epsilon in (0.0, 0.3, 1.0):
        both = [
            weights * math.exp(1.2) / mean - math.exp(epsilon) * weights,
            (1 - weights) / mean - math.exp(epsilon) * (1 - weights),
        ]
        worst = np.maximum(both, 0).sum(axis=0).max()
        assert worst == pytest.approx(float(closed.choice_delta(1.2, epsilon)), rel=1e-4)
        p, q = BoundedRangeLaw(1.2).above(np.array(epsilon))
        assert float(p - math.exp(epsilon) * q) == pytest.approx(worst, rel=1e-4)


def test_data_sets_attain_the_law_of_integer_noise():
    one = Use("discrete-laplace", {"scale": 1.5}, 2.0)
    tiny = {"records": 2, "bound": 1, "reach": 60}
    whole = Case("", "replace-one", (one,), 1e-3)
    data = Case("", "replace-one", (one,), 1e-3, dataset=tiny)
    for epsilon in (0.0, 0.5, 1.2):
        by_law, by_data = truth(whole, 1e-3), truth(data, 1e-3)
        assert by_law is not None
        assert by_data is not None
        assert float(by_data.lower(epsilon)) == pytest.approx(
            float(by_law.lower(epsilon)), rel=1e-6
        )


@pytest.mark.parametrize(("moves", "squared"), [(False, 6), (True, 12)])
def test_a_tree_of_64_steps_moves_by_its_levels(moves: bool, squared: int):
    found = factors({"matrix": ("binary-tree", {"steps": 64})}, 2, moves)
    assert found is not None
    assert found[0] == squared


def test_toeplitz_columns_are_those_of_the_square_root():
    found = factors({"matrix": ("square-root-toeplitz", {"steps": 3})}, 2, moves=False)
    assert found is not None
    assert float(found[0]) == pytest.approx(1 + 1 / 4 + 9 / 64, rel=1e-12)
