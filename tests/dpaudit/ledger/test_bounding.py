"""One unit moves a total by no more than its bound, exactly, whatever the data are."""

import time
from enum import StrEnum
from fractions import Fraction

import numpy as np
import pytest
from effort import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpaudit.base.errors import InputError
from dpaudit.ledger.bounding import bounded_total, cells_of, first_rows
from dpaudit.ledger.units import Units
from dpaudit.mechanisms import Norm
from dpaudit.plan import Contribution

numbers = st.one_of(
    st.floats(width=64),
    st.sampled_from([0.0, 1.0, 3.0, 1e308, -1e308, 5e-324, np.nan, np.inf, -np.inf, 1e154, 0.1]),
)
bounds = st.sampled_from([1.0, 3.0, 0.1, 1e-200, 1e200, 2.0**26, np.sqrt(2), 7.0])


def norm_of(difference, norm):
    """Exactly: the L1 norm, or the square of the L2 norm."""
    exact = [Fraction(float(x)) for x in difference]
    return sum(map(abs, exact)) if norm is Norm.L1 else sum(x * x for x in exact)


def within(difference, bound, norm):
    limit = Fraction(bound) if norm is Norm.L1 else Fraction(bound) ** 2
    return norm_of(difference, norm) <= limit


@settings(max_examples=examples(100, 2000), deadline=None)
@given(
    rows=st.lists(st.tuples(st.integers(0, 3), numbers, numbers), min_size=1, max_size=12),
    bound=bounds,
    norm=st.sampled_from([Norm.L1, Norm.L2]),
    most=st.sampled_from([None, 1, 2]),
)
@example([(0, 1.0, 1.0), (1, 1e308, 1e308), (0, 1e308, 1e308)], 1.0, Norm.L2, None)
@example([(0, 1e154, 1e154)], 1e200, Norm.L2, None)
@example([(0, 2.2e-168, 0.0)], 1e-200, Norm.L2, None)
@example([(0, np.inf, -np.inf), (0, -np.inf, 1.0)], 3.0, Norm.L1, None)
def test_a_removed_unit_moves_the_total_by_its_bound(rows, bound, norm, most):
    codes = np.array([code for code, *_ in rows])
    values = np.array([[one, two] for _, one, two in rows])
    contribution = Contribution(bound, most)
    total = bounded_total(values, Units(codes, 4), contribution, norm)[0]
    assert np.isfinite(total).all()
    for gone in range(4):
        kept = codes != gone
        less = bounded_total(values[kept], Units(codes[kept], 4), contribution, norm)[0]
        # Totals of few parts are exact on the grid, so that their difference is the part itself.
        part = bounded_total(values[~kept], Units(codes[~kept], 4), contribution, norm)[0]
        assert within(part, bound, norm)
        np.testing.assert_array_equal(total, less + part)


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=20), st.integers(5, 2**20))
def test_integers_within_the_bound_stay_whole(values, bound):
    total = bounded_total(values, Units.of(None, len(values)), Contribution(bound), Norm.L2)[0]
    assert total == sum(values)


def test_parts_are_scaled_not_cut():
    rows = np.array([[3.0, 4.0], [0.3, 0.4]])
    total = bounded_total(rows, Units.of(None, 2), Contribution(1.0), Norm.L2)[0]
    np.testing.assert_allclose(total, [0.6 + 0.3, 0.8 + 0.4], rtol=1e-7)
    one_norm = bounded_total(rows, Units.of(None, 2), Contribution(7.0), Norm.L1)[0]
    np.testing.assert_allclose(one_norm, [3.3, 4.4], rtol=1e-7)


def test_rows_of_a_unit_are_joined_before_they_are_bounded():
    rows, units = [4.0, -3.5, 1.0], ["ann", "ann", "bob"]
    total = bounded_total(rows, Units.of(units, 3), Contribution(1.0), Norm.L1)[0]
    assert total == pytest.approx(1.5, rel=1e-7)
    alone = bounded_total(rows, Units.of(None, 3), Contribution(1.0), Norm.L1)[0]
    assert alone == pytest.approx(1.0, rel=1e-7)


@given(st.lists(st.integers(0, 4), max_size=30), st.integers(1, 3))
def test_the_first_rows_of_each_unit_count(codes, most):
    seen, expected = {}, []
    for code in codes:
        seen[code] = seen.get(code, 0) + 1
        expected.append(seen[code] <= most)
    units = Units(np.array(codes, dtype=np.int64), 5)
    assert first_rows(units, most).tolist() == expected


def test_keys_are_known_beforehand():
    assert cells_of(["b", "x", "a"], np.array(["a", "b"])).tolist() == [1, -1, 0]
    with pytest.raises(InputError, match="distinct"):
        cells_of(["a"], np.array(["a", "a"]))
    with pytest.raises(InputError, match="no text, number or tuple"):
        cells_of(["a"], [["a"]])


class Colour(StrEnum):
    RED = "red"


@pytest.mark.parametrize(
    ("keys", "public", "cells"),
    [
        ([1, "1", "a", "a\0"], ["1", "a\0", 1], [2, 0, -1, 1]),
        ([("a", 1), ("a", 2), (1, "a")], [("a", 2), ("a", 1)], [1, 0, -1]),
        ([2**53 + 1, 2.0**53, np.float64(3.0)], [2**53, 3], [-1, 0, 1]),
        ([Colour.RED, "red", None], ["red", None], [0, 0, 1]),
        ([["a"], {"a"}, ("a", ["b"]), object()], ["a"], [-1, -1, -1, -1]),
        (np.array([1.0, np.nan, 2.0]), [1, 2], [0, -1, 1]),
        ([], ["a"], []),
    ],
)
def test_keys_are_what_they_are_and_nobodys_own_stops_a_release(keys, public, cells):
    assert cells_of(keys, public).tolist() == cells


@pytest.mark.parametrize("rows", [["x"], 3.0, [[1.0], [1.0, 2.0]][:1] * 0 or [None], [3j]])
def test_rows_are_numbers(rows):
    with pytest.raises(InputError, match="rows are of type"):
        bounded_total(rows, Units.of(None, np.size(rows)), Contribution(1.0), Norm.L1)


def test_nothing_is_nothing():
    empty = bounded_total(np.zeros((0, 3)), Units.of(None, 0), Contribution(1.0), Norm.L2)[0]
    assert empty.tolist() == [0.0, 0.0, 0.0]


def test_bounding_costs_little_beside_clipping_and_summing():
    """A ratio in one process: the least of several runs of each, in turn."""
    rng = np.random.default_rng(0)
    rows, codes = rng.normal(size=(200_000, 10)), rng.integers(0, 60_000, 200_000)

    def plain():
        joined = np.stack([np.bincount(codes, column, minlength=60_000) for column in rows.T], 1)
        norms = np.sqrt(np.einsum("ij,ij->i", joined, joined))
        return (joined * np.minimum(1, 3 / np.maximum(norms, 1e-300))[:, None]).sum(axis=0)

    def ours():
        return bounded_total(rows, Units.of(codes, len(rows)), Contribution(3.0), Norm.L2)[0]

    np.testing.assert_allclose(ours(), plain(), atol=1e-3)
    times = {plain: [], ours: []}
    for _ in range(7):
        for task, taken in times.items():
            start = time.process_time()
            task()
            taken.append(time.process_time() - start)
    assert min(times[ours]) <= 2 * min(times[plain])


@pytest.mark.parametrize("bound", [2.0**26, 2.0**26 + 1, 1e12, 1e200])
@pytest.mark.parametrize("norm", [Norm.L1, Norm.L2])
def test_integers_of_any_bound_stay_integers_within_it(bound, norm):
    rows = np.array([3, -5, 2**40, 2**62], dtype=np.int64)
    everybody = bounded_total(rows, Units.of(None, 4), Contribution(bound), norm)[0]
    assert everybody == np.floor(everybody)
    for place in range(4):
        others = np.delete(rows, place)
        without = bounded_total(others, Units.of(None, 3), Contribution(bound), norm)[0]
        assert within([everybody - without], bound, norm)
