"""What all bandit problems have in common."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpaudit.base.errors import InputError
from private_bo.gp import FiniteDomain, Matern, SquaredExponential
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


def test_synthetic_problem_of_the_paper() -> None:
    problem = make(UniformNoise())
    assert problem.domain == FiniteDomain.grid(100)
    assert np.abs(problem.f).max() == 1.0
    assert (problem.B, problem.R, problem.v, problem.c) == (1.0, 1.0, 2.0, 1.0)
    assert problem.bounds_are_public
    assert problem.f[problem.best] == problem.f.max()
    assert np.array_equal(make(UniformNoise()).f, problem.f)
    assert not np.array_equal(make(UniformNoise(), seed=1).f, problem.f)


def test_synthetic_coefficients_are_uniform() -> None:
    """f before scaling is K a: undo the kernel and look at the coefficients' shape."""
    domain = FiniteDomain(np.arange(400.0)[:, np.newaxis])
    problem = synthetic(
        SquaredExponential(0.01), UniformNoise(), np.random.default_rng(2), domain=domain
    )
    assert problem.f.min() < -0.98
    assert abs(np.median(problem.f)) < 0.2
    assert np.mean(np.abs(problem.f) < 0.5) == pytest.approx(0.5, abs=0.13)


@pytest.mark.parametrize("noise", [UniformNoise(0.5), StudentNoise(5.0)])
def test_responses_have_the_mean_and_noise_they_declare(noise: UniformNoise | StudentNoise) -> None:
    problem = make(noise)
    rng = np.random.default_rng(9)
    answers = [problem.respond(17, rng) for _ in range(20_000)]
    errors = np.array([answer.value for answer in answers]) - problem.f[17]
    # Six standard errors of the mean: a false alarm has probability 2e-9.
    assert abs(errors.mean()) < 6 * math.sqrt(noise.second_moment / 20_000)
    assert np.abs(errors).max() <= problem.R + 1e-12
    assert len({answer.user for answer in answers}) == 20_000
    truth = 0.25 / 3 if isinstance(noise, UniformNoise) else 5 / 3
    assert errors.var() == pytest.approx(truth, rel=0.15)
    assert errors.var() <= problem.c * 1.15
