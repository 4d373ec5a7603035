"""Regions against the definition of a projection, and against their own lattice."""

import numpy as np
import pytest

from dpaudit.base.errors import InputError
from private_bo.gp import Ball, Box

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
