"""Kernels against mpmath, and the laws of a covariance."""

from __future__ import annotations

import pickle

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dpaudit.base.errors import InputError
from private_bo.gp import ARD, FiniteDomain, Kernel, Matern, SquaredExponential, TableKernel

TABLE = np.array([[1.0, 0.3, -0.2], [0.3, 0.9, 0.0], [-0.2, 0.0, 1.0]])


def matern_truth(distance: float, length_scale: float, nu: float) -> float:
    with mpmath.workdps(50):
        r = mpmath.sqrt(2 * mpmath.mpf(nu)) * mpmath.mpf(distance) / mpmath.mpf(length_scale)
        value = mpmath.mpf(2) ** (1 - mpmath.mpf(nu)) / mpmath.gamma(nu)
        return float(value * r**nu * mpmath.besselk(nu, r))


@pytest.mark.parametrize("nu", [0.05, 0.5, 0.7, 1.0, 1.2, 1.5, 2.5, 3.0, 10.0, 63.5, 100.0])
@pytest.mark.parametrize("distance", [1e-9, 1e-3, 0.004, 0.1, 1.0, 7.0, 40.0])
def test_matern_is_the_bessel_formula(nu: float, distance: float) -> None:
    value = Matern(0.7, nu)(np.zeros((1, 1)), np.array([[distance]]))[0, 0]
    assert value == pytest.approx(matern_truth(distance, 0.7, nu), rel=2e-11, abs=1e-300)


def test_squared_exponential_in_two_dimensions() -> None:
    value = SquaredExponential(2.0)(np.array([[0.0, 1.0]]), np.array([[3.0, 5.0]]))
    assert value == pytest.approx(np.array([[np.exp(-25 / 8)]]), rel=1e-14)


def test_nearby_points_far_from_the_origin_keep_their_digits() -> None:
    X = np.array([[1e6, 1e6], [1e6 + 1e-3, 1e6]])
    step = X[1, 0] - X[0, 0]
    value = 1.0 - SquaredExponential(1e-2)(X, X)[0, 1]
    assert value == pytest.approx(-np.expm1(-(step**2) / 2e-4), rel=1e-12)


KERNELS = st.one_of(
    st.builds(SquaredExponential, st.floats(0.05, 5.0)),
    st.builds(Matern, st.floats(0.05, 5.0), st.sampled_from([0.5, 1.5, 2.5])),
    st.builds(Matern, st.floats(0.05, 5.0), st.floats(0.1, 60.0)),
)


@settings(max_examples=60, derandomize=True, deadline=None)
@given(KERNELS, arrays(np.float64, (6, 2), elements=st.floats(-3.0, 3.0)))
def test_stationary_kernels_are_covariances_of_unit_variance(kernel: Kernel, X: np.ndarray) -> None:
    matrix = kernel(X, X)
    assert np.array_equal(matrix, matrix.T)
    assert np.array_equal(matrix.diagonal(), np.ones(6))
    assert np.array_equal(kernel.diagonal(X), np.ones(6))
    assert matrix.max() <= 1.0
    assert np.linalg.eigvalsh(matrix)[0] > -1e-10


def test_table_kernel_looks_its_rows_up() -> None:
    kernel = TableKernel(TABLE)
    domain = FiniteDomain.indices(3)
    assert np.array_equal(domain.kernel_matrix(kernel), TABLE)
    assert np.array_equal(kernel.diagonal(domain.points), [1.0, 0.9, 1.0])
    assert kernel(np.array([[2.0]]), np.array([[0.0]])) == -0.2


def test_table_kernel_is_a_read_only_value() -> None:
    source = TABLE.copy()
    kernel = TableKernel(source)
    source[0, 0] = 0.5
    assert kernel == TableKernel(TABLE)
    assert hash(kernel) == hash(TableKernel(TABLE))
    assert kernel != TableKernel(np.eye(3))
    assert kernel != "table"
    assert pickle.loads(pickle.dumps(kernel)) == kernel
    with pytest.raises(ValueError, match="read-only"):
        kernel.table[0, 0] = 0.0


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        (np.ones((2, 3)), "square"),
        (np.empty((0, 0)), "square"),
        (np.array([[1.0, np.nan], [np.nan, 1.0]]), "NaN"),
        (np.array([[1.0, 0.5], [0.4, 1.0]]), "symmetric"),
        (np.array([[2.0, 0.0], [0.0, 1.0]]), "at most 1"),
        (np.array([[0.5, 0.9], [0.9, 0.5]]), "semi-definite"),
    ],
)
def test_table_kernel_refuses_what_is_no_covariance(table: np.ndarray, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        TableKernel(table)


@pytest.mark.parametrize("X", [[[3.0]], [[-1.0]], [[0.5]], [[0.0, 1.0]], [0.0]])
def test_table_kernel_refuses_points_that_are_no_rows(X: list) -> None:
    with pytest.raises(InputError, match=r"X (must|has)"):
        TableKernel(TABLE)(np.array(X), np.zeros((1, 1)))


@pytest.mark.parametrize(
    "build",
    [
        lambda: SquaredExponential(0.0),
        lambda: Matern(-1.0, 2.5),
        lambda: Matern(1.0, 0.0),
        lambda: Matern(1.0, 101.0),
        lambda: SquaredExponential(1.0)(np.zeros((1, 2)), np.zeros((1, 3))),
        lambda: SquaredExponential(1.0)(np.zeros(2), np.zeros((1, 1))),
        lambda: SquaredExponential(1.0).diagonal(np.array([[np.inf]])),
    ],
)
def test_kernels_refuse_bad_input(build: object) -> None:
    with pytest.raises(InputError):
        build()


def test_length_scales_of_each_coordinate() -> None:
    kernel = ARD(SquaredExponential(1.0), [0.5, 4.0])
    value = kernel(np.array([[0.0, 1.0]]), np.array([[1.0, 3.0]]))
    assert value == pytest.approx(np.array([[np.exp(-(4 + 0.25) / 2)]]), rel=1e-14)
    assert kernel == ARD(SquaredExponential(1.0), (0.5, 4.0))
    assert hash(kernel) == hash(ARD(SquaredExponential(1.0), (0.5, 4.0)))
    assert kernel.diagonal(np.zeros((3, 2))).tolist() == [1, 1, 1]
    with pytest.raises(InputError, match="of dimension 3; they must be of 2"):
        kernel(np.zeros((1, 3)), np.zeros((1, 3)))
    with pytest.raises(InputError, match="length_scales is 0"):
        ARD(SquaredExponential(1.0), (0.5, 0.0))
