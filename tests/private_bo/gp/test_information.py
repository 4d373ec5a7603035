"""Bounds of the maximum information gain."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.linalg import cho_factor, cho_solve

from dpaudit.base.errors import InputError
from private_bo.gp import (
    FiniteDomain,
    FinitePosterior,
    Matern,
    SquaredExponential,
    greedy_information_gain,
)

LINE = FiniteDomain.grid(100)


def refit(
    matrix: np.ndarray, chosen: list[int], ys: list[float], noise: float
) -> tuple[np.ndarray, np.ndarray, float]:
    """Equations (2) and (3) as written, and ½ ln det(I + K_t/λ)."""
    if not chosen:
        return np.zeros(len(matrix)), matrix.diagonal().copy(), 0.0
    gram = matrix[np.ix_(chosen, chosen)] + noise * np.eye(len(chosen))
    factor = cho_factor(gram, lower=True)
    cross = matrix[chosen]
    mean = cross.T @ cho_solve(factor, np.array(ys))
    variance = matrix.diagonal() - np.einsum("ij,ij->j", cross, cho_solve(factor, cross))
    gain = np.log(factor[0].diagonal()).sum() - 0.5 * len(chosen) * math.log(noise)
    return mean, variance, float(gain)


def test_information_gain_is_bracketed_by_exhaustion() -> None:
    """Every multiset of t of five points is tried."""
    from itertools import combinations_with_replacement

    domain, kernel, noise = FiniteDomain.grid(5), Matern(0.4, 1.5), 0.1
    matrix = domain.kernel_matrix(kernel)
    bounds = greedy_information_gain(domain, kernel, noise, steps=5)
    for size in range(1, 6):
        best = max(
            refit(matrix, list(points), [0.0] * size, noise)[2]
            for points in combinations_with_replacement(range(5), size)
        )
        assert bounds.greedy[size - 1] <= best + 1e-12
        assert best <= bounds.upper[size - 1] + 1e-12
        assert bounds.upper[size - 1] <= bounds.greedy[size - 1] * math.e / (math.e - 1) + 1e-12


def test_greedy_gain_is_the_realised_gain_of_pure_exploration() -> None:
    kernel = SquaredExponential(0.2)
    bounds = greedy_information_gain(LINE, kernel, 1.0, steps=200)
    posterior = FinitePosterior.of(LINE, kernel, 1.0)
    for _ in range(200):
        posterior.update(int(posterior.variance.argmax()), 0.0)
    assert bounds.greedy[-1] == pytest.approx(posterior.information_gain, rel=1e-13)
    assert np.all(np.diff(bounds.upper) > 0.0)
    with pytest.raises(InputError, match="steps is 0"):
        greedy_information_gain(LINE, kernel, 1.0, steps=0)
