"""Finite domains."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from dpaudit.base.errors import InputError
from private_bo.gp import Ball, Box, FiniteDomain, SquaredExponential


def test_grid_of_the_paper() -> None:
    points = FiniteDomain.grid(100).points
    assert points.shape == (100, 1)
    assert points[[0, 28, 99], 0].tolist() == [0.01, 0.29, 1.0]


def test_grid_has_every_combination_once() -> None:
    domain = FiniteDomain.grid(3, dimensions=3)
    assert domain.size == 27
    assert domain.points.shape == (27, 3)
    assert len({tuple(point) for point in domain.points}) == 27


def test_domains_compare_by_content_and_cannot_be_changed() -> None:
    source = np.array([[0.0, 1.0], [2.0, 3.0]])
    domain = FiniteDomain(source)
    source[0, 0] = 9.0
    same = FiniteDomain(np.array([[0.0, 1.0], [2.0, 3.0]]))
    assert domain == same
    assert hash(domain) == hash(same)
    assert domain != FiniteDomain(source)
    assert pickle.loads(pickle.dumps(domain)) == domain
    with pytest.raises(ValueError, match="read-only"):
        domain.points[0, 0] = 1.0


def test_kernel_matrix_is_kept_and_read_only() -> None:
    domain = FiniteDomain.grid(5)
    matrix = domain.kernel_matrix(SquaredExponential(0.2))
    assert domain.kernel_matrix(SquaredExponential(0.2)) is matrix
    assert domain.kernel_matrix(SquaredExponential(0.3)) is not matrix
    with pytest.raises(ValueError, match="read-only"):
        matrix[0, 0] = 0.0


@pytest.mark.parametrize("size", [20, 1100])
def test_kernel_columns_are_columns_of_the_matrix(size: int) -> None:
    kernel = SquaredExponential(0.2)
    domain = FiniteDomain.grid(size)
    columns = domain.kernel_columns(kernel, [7, 3])
    assert np.array_equal(columns, kernel(domain.points, domain.points)[:, [7, 3]])


@pytest.mark.parametrize(
    "build",
    [
        lambda: FiniteDomain(np.empty((0, 2))),
        lambda: FiniteDomain(np.zeros(3)),
        lambda: FiniteDomain(np.array([[np.nan]])),
        lambda: FiniteDomain.grid(0),
        lambda: FiniteDomain.grid(2, dimensions=0),
        lambda: FiniteDomain.indices(0),
    ],
)
def test_domains_refuse_bad_input(build: object) -> None:
    with pytest.raises(InputError):
        build()


REGIONS = [Ball(2.0, 2), Ball(0.5, 3), Box((0.0, 1.0), 1), Box((-1.0, 3.0), 2)]


@pytest.mark.parametrize("region", REGIONS, ids=repr)
def test_the_projection_is_the_nearest_point(region):
    rng = np.random.default_rng(0)
    outside = rng.normal(size=(50, region.dimensions)) * 3 * region.diameter
    inside = region.sample(200, rng)
    nearest = region.project(outside)
    np.testing.assert_allclose(region.project(inside), inside, atol=1e-12)
    np.testing.assert_allclose(region.project(nearest), nearest, atol=1e-12)
    away = np.linalg.norm(outside - nearest, axis=1)
    others = np.linalg.norm(outside[:, None] - inside, axis=2).min(axis=1)
    assert (away <= others + 1e-12).all()


@pytest.mark.parametrize("region", REGIONS, ids=repr)
def test_samples_and_lattice_lie_within_bounds_and_diameter(region):
    low, high = region.bounds.T
    for points in (region.sample(500, np.random.default_rng(1)), region.lattice(0.25)):
        assert ((low - 1e-12 <= points) & (points <= high + 1e-12)).all()
        apart = np.linalg.norm(points[:, None] - points, axis=2).max()
        assert apart <= region.diameter + 1e-9


def test_a_margin_adds_what_is_near():
    box = Box((0.0, 1.0), 2)
    wide = box.lattice(0.25, margin=0.5)
    away = np.linalg.norm(box.project(wide) - wide, axis=1)
    assert away.max() <= 0.5 + 1e-9
    assert not (away > 0.51).any()
    assert (away > 0).any()


def test_bad_regions():
    for make in (lambda: Ball(0.0), lambda: Ball(1.0, 0), lambda: Box((1.0, 1.0))):
        with pytest.raises(InputError):
            make()
