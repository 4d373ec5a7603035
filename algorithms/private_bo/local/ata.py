"""Algorithm 1 of Zhou & Tan 2021: adaptive truncation in the feature space."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from private_bo.gp import NystromEmbedder, NystromPosterior
from private_bo.local.schedules import Constants
from private_bo.local.users import Outcome, Users


class FeatureTruncationSchedule(Protocol):
    """Parameters that follow from the number of responses t and of features m_t."""

    @property
    def constants(self) -> Constants:
        """The public constants T and λ."""

    @property
    def oversampling(self) -> float:
        """The q of the Nyström embedding."""

    def threshold(self, t: int, m: int) -> float:
        """b_t, for t >= 1: larger terms u_{i,t} y_t count as zero."""

    def width(self, t: int, m: int) -> float:
        """β_{t+1}, for t >= 0."""


def adaptively_truncated_gp_ucb(
    users: Users, schedule: FeatureTruncationSchedule, rng: np.random.Generator
) -> Outcome:
    """Play T rounds; every round truncates the whole history anew, feature by feature.

    Points repeat, so the columns of Ṽ_t^{-1/2} Φ̃_tᵀ are those of the domain's n points, gathered
    by the history. For Ṽ^{-1/2} stands L⁻¹ with Ṽ = L Lᵀ: see
    :class:`~private_bo.gp.NystromPosterior`.

    Args:
        users: whom to ask.
        schedule: T, λ, oversampling, thresholds and widths.
        rng: source of the dictionaries, which have no privacy role.
    """
    steps, regularisation = schedule.constants.horizon, schedule.constants.regularisation
    domain, kernel = users.problem.domain, users.problem.kernel
    embedder = NystromEmbedder(domain, kernel)
    counts = np.zeros(domain.size, dtype=np.intp)
    chosen = np.empty(steps, dtype=np.intp)
    y, b = np.empty(steps), np.empty(steps)
    m, mean, variance = 0, np.zeros(domain.size), kernel.diagonal(domain.points)  # line 2
    for t in range(1, steps + 1):
        beta = schedule.width(t - 1, m)
        x = users.choose(mean + beta * np.sqrt(variance))  # line 4
        chosen[t - 1], y[t - 1] = x, users.ask(x)  # line 5
        counts[x] += 1
        embedding = embedder.sample(counts, variance, schedule.oversampling, rng)
        m = embedding.dimension  # line 6
        posterior = NystromPosterior.fit(embedding, counts, regularisation)  # line 7
        b[t - 1] = schedule.threshold(t, m)
        terms = posterior.whitened[:, chosen[:t]] * y[:t]  # line 8: u_{i,τ} y_τ, (m, t)
        terms[np.abs(terms) > b[:t]] = 0.0
        truncated = terms.sum(axis=1)  # line 9
        mean = posterior.whitened.T @ truncated  # lines 10-11
        variance = posterior.variance  # line 12
    return users.outcome(mean)
