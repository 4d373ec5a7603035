import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.base.errors import InputError
from dpaudit.mechanisms import DiscreteLaplace, FinitePair, approximate_pair
from dpaudit.mechanisms.pairs import costless_pair, finite, vast_pair


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (0.5, 1e-3), (0.0, 0.1)])
def test_approximate_pair_meets_its_own_claim(epsilon, delta):
    pair = approximate_pair(epsilon, delta)
    assert float(pair.delta(epsilon)) == pytest.approx(delta, abs=1e-15)
    assert pair.p.sum() + pair.p_infinite == pytest.approx(1)
    assert pair.q.sum() + pair.p_infinite == pytest.approx(1)
    assert pair.pure_epsilon == (epsilon if delta == 0 else math.inf)


def test_tails_at_an_atom_are_strict_above():
    pair = approximate_pair(1.0)
    above, below = pair.above(1.0)[0], pair.below(1.0)[0]
    assert above == 0
    assert below == 1
    assert np.isinf(approximate_pair(1.0, 0.1).renyi(2.0))


def test_masses_below_the_floats_keep_their_logarithms():
    near, far = DiscreteLaplace(1.0).pair(20), DiscreteLaplace(1e-3).pair(10)
    log_p, log_q = near.log_masses()
    assert np.allclose(log_p - log_q, near.losses)
    assert np.allclose(far.renyi([1.001, 2.0, 1e6]), 1e4, rtol=1e-12)
    assert far.delta(9_999.0) == pytest.approx(-math.expm1(-1), rel=1e-11)


@pytest.mark.parametrize("bound", [None, Fraction(10) ** 400])
def test_laws_that_are_disjoint_have_all_mass_at_infinity(bound):
    pair = vast_pair(bound)
    assert pair.delta([0.0, 1e300]).tolist() == [1.0, 1.0]
    assert pair.above(5.0) == (1.0, 0.0)
    assert pair.below(5.0) == (0.0, 1.0)
    assert pair.pure_epsilon == (math.inf if bound is None else bound)
    assert pair.zcdp_rho == math.inf


def test_equal_laws_cost_nothing():
    pair = costless_pair()
    assert (pair.pure_epsilon, pair.zcdp_rho, float(pair.delta(0.0))) == (0, 0.0, 0.0)
    assert pair.renyi([1.5, 100.0]).tolist() == [0.0, 0.0]
    assert pair.span is None


@given(
    halves=st.lists(st.tuples(st.floats(0.01, 3), st.floats(0.05, 1)), min_size=1, max_size=6),
    middle=st.sampled_from([0.0, 0.3, 1.0]),
)
@settings(max_examples=50, deadline=None, derandomize=True)
def test_curves_and_divergences_are_those_of_the_outputs(halves, middle):
    """Of the two distributions over outputs, output by output."""
    losses = np.cumsum([step for step, _ in halves])
    upper = np.array([weight for _, weight in halves])
    total = (upper * (1 + np.exp(-losses))).sum() + middle
    p = np.concatenate([(upper * np.exp(-losses))[::-1], [middle], upper]) / total
    q = p[::-1].copy()
    pair = FinitePair(np.concatenate([-losses[::-1], [0.0], losses]), p, q)
    for epsilon in (-1.0, 0.0, 0.3, 2.0):
        exact = np.maximum(p - math.exp(epsilon) * q, 0).sum()
        assert float(pair.delta(epsilon)) == pytest.approx(exact, abs=1e-12)
        above = pair.losses > epsilon
        assert [float(t) for t in pair.above(epsilon)] == pytest.approx(
            [p[above].sum(), q[above].sum()], abs=1e-12
        )
    held = p > 0
    for order in (1.1, 2.0, 9.0):
        exact = math.log((p[held] ** order * q[held] ** (1 - order)).sum()) / (order - 1)
        assert float(pair.renyi(order)) == pytest.approx(exact, rel=1e-9, abs=1e-12)
    assert pair.span == pytest.approx(losses[0])


def test_large_tables_are_made_in_parts(monkeypatch):
    pair, orders = DiscreteLaplace(30.0).pair(500), np.linspace(1.5, 40, 77).reshape(7, 11)
    whole = pair.renyi(orders)
    monkeypatch.setattr(finite, "_LARGEST_TABLE", 2000)
    np.testing.assert_allclose(pair.renyi(orders), whole, rtol=1e-14)


GOOD = {"losses": [-1.0, 1.0], "p": [0.26894142, 0.73105858], "q": [0.73105858, 0.26894142]}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"losses": [1.0, -1.0]}, "losses do not increase"),
        ({"losses": [-1.0, -1.0]}, "losses do not increase"),
        ({"losses": [-math.inf, math.inf]}, "losses do not increase"),
        ({"losses": [[-1.0, 1.0]]}, "p and q must have the same"),
        ({"q": [1.0]}, "p and q must have the same"),
        ({"losses": [], "p": [], "q": []}, "p and q must have the same"),
        ({"p_infinite": 0.1}, "add up to 1"),
        ({"p": [-0.1, 1.1]}, "masses of at least 0"),
        ({"p_infinite": -0.1, "p": [0.3, 0.8], "q": [0.8, 0.3]}, "masses of at least 0"),
        ({"losses": [-1.0, 1.5]}, "mirror"),
        ({"q": [0.6, 0.4]}, "mirror image of p"),
        ({"losses": [-2.0, 2.0]}, r"losses are not ln p/q"),
    ],
)
def test_what_is_no_pair_is_refused(fields, message):
    arrays = {
        name: value if name == "p_infinite" else np.array(value)
        for name, value in (GOOD | fields).items()
    }
    with pytest.raises(InputError, match=message):
        FinitePair(**arrays)
