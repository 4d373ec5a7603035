"""Algorithm 3 of Zhou & Tan 2021: medians of means of regression estimates."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from private_bo.gp import NystromEmbedder, NystromPosterior
from private_bo.gp.types import Array
from private_bo.local.schedules import Constants
from private_bo.local.users import Outcome, Users


class EpochSchedule(Protocol):
    """Parameters that follow from the number of epochs n and of features m_n."""

    @property
    def constants(self) -> Constants:
        """The public constants T and λ."""

    @property
    def oversampling(self) -> float:
        """The q of the Nyström embedding."""

    def width(self, n: int, m: int) -> float:
        """β_{n+1}, for n >= 0."""


def median_of_means_gp_ucb(
    users: Users, schedule: EpochSchedule, rng: np.random.Generator
) -> Outcome:
    """Play N = ⌊T/k⌋ epochs of k rounds each (line 3); ``users.plays`` is k.

    The k right-hand sides of line 10 are kept as sums of the responses by point, and all k
    estimates share one Cholesky factor Ṽ = L Lᵀ: with z_j = L⁻¹ Φ̃ᵀ Y_j they are θ_j = L⁻ᵀ z_j, so
    that ‖θ_j - θ_s‖_Ṽ = ‖z_j - z_s‖ and φ̃(x)ᵀ θ_j = (L⁻¹ φ̃(x))ᵀ z_j.

    Args:
        users: whom to ask.
        schedule: T, λ, oversampling and widths.
        rng: source of the dictionaries, which have no privacy role.
    """
    regularisation = schedule.constants.regularisation
    domain, kernel = users.problem.domain, users.problem.kernel
    embedder = NystromEmbedder(domain, kernel)
    counts = np.zeros(domain.size, dtype=np.intp)
    sums = np.zeros((domain.size, users.plays))
    m, mean, variance = 0, np.zeros(domain.size), kernel.diagonal(domain.points)  # line 2
    for n in range(1, schedule.constants.horizon // users.plays + 1):  # line 4
        beta = schedule.width(n - 1, m)
        x = users.choose(mean + beta * np.sqrt(variance))  # line 5
        sums[x] += [users.ask(x) for _ in range(users.plays)]  # line 6
        counts[x] += 1
        embedding = embedder.sample(counts, variance, schedule.oversampling, rng)  # line 7
        m = embedding.dimension  # line 8
        posterior = NystromPosterior.fit(embedding, counts, regularisation)  # line 9
        z = posterior.whitened @ sums  # line 10
        central = central_estimate(z)  # lines 11-12
        mean = posterior.whitened.T @ z[:, central]  # line 13
        variance = posterior.variance  # line 14
    return users.outcome(mean)


def central_estimate(z: Array) -> int:
    """k* = argmin_j median_{s≠j} ‖z_j - z_s‖ of the columns of ``z`` (m, k), the first of equals.

    >>> central_estimate(np.array([[0.0, 1.0, 1.5, 90.0]]))
    1
    """
    from scipy.spatial.distance import cdist

    k = z.shape[1]
    if k == 1 or z.shape[0] == 0:
        return 0
    distances = cdist(z.T, z.T)
    others = distances[~np.eye(k, dtype=np.bool_)].reshape(k, k - 1)
    return int(np.median(others, axis=1).argmin())
