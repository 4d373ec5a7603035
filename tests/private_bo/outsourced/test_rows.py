"""The private rows: their linear algebra against numpy, and the gains of a public projection."""

from __future__ import annotations

import numpy as np

from private_bo.outsourced.problems import (
    inflate_singular_values,
    largest_l1_gain,
    public_projection,
    scale_to_norm,
    thin_svd,
)

RNG = np.random.default_rng(20200712)
ROWS = scale_to_norm(RNG.normal(size=(40, 2)))


def test_singular_values_are_inflated_in_the_same_directions():
    X = ROWS - ROWS.mean(axis=0)
    omega = 2 * np.linalg.svd(X, compute_uv=False)[-1]
    left, values, right = np.linalg.svd(inflate_singular_values(X, omega), full_matrices=False)
    expected = np.sqrt(np.linalg.svd(X, compute_uv=False) ** 2 + omega**2)
    np.testing.assert_allclose(values, expected, rtol=1e-12)
    undone = (left * np.sqrt(values**2 - omega**2)) @ right
    np.testing.assert_allclose(undone, X, atol=1e-10)


def test_rows_with_large_singular_values_are_left_alone():
    X = ROWS - ROWS.mean(axis=0)
    assert inflate_singular_values(X, np.linalg.svd(X, compute_uv=False)[-1] * 0.999) is X


def test_thin_svd_is_numpys():
    left, values, right = thin_svd(ROWS)
    np.testing.assert_allclose((left * values) @ right, ROWS, atol=1e-12)
    np.testing.assert_allclose(values, np.linalg.svd(ROWS, compute_uv=False), rtol=1e-12)


def test_l1_gain_against_a_search():
    matrix = np.random.default_rng(3).normal(size=(3, 4))
    directions = np.random.default_rng(4).normal(size=(200_000, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    found = np.abs(directions @ matrix).sum(axis=1).max()
    assert found <= largest_l1_gain(matrix) <= found * 1.001
    wide = np.random.default_rng(5).normal(size=(3, 20))
    assert np.abs(directions @ wide).sum(axis=1).max() <= largest_l1_gain(wide)


def test_projection_depends_on_the_public_seed_alone():
    assert np.array_equal(public_projection(5, 3, 7), public_projection(5, 3, 7))
    assert not np.array_equal(public_projection(5, 3, 7), public_projection(5, 3, 8))
    assert np.array_equal(public_projection(3, 3, 7), np.eye(3))
