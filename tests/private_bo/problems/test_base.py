"""What all bandit problems have in common."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit.base.errors import InputError
from private_bo.gp import Matern
from private_bo.problems import (
    BanditProblem,
    StudentNoise,
    UniformNoise,
    neighbourhood_prices,
    synthetic,
)


def make(noise: UniformNoise | StudentNoise, seed: int = 0) -> BanditProblem:
    return synthetic(Matern(0.2, 2.5), noise, np.random.default_rng(seed))


def test_regret_is_cumulative() -> None:
    problem = make(UniformNoise())
    worst = int(problem.f.argmin())
    gap = problem.f.max() - problem.f.min()
    regret = problem.regret([problem.best, worst, problem.best, worst])
    assert regret == pytest.approx([0.0, gap, gap, 2 * gap])


@pytest.mark.parametrize(
    "build",
    [
        lambda: UniformNoise(0.0),
        lambda: StudentNoise(2.0),
        lambda: make(UniformNoise()).respond(100, np.random.default_rng(0)),
        lambda: make(UniformNoise()).respond(-1, np.random.default_rng(0)),
        lambda: neighbourhood_prices(real=True, answers_per_user=0),
        lambda: neighbourhood_prices(answers_per_user=2),
    ],
)
def test_bad_problems_are_refused(build: object) -> None:
    with pytest.raises(InputError):
        build()
