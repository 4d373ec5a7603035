"""A random function, and for every agent a perturbed copy of it."""

from __future__ import annotations

import numpy as np

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from private_bo.federated.problems.base import FederatedProblem, unit_grid
from private_bo.gp import SquaredExponential
from private_bo.gp.types import Array
from private_bo.threads import single_threaded

_JITTER = 1e-9  # relative to the variance 1; far below the noise of any observation
_MOST_POINTS = 4096


def synthetic(
    agents: int = 200,
    *,
    seed: int | np.random.Generator = 0,
    points: int = 1000,
    length_scale: float = 0.03,
    perturbation: float = 0.05,
    noise: float = 0.01,
) -> FederatedProblem:
    """A function drawn from a Gaussian process, and for every agent a perturbed copy of it.

    f is drawn with the squared-exponential kernel on a public grid of [0, 1] and scaled to [0, 1].
    Agent n has f + g_n, where g_n is an independent draw with the same kernel, scaled to
    max |g_n| = ``perturbation``: so the paper's distance d_n to f is known, and every objective is
    as smooth as f. The main text of the paper leaves grid, length scale and sizes open; those
    here are this library's choice.

    Args:
        agents: N.
        seed: of the functions, or a generator to draw them from.
        points: G >= 2, at most 4096.
        length_scale: of the kernel.
        perturbation: max |g_n|; 0 gives all agents the same function.
        noise: standard deviation of an observation.

    Raises:
        InputError: if an argument is out of range.

    >>> problem = synthetic(agents=3, points=100)
    >>> problem.agents, problem.domain.shape
    (3, (100, 1))
    """
    count = validate.integer_at_least(1, agents=agents)
    if validate.integer_at_least(2, points=points) > _MOST_POINTS:
        raise InputError(f"points is {points}; it must be at most {_MOST_POINTS}.")
    size = validate.non_negative(perturbation=perturbation)
    if not isinstance(seed, np.random.Generator):
        seed = np.random.default_rng(validate.integer_at_least(0, seed=seed))
    domain = unit_grid(points)
    draws = _draws(domain, length_scale, count + 1, seed)
    shared = draws[0] - draws[0].min()
    shared /= shared.max()
    own = draws[1:] * (size / np.abs(draws[1:]).max(axis=1, keepdims=True))
    return FederatedProblem.tabled("synthetic", domain, shared + own, noise)


def _draws(domain: Array, length_scale: float, count: int, rng: np.random.Generator) -> Array:
    """Independent draws of a Gaussian process on the grid, (count, G)."""
    covariance = SquaredExponential(length_scale)(domain, domain)
    covariance[np.diag_indices_from(covariance)] += _JITTER
    with single_threaded():
        root = np.linalg.cholesky(covariance)
        return np.asarray(rng.standard_normal((count, len(domain))) @ root.T)
