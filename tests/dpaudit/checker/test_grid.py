"""Laws on a grid, against the enumeration of finite laws."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpaudit import checker
from dpaudit.checker import Law, Losses, Part

BITS = 80
EXACT = {
    "deadline": None,
    "derandomize": True,
    "suppress_health_check": [HealthCheck.too_slow],  # a clock decides nothing
}
Finite = dict[tuple[int, ...], Fraction]


def curve_of(law: Losses, t: Fraction, w: int = 200) -> Fraction:
    """D(t) = rest + Σ p (1 − t e^−x)₊, to 150 bits."""
    total = Fraction(law.rest)
    for at, mass in enumerate(law.masses, law.low):
        step = checker.step_of(law.k, -at)
        total += mass * max(1 - t * Fraction(checker.exp(*step, w)[1], 1 << w), Fraction(0))
    return total / 2**BITS


@st.composite
def parts(draw: st.DrawFn) -> Part:
    """Two answers of chances in tenths, in some sample."""
    truth = draw(st.integers(2, 9))
    lie = draw(st.integers(1, min(truth - 1, 10 - truth)) if truth > 1 else st.just(1))
    scheme = draw(st.sampled_from(["all", "poisson", "known"]))
    rate = (
        Fraction(1) if scheme == "all" else draw(st.fractions(Fraction(1, 100), Fraction(99, 100)))
    )
    return Part(Law("two sided", (Fraction(truth, 10), Fraction(lie, 10))), scheme, rate)


def pair_of(part: Part, way: str) -> list[tuple[Fraction, Fraction]]:
    """(P, Q) of each output."""
    truth, lie = part.law.numbers
    p, q = [truth, lie, 1 - truth - lie], [lie, truth, 1 - truth - lie]
    rate = part.rate
    if part.scheme == "known":
        both = [(rate * a, rate * b) for a, b in zip(p, q, strict=True)]
        return [*both, (1 - rate, 1 - rate)]
    if part.scheme == "poisson":
        mixed = [rate * a + (1 - rate) * b for a, b in zip(p, q, strict=True)]
        return list(zip(mixed, q, strict=True) if way == "remove" else zip(q, mixed, strict=True))
    return list(zip(p, q, strict=True))


def composed(pairs: list[list[tuple[Fraction, Fraction]]]) -> list[tuple[Fraction, Fraction]]:
    joint = [(Fraction(1), Fraction(1))]
    for pair in pairs:
        table: dict[Fraction, tuple[Fraction, Fraction]] = {}
        for a, b in joint:
            for p, q in pair:
                if a * p:
                    ratio = b * q / (a * p)
                    known = table.get(ratio, (Fraction(0), Fraction(0)))
                    table[ratio] = known[0] + a * p, known[1] + b * q
                else:
                    known = table.get(Fraction(-1), (Fraction(0), Fraction(0)))
                    table[Fraction(-1)] = known[0], known[1] + b * q
        joint = list(table.values())
    return joint


def hockey(pairs: list[tuple[Fraction, Fraction]], t: Fraction) -> Fraction:
    return sum((max(p - t * q, Fraction(0)) for p, q in pairs), Fraction(0))


@settings(**EXACT, max_examples=60)
@given(
    parts(),
    st.sampled_from(["remove", "add"]),
    st.integers(2, 6),
    st.integers(-40, -1),
    st.integers(1, 60),
)
def test_a_law_on_any_grid_is_above_the_true_curve_everywhere(part, way, k, low, high):
    law = checker.grid_law(part, way, (k, low, high), BITS)
    assert sum(law.masses) + law.rest >= 1 << BITS
    rng = random.Random(low * high)
    for _ in range(20):
        t = Fraction(math.exp(rng.uniform(-4, 4)))
        assert curve_of(law, t) >= hockey(pair_of(part, way), t)
    assert curve_of(law, Fraction(0)) >= 1


@settings(**EXACT, max_examples=40)
@given(
    st.lists(parts(), min_size=1, max_size=3),
    st.integers(1, 4),
    st.sampled_from([16, 40, 200]),
    st.sampled_from(["remove", "add"]),
    st.integers(3, 30),
)
def test_products_of_coarse_and_trimmed_laws_are_above_the_true_composition(
    several, count, limit, way, cut
):
    total = None
    for part in several:
        law = checker.grid_law(part, way, (5, -90, 90), BITS)
        law = checker.composed(law, count, limit, BITS, Fraction((1 << BITS) >> cut, count))
        total = law if total is None else checker.joined(total, law, limit, BITS)
    assert total is not None
    truth = composed([pair_of(part, way) for part in several for _ in range(count)])
    rng = random.Random(count)
    for _ in range(12):
        t = Fraction(math.exp(rng.uniform(-4, 5)))
        assert curve_of(total, t) >= hockey(truth, t)
    for delta in (Fraction(1, 10), Fraction(1, 1000)):
        try:
            epsilon = checker.epsilon_of(total, delta, BITS)
        except checker.MissingError:
            continue
        low = Fraction(checker.exp(*epsilon.as_integer_ratio(), 200)[0], 1 << 200)
        assert hockey(truth, low) <= delta + Fraction(1, 2**150)


def test_fine_grids_are_sharp():
    part = Part(Law("two sided", (Fraction(7, 10), Fraction(3, 10))), "poisson", Fraction(1, 3))
    for way in ("remove", "add"):
        law = checker.composed(
            checker.grid_law(part, way, (12, -1700, 1700), BITS), 8, 20_000, BITS, Fraction(0)
        )
        truth = composed([pair_of(part, way)] * 8)
        for t in (Fraction(1), Fraction(3, 2), Fraction(3)):
            exact = hockey(truth, t)
            assert exact <= curve_of(law, t) <= exact + Fraction(1, 10**5)


masses = st.lists(st.integers(0, (1 << BITS) // 30), min_size=1, max_size=30)  # at most 1 in all


@settings(**EXACT)
@given(masses, st.integers(-20, 5), st.integers(-2, 8), st.integers(0, 1 << BITS))
def test_trimming_and_coarsening_only_raise_a_curve(drawn, low, k, rest):
    law = Losses(k, low, drawn, rest)
    for after in (checker.trimmed(law, 1 << (BITS - 2)), checker.coarser(law, BITS)):
        for x in (-3, -0.1, 0, 0.2, 2):
            t = Fraction(math.exp(x))
            assert curve_of(after, t) >= curve_of(law, t) - Fraction(len(drawn), 2**140)


@settings(**EXACT)
@given(masses, masses, st.integers(0, 1 << BITS))
def test_products_of_integers_are_convolutions_rounded_up(one, other, rest):
    first, second = Losses(3, -4, one, rest), Losses(3, 2, other, 0)
    law = checker.product(first, second, BITS)
    exact = [0] * (len(one) + len(other) - 1)
    for i, a in enumerate(one):
        for j, b in enumerate(other):
            exact[i + j] += a * b
    assert law.masses == [-(-mass >> BITS) for mass in exact]
    assert law.low == -2
    assert law.rest == -(-rest * sum(other) >> BITS)


def test_a_grid_that_ends_early_proves_nothing():
    part = Part(Law("normal", (Fraction(1),)), "all", Fraction(1))
    law = checker.grid_law(part, "remove", (4, -10, 10), BITS)
    with pytest.raises(checker.MissingError, match="too early"):
        checker.epsilon_of(law, Fraction(1, 1000), BITS)
