from __future__ import annotations

import math

import numpy as np
import pytest

from dpaudit.mechanisms import BinaryTree, HonakerTree, Norm

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
    stream = factorization.sampler((), 1.0, np.random.default_rng(0))
    most = 0
    for _ in range(steps):
        stream.step()
        most = max(most, stream.state_arrays)
    assert most <= max(factorization.levels, 2)
    assert most >= factorization.levels - 1
