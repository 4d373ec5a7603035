"""The incremental posterior against fresh solves."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
from scipy.linalg import cho_factor, cho_solve

from dpaudit.base.errors import InputError
from private_bo.gp import FiniteDomain, FinitePosterior, Kernel, Matern, SquaredExponential, Storage

STORAGES = [Storage.COVARIANCE, Storage.ROWS]
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


def by_counts(
    matrix: np.ndarray, chosen: np.ndarray, ys: np.ndarray, noise: float
) -> tuple[np.ndarray, np.ndarray]:
    """The same through the averages of repeated plays: one observation of noise λ/c a point."""
    points, place, counts = np.unique(chosen, return_inverse=True, return_counts=True)
    averages = np.bincount(place, ys) / counts
    gram = matrix[np.ix_(points, points)] + np.diag(noise / counts)
    cross = matrix[points]
    solved = np.linalg.solve(gram, np.column_stack([averages, cross]))
    variance = matrix.diagonal() - np.einsum("ij,ij->j", cross, solved[:, 1:])
    return cross.T @ solved[:, 0], variance


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("kernel", [SquaredExponential(0.2), Matern(0.2, 2.5), Matern(0.1, 0.5)])
@pytest.mark.parametrize("noise", [1.0, 1e-3])
def test_every_step_is_the_textbook_posterior(
    storage: Storage, kernel: Kernel, noise: float
) -> None:
    rng = np.random.default_rng(5)
    domain = FiniteDomain.grid(6, dimensions=2)
    matrix = domain.kernel_matrix(kernel)
    posterior = FinitePosterior.of(domain, kernel, noise, storage)
    chosen: list[int] = []
    ys: list[float] = []
    for _ in range(80):
        mean, variance, gain = refit(matrix, chosen, ys, noise)
        assert posterior.mean == pytest.approx(mean, abs=1e-9)
        assert posterior.variance == pytest.approx(variance, abs=1e-10)
        assert posterior.information_gain == pytest.approx(gain, abs=1e-9)
        chosen.append(int(rng.integers(domain.size)))
        ys.append(float(rng.normal()))
        posterior.update(chosen[-1], ys[-1])


@pytest.mark.parametrize("storage", STORAGES)
def test_the_covariance_is_that_of_all_observations_at_once(storage: Storage) -> None:
    domain, chosen = FiniteDomain.grid(9), [0, 3, 3, 8, 1]
    prior = domain.kernel_matrix(Matern(0.2, 2.5))
    posterior = FinitePosterior.of(domain, Matern(0.2, 2.5), 0.3, storage)
    np.testing.assert_allclose(posterior.covariance, prior)
    for index in chosen:
        posterior.update(index, 1.0)
    solved = np.linalg.solve(prior[np.ix_(chosen, chosen)] + 0.3 * np.eye(5), prior[chosen])
    np.testing.assert_allclose(posterior.covariance, prior - prior[:, chosen] @ solved, atol=1e-12)


@pytest.mark.parametrize("noise", [1.0, 1e-2, 1e-5])
def test_twenty_thousand_updates_do_not_drift(noise: float) -> None:
    rng = np.random.default_rng(8)
    kernel = SquaredExponential(0.2)
    # Half the plays at one point: the hardest case for repeated conditioning.
    chosen = np.where(rng.random(20_000) < 0.5, 31, rng.integers(100, size=20_000))
    ys = np.sin(5 * LINE.points[chosen, 0]) + math.sqrt(noise) * rng.normal(size=20_000)
    posterior = FinitePosterior.of(LINE, kernel, noise)
    for point, y in zip(chosen.tolist(), ys.tolist(), strict=True):
        posterior.update(point, y)
    mean, variance = by_counts(LINE.kernel_matrix(kernel), chosen, ys, noise)
    assert posterior.variance.min() >= 0.0
    assert posterior.variance == pytest.approx(variance, abs=1e-8)
    assert posterior.mean == pytest.approx(mean, abs=1e-8)


def test_the_first_of_equal_bounds_is_chosen() -> None:
    posterior = FinitePosterior.of(LINE, SquaredExponential(0.2), 1.0)
    assert posterior.upper_confidence(1.0).argmax() == 0
    assert np.array_equal(posterior.upper_confidence(3.0), np.full(100, 3.0))


@pytest.mark.parametrize("storage", STORAGES)
def test_a_copy_is_independent(storage: Storage) -> None:
    posterior = FinitePosterior.of(LINE, SquaredExponential(0.2), 1.0, storage)
    posterior.update(10, 1.0)
    before = posterior.mean.copy(), posterior.variance.copy()
    other = copy.deepcopy(posterior)
    other.update(50, 2.0)
    assert np.array_equal(posterior.mean, before[0])
    assert np.array_equal(posterior.variance, before[1])
    posterior.update(50, 2.0)
    assert np.array_equal(posterior.mean, other.mean)
    assert np.array_equal(posterior.variance, other.variance)


def test_views_are_read_only() -> None:
    posterior = FinitePosterior.of(LINE, SquaredExponential(0.2), 1.0)
    for view in (posterior.mean, posterior.variance, posterior.covariance):
        with pytest.raises(ValueError, match="read-only"):
            view[0] = 1.0


def test_large_domains_keep_rows_and_small_ones_the_covariance() -> None:
    kernel = SquaredExponential(0.2)
    large = FinitePosterior.of(FiniteDomain.grid(1025), kernel, 1.0)
    small = FinitePosterior.of(FiniteDomain.grid(1024), kernel, 1.0)
    assert type(large) is type(FinitePosterior.of(LINE, kernel, 1.0, Storage.ROWS))
    assert type(small) is type(FinitePosterior.of(LINE, kernel, 1.0, Storage.COVARIANCE))


@pytest.mark.parametrize(("index", "y"), [(-1, 0.0), (100, 0.0), (0, math.nan), (0, math.inf)])
def test_bad_observations_change_nothing(index: int, y: float) -> None:
    posterior = FinitePosterior.of(LINE, SquaredExponential(0.2), 1.0)
    with pytest.raises(InputError):
        posterior.update(index, y)
    assert posterior.information_gain == 0.0
    assert posterior.variance.min() == 1.0


def test_the_noise_variance_must_be_positive() -> None:
    with pytest.raises(InputError, match="noise_variance is 0"):
        FinitePosterior.of(LINE, SquaredExponential(0.2), 0)
