import itertools
import math
from dataclasses import dataclass
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from accounting_builders import plan, poisson, use
from mechanism_conformance import MechanismConformance
from scipy import integrate, stats

from dpaudit import Ledger, RunResult, Subject
from dpaudit.accounting import compose, for_group, guarantee
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.mechanisms import Gaussian, GaussianVector, Laplace, LaplaceVector
from dpaudit.plan import ZeroOut
from dpaudit.rehearsal.rehearse import rehearse

BOX = ((1.0, 4.0), (1.5, 2.0))


def laplace_delta(epsilon: float, ratio: float) -> float:
    """δ of two Laplace laws so many scales apart, at any real ε."""
    if epsilon < -ratio:
        return -math.expm1(epsilon)
    return max(-math.expm1((epsilon - ratio) / 2), 0.0)


def product_delta(epsilon: float, first: float, second: float) -> float:
    """δ of two coordinates: the mean, over the first, of δ of the second at what is left."""

    def inside(y):
        loss = abs(y) - abs(y - first)
        return math.exp(-abs(y - first)) / 2 * laplace_delta(epsilon - loss, second)

    ends = [-40.0, 0.0, first, first + 40.0]
    kinks = [(epsilon - s * second + first) / 2 for s in (-1, 1)]
    places = sorted({*ends, *(k for k in kinks if 0 < k < first)})
    pairs = itertools.pairwise(places)
    return math.fsum(integrate.quad(inside, a, b, epsabs=1e-12)[0] for a, b in pairs)


class TestLaplaceVector(MechanismConformance):
    mechanism = LaplaceVector(*BOX)
    unlike = LaplaceVector((1.0, 8.0), (1.0, 1.0))
    value = (3.0, 0.0)
    neighbour = (4.5, 2.0)
    attained = False  # by the one pair that samples need
    bad_parameters = (
        {"scales": ()},
        {"scales": (1.0,)},
        {"scales": (1.0, 0.0)},
        {"scales": (1.0, math.inf)},
        {"scales": 1.0},
        {"sensitivities": (1.0, -1.0)},
        {"sensitivities": (1.0, math.nan)},
        {"sensitivities": (1.0, 2.0, 3.0)},
    )
    bad_values = (1.0, [1.0], [1.0, 2.0, 3.0], [[1.0, 2.0]], [math.nan, 1], [1, math.inf], "ab")

    def mean(self):
        return 3.0

    def variance(self):
        return 2.0

    def exact_delta(self, epsilon):
        return product_delta(epsilon, 1.5, 0.5)


class TestGaussianVector(TestLaplaceVector):
    mechanism = GaussianVector(*BOX)
    unlike = GaussianVector((1.0, 8.0), (1.0, 1.0))
    attained = True

    def variance(self):
        return 1.0

    def exact_delta(self, epsilon):
        mu = math.hypot(1.5, 0.5)
        a, b = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
        return stats.norm.cdf(a) - math.exp(epsilon) * stats.norm.cdf(b)


@pytest.mark.parametrize(("first", "second"), [(1.5, 0.5), (0.7, 0.7), (3.0, 1e-3)])
def test_the_whole_box_of_laplace_noise_costs_what_the_product_law_does(first, second):
    mechanism = LaplaceVector((2.0, 10.0), (2 * first, 10 * second))
    found = compose(plan(use(mechanism)))
    assert found.epsilon(0.0).upper == pytest.approx(first + second)
    for epsilon in (0.0, 0.3, 1.0, 1.9):
        interval, exact = found.delta(epsilon), product_delta(epsilon, first, second)
        assert interval.lower - 1e-9 <= exact <= interval.upper + 1e-9
        assert interval.upper == pytest.approx(exact, abs=1e-3)
        assert exact <= float(mechanism.pair(1).delta(epsilon)) + 1e-9


def test_it_costs_what_one_mechanism_a_coordinate_does():
    apart = plan(use(Laplace(3.0), 1.0, count=2), use(Laplace(7.0), 2.0))
    whole = plan(use(LaplaceVector((3.0, 3.0, 7.0, 1.0), (1.0, 1.0, 2.0, 0.0))))
    for delta in (0.0, 1e-6, 1e-2):
        one, other = (compose(each).epsilon(delta) for each in (whole, apart))
        assert (one.lower, one.upper) == (other.lower, other.upper)
    normal = plan(use(GaussianVector((3.0, 7.0), (1.0, 2.0))))
    parts = plan(use(Gaussian(3.0), 1.0), use(Gaussian(7.0), 2.0))
    assert guarantee(normal, 1e-6).epsilon == pytest.approx(guarantee(parts, 1e-6).epsilon)


def test_smaller_boxes_cost_less_at_every_point():
    whole = compose(plan(use(LaplaceVector((1.0, 2.0), (1.0, 1.0)))))
    for box in ((1.0, 0.0), (0.5, 1.0), (0.9, 0.3)):
        part = compose(plan(use(LaplaceVector((1.0, 2.0), box))))
        for epsilon in (0.0, 0.5, 1.2):
            assert part.delta(epsilon).lower <= whole.delta(epsilon).upper


def test_the_root_is_that_of_mpmath():
    rng = np.random.default_rng(2)
    mpmath.mp.dps = 60
    for _ in range(50):
        scales, moves = (10.0 ** rng.uniform(-150, 150, size=(2, 5))).tolist()
        squares = [(mpmath.mpf(m) / mpmath.mpf(s)) ** 2 for m, s in zip(moves, scales, strict=True)]
        exact = mpmath.sqrt(mpmath.fsum(squares))
        found = GaussianVector(scales, moves).pair(1).mu
        assert exact <= found <= exact * (1 + mpmath.mpf(2) ** -49)


def test_samples_have_one_pair():
    laplace, normal = LaplaceVector((2.0, 4.0), (1.0, 2.0)), GaussianVector((2.0, 4.0), (1.0, 2.0))
    sampled = plan(use(laplace, sampling=poisson(0.1)))
    assert guarantee(sampled, 0.0).epsilon == pytest.approx(math.log1p(0.1 * math.expm1(1.0)))
    assert compose(sampled).epsilon(1e-3).lower is None
    one = plan(use(Gaussian(1.0), math.sqrt(0.5), sampling=poisson(0.1)))
    own = guarantee(plan(use(normal, sampling=poisson(0.1))), 1e-5).epsilon
    assert own == pytest.approx(guarantee(one, 1e-5).epsilon, rel=1e-6)
    zeroed = use(normal, relation=ZeroOut(), sampling=poisson(0.1))
    assert guarantee(plan(zeroed), 1e-5).epsilon == pytest.approx(own)


def test_a_group_moves_so_much_further():
    for kind in (LaplaceVector, GaussianVector):
        three = guarantee(for_group(plan(use(kind(*BOX))), 3), 1e-3).epsilon
        wide = kind(BOX[0], tuple(3 * each for each in BOX[1]))
        assert three == guarantee(plan(use(wide)), 1e-3).epsilon


def test_more_coordinates_than_are_composed_are_bounded_by_one_shift():
    scales = tuple(np.linspace(50.0, 90.0, 501).tolist())
    many = LaplaceVector(scales, (1.0,) * 501)
    assert many.composed_of() == ()
    found = compose(plan(use(many))).epsilon(1e-6)
    assert found.lower is None
    assert found.upper <= float(sum(1 / Fraction(b) for b in scales)) * (1 + 1e-15)


def test_distance_is_that_of_the_coordinate_that_moves_most():
    mechanism = LaplaceVector((1.0, 1.0, 1.0), (1.0, 10.0, 0.0))
    zero = np.zeros(3)
    assert mechanism.distance(zero, np.array([1.0, 10.0, 0.0])) == 1
    assert mechanism.distance(zero, np.array([0.5, -20.0, 0.0])) == 2
    assert mechanism.distance(zero, np.array([0.0, 0.0, 1e-9])) == math.inf
    assert mechanism.distance(zero, np.zeros(2)) == math.inf
    assert mechanism.distance(zero, zero) == 0
    assert LaplaceVector((1.0,), (0.0,)).worst_pairs() == ()


@pytest.mark.parametrize("kind", [LaplaceVector, GaussianVector])
@pytest.mark.parametrize("scale", [5e-324, 1e-300, 1e300])
def test_extremes_are_served(kind, scale):
    found = guarantee(plan(use(kind((scale, 1.0), (1.0, 0.5)))), 1e-5)
    assert found.epsilon > 1e290 if scale < 1 else 0 < found.epsilon < 10
    tiny = guarantee(plan(use(LaplaceVector((scale, 1e300), (1e-20, 5e-324)))), 0.0)
    assert Fraction(5e-324) / 10**300 <= Fraction(tiny.epsilon)
    with pytest.raises(InputError, match="0 or 1"):
        kind((scale,), (1.0,)).pair(0.5)
    with pytest.raises(InputError, match="0 or 1"):
        guarantee(plan(use(kind((scale,), (1.0,)), 2.0)), 1e-5)


def test_the_ledger_wants_every_coordinate():
    mechanism = LaplaceVector((1e-9, 1e-9), (1.0, 2.0))
    with Ledger(plan(use(mechanism, at="both")), rng=np.random.default_rng(0)) as ledger:
        with pytest.raises(InputError, match="vector of 2 entries"):
            ledger.release(mechanism, [1.0, 2.0, 3.0])
        assert ledger.release(mechanism, [1.0, 2.0]) == pytest.approx([1.0, 2.0], abs=1e-6)


@dataclass(frozen=True)
class Table(Subject):
    """Totals of two columns, of which a row is declared to add so much."""

    second: float = 5.0

    def noise(self):
        return LaplaceVector((1.0, 5.0), (1.0, self.second))

    def plan(self):
        return plan(use(self.noise(), at="totals"))

    def run(self, rows, ledger, rng):
        total = np.array(rows).reshape(-1, 2).sum(axis=0)
        return RunResult({"totals": ledger.release(self.noise(), total, at="totals").tolist()})


@pytest.mark.parametrize("second", [5.0, 2.0])
def test_a_rehearsal_refuses_a_coordinate_that_moves_more(second):
    found = rehearse(Table(second), [[1.0, 5.0], [0.0, 4.0], [1.0, 5.0]]).findings
    assert ("sensitivity-understated" in {each.rule for each in found}) == (second < 5)


def test_exact_normal_noise_is_refused_where_it_is_not_proved():
    pytest.importorskip("opendp", reason="the extra 'secure' is not installed")
    far = GaussianVector((1.0, 1.0), (1.0, 20.0))
    with pytest.raises(UnsupportedError, match="2\\^-16 to 10"), Ledger(plan(use(far))) as ledger:
        ledger.release(far, [0.0, 9.0])
    with Ledger(plan(use(GaussianVector((1.0, 1.0), (1.0, 0.0)), at="x"))) as ledger:
        assert ledger.release(GaussianVector((1.0, 1.0), (1.0, 0.0)), [0.0, 9.0]).shape == (2,)
