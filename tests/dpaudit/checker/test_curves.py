"""The checker's grids, and its curves, against independent truth."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import combinations, pairwise, product

import mpmath
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpaudit import checker
from dpaudit.checker import Law, Losses, Part

# -- laws on a grid, against the enumeration of finite laws ----------------------------------------


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


# -- every rule's curve, against sums and integrals of the law itself ------------------------------


W = 160
SLACK = mpmath.ldexp(1, -120)


@pytest.fixture(autouse=True)
def _precise():
    with mpmath.workprec(700):
        yield


def real(value: Fraction | int) -> mpmath.mpf:
    value = Fraction(value)
    return mpmath.mpf(value.numerator) / value.denominator


def at(law: Law, t: Fraction) -> mpmath.mpf:
    """The checker's curve at t, which is a multiple of the last place."""
    scaled = t * 2**W
    assert scaled.denominator == 1
    return mpmath.ldexp(mpmath.mpf(checker.base_curve(law, int(scaled), W)), -W)


def points(rng: random.Random, reach: float, count: int = 40) -> list[Fraction]:
    """Places t from e^−reach to e^reach, and 1."""
    drawn = [Fraction(2.718281828 ** rng.uniform(-reach, reach)) for _ in range(count)]
    return [*(Fraction(round(t * 2**W), 2**W) for t in drawn), Fraction(1)]


def close(law: Law, t: Fraction, exact: mpmath.mpf, slack: mpmath.mpf = SLACK) -> None:
    told = at(law, t)
    assert told >= exact - mpmath.ldexp(1, -500), (law, float(t))
    assert told <= exact + slack * (1 + real(t)), (law, float(t), mpmath.nstr(told - exact))


def hockey_curves(p: list[mpmath.mpf], q: list[mpmath.mpf], t: Fraction) -> mpmath.mpf:
    return mpmath.fsum(max(a - real(t) * b, 0) for a, b in zip(p, q, strict=True))


@pytest.mark.parametrize("mu", [1e-8, 0.01, 0.3, 1.0, 4.0, 12.0, 25.0])
def test_normal(mu):
    rng, m = random.Random(f"{mu}"), real(Fraction(mu))
    law = Law("normal", (Fraction(mu) ** 2,))
    for t in points(rng, mu * mu / 2 + 7 * mu, 25):
        x = mpmath.log(real(t))
        exact = mpmath.ncdf(m / 2 - x / m) - real(t) * mpmath.ncdf(-m / 2 - x / m)
        far = abs(x / m) + m / 2 > 16
        told = at(law, t)
        assert told >= exact - mpmath.ldexp(1, -500)
        # Beyond 16 deviations the second term is a bound, short of it by 1/b² at most.
        spare = mpmath.npdf(abs(x) / m - m / 2) / mpmath.mpf(16) ** 3 if far else 0
        assert told <= exact + spare * max(1, real(t)) + SLACK * (1 + real(t))


def test_normal_at_the_ends_of_floats():
    for square in (
        Fraction(5e-324) ** 2,
        Fraction(1e-300),
        Fraction(1e300),
        Fraction(1.7e308) ** 2,
    ):
        law = Law("normal", (square,))
        for x in (0, 1, 700, 3000):
            t = checker.exp(x, 1, W)[0]
            told = checker.base_curve(law, t, W)
            assert 0 < told <= 1 << W
            if square < 1e-200 and x:
                assert told <= 2
            if square > 1e200:
                assert told == 1 << W


@pytest.mark.parametrize("epsilon", [1e-12, 0.1, 1.0, 5.0, 60.0])
def test_laplace(epsilon):
    e, law = Fraction(epsilon), Law("laplace", (Fraction(epsilon),))
    for t in points(random.Random(2), min(1.3 * epsilon, 70)):
        x = mpmath.log(real(t))
        if x >= real(e):
            exact = mpmath.mpf(0)
        elif x <= -real(e):
            exact = 1 - real(t)
        else:  # outputs above (x + e)/2 of densities at e and at 0
            p, q = _laplace_above((x + real(e)) / 2 - real(e)), _laplace_above((x + real(e)) / 2)
            exact = p - real(t) * q
        close(law, t, exact)


def _laplace_above(y: mpmath.mpf) -> mpmath.mpf:
    return mpmath.exp(-y) / 2 if y > 0 else 1 - mpmath.exp(y) / 2


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 6.0])
def test_bounded_range_is_the_worst_of_two_losses(epsilon):
    law, e = Law("bounded range", (Fraction(epsilon),)), real(Fraction(epsilon))
    for t in points(random.Random(3), 1.2 * epsilon, 20):
        worst = mpmath.mpf(0)
        for number in range(501):
            s = e * number / 500  # losses s and s − ε
            q = (mpmath.exp(-s) - mpmath.exp(-e)) / (1 - mpmath.exp(-e))
            p = q * mpmath.exp(s)
            worst = max(worst, hockey_curves([p, 1 - p], [q, 1 - q], t))
        told = at(law, t)
        assert worst - mpmath.ldexp(1, -500) <= told <= worst + 1e-4 * epsilon**2 + 1e-30


def test_bounded_range_dominates_random_laws_within_it():
    rng = random.Random(4)
    for _ in range(200):
        epsilon = rng.uniform(0.05, 4)
        losses = [rng.uniform(0, epsilon) for _ in range(rng.randint(2, 5))]
        weights = [rng.random() for _ in losses]
        q = [mpmath.mpf(weight) / sum(weights) for weight in weights]
        p = [mass * mpmath.exp(loss) for mass, loss in zip(q, losses, strict=True)]
        p = [mass / mpmath.fsum(p) for mass in p]
        law = Law("bounded range", (Fraction(epsilon),))
        for t in points(rng, epsilon, 5):
            assert at(law, t) >= hockey_curves(p, q, t) - mpmath.mpf(10) ** -60


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.0), (3.0, 1e-6), (0.0, 0.1), (100.0, 0.0)])
def test_response_dominates_its_pair(epsilon, delta):
    e, d = mpmath.exp(real(Fraction(epsilon))), real(Fraction(delta))
    p = [d, (1 - d) * e / (1 + e), (1 - d) / (1 + e), mpmath.mpf(0)]
    q = [mpmath.mpf(0), (1 - d) / (1 + e), (1 - d) * e / (1 + e), d]
    law = Law("response", (Fraction(epsilon), Fraction(delta)))
    for t in points(random.Random(5), min(2 * epsilon + 1, 80)):
        close(law, t, hockey_curves(p, q, t), d * 1 + SLACK)


def test_two_answers():
    rng = random.Random(6)
    for _ in range(40):
        k, chance = rng.randint(2, 9), Fraction(rng.uniform(1e-9, 1))
        p = [real(1 - chance + chance / k), *[real(chance / k)] * (k - 1)]
        q = [p[1], p[0], *p[2:]]
        ((law, _),) = checker.uses_of(
            {"kind": "randomized-response", "p": float(chance), "k": k}, Fraction(1), 1, drawn=False
        )
        for t in points(rng, 25, 5):
            close(law, t, hockey_curves(p, q, t))


@pytest.mark.parametrize(("k", "members"), [(3, 1), (4, 2), (5, 4)])
def test_subsets_by_enumeration(k, members):
    chance = Fraction(0.3)
    ((law, _),) = checker.uses_of(
        {"kind": "subset-selection", "k": k, "p": 0.3, "members": members},
        Fraction(1), 1, drawn=False,
    )  # fmt: skip
    every = list(combinations(range(k), members))
    with_truth = len([one for one in every if 0 in one])

    def law_of(answer: int) -> list[mpmath.mpf]:
        masses = [
            chance / len(every) + (1 - chance) / with_truth * (answer in one) for one in every
        ]
        return [real(mass) for mass in masses]

    for t in points(random.Random(7), 4):
        close(law, t, hockey_curves(law_of(0), law_of(1), t))


@pytest.mark.parametrize(("keep", "lie"), [(0.5, 0.1), (0.9, 0.1), (0.2, 0.7)])
def test_unary_encodings_by_enumeration(keep, lie):
    record = {"kind": "unary-encoding", "k": 3, "lie": lie, "keep": keep}
    ((law, _),) = checker.uses_of(record, Fraction(1), 1, drawn=False)

    def law_of(answer: int) -> list[mpmath.mpf]:
        found = []
        for bits in product((0, 1), repeat=3):
            mass = Fraction(1)
            for place, bit in enumerate(bits):
                chance = Fraction(keep if place == answer else lie)
                mass *= chance if bit else 1 - chance
            found.append(real(mass))
        return found

    for t in points(random.Random(8), 4):
        close(law, t, hockey_curves(law_of(0), law_of(1), t))


@pytest.mark.parametrize(("scale", "shift"), [(0.05, 1), (0.7, 1), (2.0, 3), (30.0, 7), (60.0, 20)])
def test_discrete_laplace_by_summation(scale, shift):
    b, reach = real(Fraction(scale)), int(110 * scale) + shift + 110
    law = Law("geometric", (1 / Fraction(scale), Fraction(shift)))
    r = mpmath.exp(-1 / b)
    mass = [(1 - r) / (1 + r) * r ** abs(k) for k in range(-reach, reach + 1)]
    p, q = [*[mpmath.mpf(0)] * shift, *mass], [*mass, *[mpmath.mpf(0)] * shift]
    for t in points(random.Random(9), min(1.1 * shift / scale, 90), 8):
        exact = hockey_curves(p, q, t)
        assert at(law, t) >= exact - mpmath.mpf(10) ** -40
        assert at(law, t) <= exact + mpmath.mpf(10) ** -28 * (1 + real(t))


@pytest.mark.parametrize(("sigma", "shift"), [(0.1, 1), (0.5, 2), (3.0, 1), (20.0, 7)])
def test_discrete_gaussian_by_summation(sigma, shift):
    s, reach = real(Fraction(sigma)), int(16 * sigma) + shift + 6
    law = Law("lattice", (Fraction(sigma) ** 2, Fraction(shift)))
    weight = [mpmath.exp(-mpmath.mpf(k * k) / (2 * s * s)) for k in range(-reach, reach + 1)]
    whole = mpmath.fsum(weight)
    mass = [one / whole for one in weight]
    p, q = [*[mpmath.mpf(0)] * shift, *mass], [*mass, *[mpmath.mpf(0)] * shift]
    for t in points(random.Random(10), min(8 * shift / sigma + shift**2 / sigma**2, 60), 12):
        exact = hockey_curves(p, q, t)
        assert at(law, t) >= exact - mpmath.mpf(10) ** -45
        assert at(law, t) <= exact + mpmath.mpf(10) ** -26 * (1 + real(t))


def law_of(record: dict[str, object], shift: float = 1.0) -> Law:
    """The one law of a mechanism."""
    ((law, _),) = checker.uses_of(record, Fraction(shift), 1, drawn=False)
    return law


def bounds(law: Law, t: Fraction, exact: mpmath.mpf) -> None:
    assert at(law, t) >= exact - mpmath.mpf(10) ** -20, (law, float(t))


@pytest.mark.parametrize(("e", "u"), [(1.0, 10.0), (1.0, 1.2), (2.0, 2.0), (0.01, 0.5), (1e-6, 20)])
def test_truncated_laplace_by_integration(e, u):
    law = law_of({"kind": "truncated-laplace", "scale": 1.0, "bound": u}, e)
    whole = 2 * (1 - mpmath.exp(-real(Fraction(u))))

    def above(y: mpmath.mpf) -> mpmath.mpf:
        """P[noise > y]."""
        y, end = max(min(y, real(Fraction(u))), -real(Fraction(u))), mpmath.exp(-real(Fraction(u)))
        part = (mpmath.exp(-abs(y)) - end) / whole
        return part if y >= 0 else 1 - part

    for t in points(random.Random(11), 1.5 * e, 15):
        # The loss rises with the output, so that half-lines are the best events.
        ends = [real(Fraction(n, 400)) * (u + e) - u for n in range(401)]
        shift, end = real(Fraction(e)), real(Fraction(u))
        ends += [(mpmath.log(real(t)) + shift) / 2, end, shift - end]
        exact = max([above(y - shift) - real(t) * above(y) for y in ends] + [1 - real(t), 0])
        bounds(law, t, exact)
        if real(t) > mpmath.exp(shift) * 1.001:  # what is lost for certain
            close(law, t, exact, mpmath.mpf(10) ** -40)


def test_truncated_noise_beyond_its_bound_has_no_rule():
    with pytest.raises(checker.MissingError):
        law_of({"kind": "truncated-laplace", "scale": 1.0, "bound": 2.0}, 2.1)


@pytest.mark.parametrize(("scale", "threshold"), [(1.0, 2), (0.5, 5), (3.0, 6), (1.0, 20)])
def test_counts_that_are_told_from_a_threshold_on(scale, threshold):
    keys = {"kind": "stable-histogram", "scale": scale, "threshold": float(threshold)}
    law = law_of(keys | {"key_sensitivity": 1})
    r, reach = mpmath.exp(-1 / real(Fraction(scale))), int(50 * scale)

    def told(count: int) -> list[mpmath.mpf]:
        mass = {}
        if count:
            for k in range(-reach, reach + 1):
                out = max(count + k, threshold - 1)
                mass[out] = mass.get(out, 0) + (1 - r) / (1 + r) * r ** abs(k)
        else:
            mass[threshold - 1] = mpmath.mpf(1)
        return [mass.get(out, mpmath.mpf(0)) for out in range(threshold - 1, threshold + 2 * reach)]

    for t in points(random.Random(12), 2 / scale + 1, 8):
        worst = max(
            hockey_curves(told(count + one), told(count + other), t)
            for count in range(threshold + 3)
            for one, other in ((0, 1), (1, 0))
        )
        bounds(law, t, worst)
        if real(t) > mpmath.exp(1 / real(Fraction(scale))):
            close(law, t, worst, mpmath.mpf(10) ** -15)


@pytest.mark.parametrize("share", [None, 0.2, 0.9])
@pytest.mark.parametrize("shift", [1.0, 0.3, 1e-3])
def test_staircase_by_integration(share, shift):
    epsilon = 1.3
    law = law_of({"kind": "staircase", "epsilon": epsilon, "width": 1.0, "share": share}, shift)
    gamma = real(Fraction(share)) if share else 1 / (1 + mpmath.exp(real(Fraction(epsilon)) / 2))
    r, s = mpmath.exp(-real(Fraction(epsilon))), real(Fraction(shift))
    ends = sorted(
        {
            sign * (level + gamma) + move
            for level in range(80)
            for sign in (1, -1)
            for move in (0, s)
        }
    )

    def density(x: mpmath.mpf) -> mpmath.mpf:
        return r ** mpmath.floor(abs(x) + 1 - gamma)

    cells = [((a + b) / 2, b - a) for a, b in pairwise(ends)]
    whole = mpmath.fsum(density(x) * width for x, width in cells)
    p = [density(x - s) * width / whole for x, width in cells]
    q = [density(x) * width / whole for x, width in cells]
    for t in points(random.Random(13), 1.5, 12):
        # What lies beyond 80 steps has the mass e^−104.
        exact = hockey_curves(p, q, t) * (1 - mpmath.mpf(10) ** -40)
        bounds(law, t, exact)
        if share is None and shift == 1:
            close(law, t, exact, mpmath.mpf(10) ** -30)


def test_samples_of_finite_laws_by_enumeration():
    """Mixtures of P and Q, of units that come, are replaced, or are known to be drawn."""
    rng = random.Random(14)
    for _ in range(60):
        truth, lie = Fraction(rng.randint(5, 9), 10), Fraction(0)
        lie = Fraction(rng.randint(1, 9), 10) * (1 - truth)
        law = Law("two sided", (truth, lie))
        rate = Fraction(rng.choice([1e-7, 0.01, 0.3, 0.9, 0.999]))
        rest = 1 - truth - lie
        p, q = [truth, lie, rest], [lie, truth, rest]
        mixed = [rate * a + (1 - rate) * b for a, b in zip(p, q, strict=True)]
        for t in points(rng, 3, 4):
            scaled = int(t * 2**W)
            for way, ahead, behind in (("remove", mixed, q), ("add", q, mixed)):
                told = Fraction(checker.curve(Part(law, "poisson", rate), way, scaled, W), 2**W)
                exact = sum(max(a - t * b, Fraction(0)) for a, b in zip(ahead, behind, strict=True))
                assert exact <= told <= exact + Fraction(1, 2**140)
            known = Fraction(checker.curve(Part(law, "known", rate), "add", scaled, W), 2**W)
            base = sum(max(a - t * b, Fraction(0)) for a, b in zip(p, q, strict=True))
            assert known >= rate * base + (1 - rate) * max(1 - t, Fraction(0))
            # With a part in common any three laws within the curve of each other.
            half = Fraction(checker.curve(Part(law, "half", rate), "add", scaled, W), 2**W)
            for common in (p, q, [rest, lie, truth] if rest >= lie else q):
                near = max(
                    sum(max(a - s * b, Fraction(0)) for a, b in zip(one, other, strict=True))
                    - sum(max(a - s * b, Fraction(0)) for a, b in zip(p, q, strict=True))
                    for one, other in ((p, common), (q, common), (common, p), (common, q))
                    for s in (Fraction(1), Fraction(3, 2), Fraction(4), Fraction(1, 3))
                )
                if near > 0:
                    continue
                one = [rate * a + (1 - rate) * c for a, c in zip(p, common, strict=True)]
                other = [rate * b + (1 - rate) * c for b, c in zip(q, common, strict=True)]
                exact = sum(max(a - t * b, Fraction(0)) for a, b in zip(one, other, strict=True))
                assert half >= exact
