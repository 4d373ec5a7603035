"""Trees: dyadic sums, Honaker's weights, and streams that end where nobody knows."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest

from dpaudit.ledger.samplers.streams import noise_stream
from dpaudit.mechanisms import BinaryTree, ContinualGaussian, HonakerTree, Norm
from dpaudit.mechanisms.continual.trees import heaviest, search_work

TREES = (BinaryTree, HonakerTree)


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize(
    ("steps", "without", "with_root"),
    [(1, 1, 1), (2, 1, 2), (3, 2, 2), (4, 2, 3), (5, 3, 3), (1000, 10, 10), (1023, 10, 10),
     (1024, 10, 11), (1025, 11, 11)],
)  # fmt: skip
def test_levels(tree, steps, without, with_root):
    for levels, release_root in ((without, False), (with_root, True)):
        factorization = tree(steps, release_root)
        assert factorization.levels == levels
        assert factorization.sensitivity(norm=Norm.L1) == levels
        assert factorization.sensitivity() == pytest.approx(math.sqrt(levels), rel=1e-15)
        assert factorization.sensitivity() ** 2 >= levels * (1 - 1e-16)


@pytest.mark.parametrize(
    ("tree", "release_root", "printed"),
    [(BinaryTree, True, 10.49), (HonakerTree, True, 7.99), (BinaryTree, False, 10.00),
     (HonakerTree, False, 7.62)],
)  # fmt: skip
def test_largest_error_at_rho_one_half(tree, release_root, printed):
    """10.49 and 7.99 are printed with all 11 levels of T = 1024, the root among them."""
    factorization = tree(1024, release_root)
    assert round(factorization.max_error(factorization.sensitivity()), 2) == printed


def test_error_of_the_binary_tree_counts_binary_digits():
    steps = np.arange(1, 1024)
    digits = np.array([step.bit_count() for step in steps.tolist()])
    np.testing.assert_allclose(BinaryTree(1024).error(1.0)[:-1], np.sqrt(digits))
    assert BinaryTree(1024).error(1.0)[-1] == pytest.approx(math.sqrt(2))
    assert BinaryTree(1024, release_root=True).error(1.0)[-1] == 1.0


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("release_root", [False, True])
@pytest.mark.parametrize("steps", [1, 2, 3, 100, 1000, 1024])
def test_memory_is_one_array_a_level(tree, release_root, steps):
    factorization = tree(steps, release_root)
    stream = noise_stream(factorization, (), 1.0, np.random.default_rng(0))
    most = 0
    for _ in range(steps):
        stream.step()
        most = max(most, stream.state_arrays)
    assert most <= max(factorization.levels, 2)
    assert most >= factorization.levels - 1


# The search for the worst pattern of a tree, against all patterns, one by one


def patterns(steps: int, gap: int, found: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    yield found
    for step in range(found[-1] + gap if found else 0, steps):
        yield from patterns(steps, gap, (*found, step))


def enumerated(tree: BinaryTree | HonakerTree, gap: int) -> list[int]:
    """The largest squared norm of 0, 1, … participations at most."""
    encoder = tree.encoder()
    best = [0] * (2 + (tree.steps - 1) // gap)
    for pattern in patterns(tree.steps, gap):
        moved = int((encoder[:, list(pattern)].sum(axis=1) ** 2).sum())
        best[len(pattern)] = max(best[len(pattern)], moved)
    return [max(best[: number + 1]) for number in range(len(best))]


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("steps", [*range(1, 12), 13])
def test_every_small_case_is_what_enumeration_finds(tree, steps):
    for release_root in (False, True):
        factorization = tree(steps, release_root)
        for gap in range(1, steps + 1):
            for count, square in enumerate(enumerated(factorization, gap)):
                if count:
                    found = factorization.sensitivity(count, gap)
                    assert round(found**2) == square
                    assert found**2 >= square * (1 - 1e-16)
                    assert square <= factorization._fill(count, gap)


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("gap", [4, 5, 7, 8])
def test_sixteen_steps_are_what_enumeration_finds(tree, gap):
    factorization = tree(16, True)
    for count, square in enumerate(enumerated(factorization, gap)):
        assert not count or round(factorization.sensitivity(count, gap) ** 2) == square


def moved(tree: BinaryTree | HonakerTree, pattern: np.ndarray) -> int:
    """The squared norm for one pattern, from the numbers of the nodes that hold its steps."""
    total = 0
    for level, drawn in enumerate(tree._drawn()):
        counts = np.bincount(pattern >> level, minlength=2)
        left_alone = isinstance(tree, BinaryTree) and level < tree.levels - 1
        total += int((counts[:: 2 if left_alone else 1][:drawn] ** 2).sum())
    return total


@pytest.mark.parametrize(("count", "gap"), [(5, 1000), (100, 30), (7, 600), (4096, 1)])
def test_long_streams_lie_between_patterns_and_the_bound(count, gap):
    rng = np.random.default_rng(5)
    for tree in (BinaryTree(4095), HonakerTree(4096)):
        number, apart = tree._pattern(count, gap)
        exact = tree.sensitivity(count, gap)
        assert exact <= math.sqrt(tree._fill(number, apart)) * (1 + 1e-15)
        for _ in range(20):
            spare = tree.steps - 1 - (number - 1) * apart
            start = np.sort(rng.integers(0, spare + 1, number)) * rng.integers(0, 2)
            assert math.sqrt(moved(tree, start + apart * np.arange(number))) <= exact


def test_two_participations_are_a_closed_form():
    # Two steps next to each other share all nodes from the level of their common ancestor on.
    assert heaviest((10,), 2, 1, True) == 1 + 1 + 4 * 10
    # A whole node apart, in a tree of two levels above: they meet at the root alone.
    assert heaviest((10,), 2, 512, True) == 2 * 10 + 4


def test_what_takes_too_long_is_the_bound_and_says_so():
    long = HonakerTree(10**6)
    assert search_work(10**6, 1000, 1000) > 2e9
    assert long.sensitivity(1000, 1000) ** 2 == pytest.approx(long._fill(1000, 1000), rel=1e-12)
    assert long.work(1000, 1000, Norm.L2) < 2e9
    assert HonakerTree(4096).work(8, 512, Norm.L2) > 10 * HonakerTree(4096).work(8, 512, Norm.L1)


def test_a_fixed_period_admits_its_own_patterns_alone():
    facts = {"sigma": 1.0, "factorization": HonakerTree(16), "participations": 3}
    cyclic = ContinualGaussian(**facts, min_separation=4, cyclic=True)
    apart = ContinualGaussian(**facts, min_separation=4)
    for steps, fixed, free in (
        ([2, 6, 10], True, True),
        ([2, 10], True, True),
        ([2, 7], False, True),
        ([0, 4, 8, 12], False, False),
        ([0, 12], False, True),
        ([1, 3], False, False),
        ([], True, True),
    ):
        assert cyclic.may_take_part(steps) is fixed
        assert apart.may_take_part(steps) is free
    assert cyclic.sensitivity_factor <= apart.sensitivity_factor


# Honaker's estimator: variances, bounds and the levels that dp-accounting counts


def test_honakers_node_variances_are_the_harmonic_sums():
    """A whole tree of depth l has variance 1/(1 + 1/2 + … + 1/2^l)."""
    error = HonakerTree(64, release_root=True).error(1.0)
    for level in range(7):
        expected = 1 / sum(0.5**k for k in range(level + 1))
        assert error[(1 << level) - 1] ** 2 == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize(("count", "gap"), [(2, 4), (4, 4), (8, 2), (5, 8), (3, 1)])
def test_dense_pattern_reaches_honakers_bound_for_powers_of_two(count, gap):
    tree = HonakerTree(64, release_root=True)
    dense = np.linalg.norm(tree.encoder()[:, : count * gap : gap].sum(axis=1))
    assert tree.sensitivity(count, gap) == pytest.approx(dense, rel=1e-15)


@pytest.mark.parametrize("steps", [1, 7, 1000, 1024])
def test_dp_accounting_counts_the_same_levels(steps):
    import dp_accounting
    from dp_accounting import rdp

    orders = [2.0, 8.0, 64.0]
    accountant = rdp.RdpAccountant(orders, dp_accounting.NeighboringRelation.REPLACE_SPECIAL)
    event = dp_accounting.SingleEpochTreeAggregationDpEvent(3.0, [steps])
    accountant.compose(event)
    mu = HonakerTree(steps, release_root=True).sensitivity() / 3.0
    expected = [order * mu**2 / 2 for order in orders]
    np.testing.assert_allclose(accountant._rdp, expected, rtol=1e-12)
