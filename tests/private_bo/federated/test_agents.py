import numpy as np
import pytest
from scipy.stats import multivariate_normal

from private_bo.federated import AgentModel
from private_bo.federated.dp_fts_de import Federation
from private_bo.federated.draws import kernel_root, log_likelihoods
from private_bo.federated.problems import unit_grid
from private_bo.gp import SquaredExponential


def around(grid: np.ndarray, scale: float, variance: float, refit: int | None) -> AgentModel:
    setup = Federation(
        agents=1, regions=1, initial=4, own_scale=scale, noise_variance=variance, refit_every=refit
    )
    return AgentModel(setup, grid)


def under(process: AgentModel, points: np.ndarray, y: np.ndarray) -> np.ndarray:
    return log_likelihoods(points, y, np.array(process.scales), np.array(process.variances))


@pytest.mark.parametrize(("dimension", "scale"), [(1, 0.03), (2, 0.2), (3, 0.5)])
def test_the_root_reproduces_the_kernel_on_the_grid(dimension: int, scale: float) -> None:
    grid = unit_grid({1: 200, 2: 15, 3: 6}[dimension], dimension)
    root = kernel_root(SquaredExponential(scale), grid)
    assert root.shape[1] < len(grid)
    assert np.abs(root @ root.T - SquaredExponential(scale)(grid, grid)).max() <= 1e-6


def test_the_root_of_a_kernel_without_structure_is_whole() -> None:
    grid = unit_grid(20)
    root = kernel_root(SquaredExponential(1e-4), grid)
    assert root.shape == (20, 20)
    assert np.allclose(root @ root.T, np.eye(20))


@pytest.mark.parametrize("dimension", [1, 2])
def test_likelihoods_are_those_of_the_normal_law(dimension: int) -> None:
    rng = np.random.default_rng(1)
    points, y = rng.random((12, dimension)), rng.normal(size=12)
    process = around(np.zeros((1, dimension)), 0.2, 0.05, refit=5)
    found = under(process, points, y) - 6 * np.log(2 * np.pi)
    assert found.shape == (5, 3)
    for (i, j), value in np.ndenumerate(found):
        gram = SquaredExponential(process.scales[i])(points, points)
        law = multivariate_normal(cov=gram + process.variances[j] * np.eye(12))
        assert value == pytest.approx(law.logpdf(y), rel=1e-9)
    best = np.unravel_index(found.argmax(), found.shape)
    assert process.likeliest(points, y) == best


@pytest.mark.parametrize(("scale", "variance"), [(0.05, 0.005), (0.1, 0.05), (0.4, 0.0005)])
def test_the_likeliest_is_what_the_data_come_from(scale: float, variance: float) -> None:
    """150 values of a candidate's own law, stated as 0.2 and 0.05."""
    rng = np.random.default_rng(2)
    points = rng.random((150, 2))
    gram = SquaredExponential(scale)(points, points) + variance * np.eye(150)
    y = np.linalg.cholesky(gram) @ rng.normal(size=150)
    process = around(points, 0.2, 0.05, refit=5)
    i, j = process.likeliest(points, y)
    assert (process.scales[i], process.variances[j]) == (
        pytest.approx(scale), pytest.approx(variance),
    )  # fmt: skip


def test_repeated_points_and_constant_values_have_a_likelihood() -> None:
    process = around(np.zeros((1, 1)), 0.2, 1e-6, refit=1)
    for y in (np.zeros(70), np.full(70, 1e6)):
        assert np.isfinite(under(process, np.zeros((70, 1)), y)).all()


def test_without_refits_there_is_one_candidate() -> None:
    process = around(unit_grid(4), 0.2, 0.05, refit=None)
    assert (process.scales, process.variances) == ((0.2,), (0.05,))
    assert [process.fitted_on(seen) for seen in (4, 9, 30)] == [0, 0, 0]
    root = process.root(0)
    assert root is process.root(0)
    assert np.allclose(root @ root.T, SquaredExponential(0.2)(unit_grid(4), unit_grid(4)))
