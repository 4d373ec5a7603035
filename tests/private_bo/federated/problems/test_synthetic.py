"""A random function, and perturbed copies of it."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit.base.errors import InputError
from private_bo.federated import synthetic


class TestSynthetic:
    def test_shape_scale_and_distance(self) -> None:
        problem = synthetic(agents=5, points=200, perturbation=0.1)
        same = synthetic(agents=5, points=200, perturbation=0.0)
        assert problem.table.shape == (5, 200)
        assert (same.table == same.table[0]).all()
        assert same.table.min() == 0
        assert same.table.max() == 1
        distance = np.abs(problem.table - same.table).max(axis=1)
        assert distance == pytest.approx(np.full(5, 0.1), rel=1e-12)
        assert len(np.unique(problem.table[:, 0])) == 5

    def test_seed_and_generator_say_the_same(self) -> None:
        one, two, other = (
            synthetic(agents=2, points=50, seed=seed) for seed in (4, np.random.default_rng(4), 5)
        )
        assert np.array_equal(one.table, two.table)
        assert not np.array_equal(one.table, other.table)

    def test_draws_have_the_covariance_of_the_kernel(self) -> None:
        """Increments of f over a tenth of a length scale, against 2 (1 - k); scale-free ratio."""
        length, step = 0.1, 1 / 999
        ratios = []
        for seed in range(20):
            f = synthetic(agents=1, seed=seed, length_scale=length, perturbation=0.0).table[0]
            near = np.mean((f[10:] - f[:-10]) ** 2)
            far = np.mean((f[20:] - f[:-20]) ** 2)
            ratios.append(far / near)
        expected = np.expm1(-((20 * step / length) ** 2) / 2) / np.expm1(
            -((10 * step / length) ** 2) / 2
        )
        assert np.mean(ratios) == pytest.approx(expected, rel=0.01)

    @pytest.mark.parametrize(
        ("field", "value"),
        [("agents", 0), ("points", 1), ("points", 5000), ("length_scale", 0.0),
         ("perturbation", -1.0), ("noise", -0.1), ("seed", -1), ("noise", float("nan"))],
    )  # fmt: skip
    def test_wrong_arguments(self, field: str, value: float) -> None:
        with pytest.raises(InputError, match=field):
            synthetic(**({"agents": 2, "points": 20} | {field: value}))
