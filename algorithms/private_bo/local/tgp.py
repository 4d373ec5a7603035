"""Algorithm 2 of Zhou & Tan 2021, and GP-UCB, which is the same without truncation."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from private_bo.gp import FinitePosterior
from private_bo.local.schedules import Constants
from private_bo.local.users import Outcome, Users


class TruncationSchedule(Protocol):
    """Parameters that follow from the number of responses t."""

    @property
    def constants(self) -> Constants:
        """The public constants T and λ."""

    def threshold(self, t: int) -> float:
        """b_t, for t >= 1: larger responses count as zero."""

    def width(self, t: int, gain: float) -> float:
        """β_{t+1}, for t >= 0 responses with information gain γ_t."""


def truncated_gp_ucb(
    users: Users, schedule: TruncationSchedule, rng: np.random.Generator
) -> Outcome:
    """Play T rounds on the exact posterior; each response is truncated once, on arrival.

    γ_t is the realised gain ½ ln det(I + K_t/λ), which the proof needs and which is at most the
    maximum over all choices of t points. Lines 9-10 of the text write μ̂, σ̂ for the μ̃, σ of line 6.

    Args:
        users: whom to ask.
        schedule: T, λ, thresholds and widths.
        rng: not used: nothing is drawn.
    """
    problem, public = users.problem, schedule.constants
    posterior = FinitePosterior.of(problem.domain, problem.kernel, public.regularisation)
    for t in range(1, public.horizon + 1):
        beta = schedule.width(t - 1, posterior.information_gain)  # lines 4-5
        x = users.choose(posterior.upper_confidence(beta))  # line 6
        response = users.ask(x)  # line 7
        kept = response if abs(response) <= schedule.threshold(t) else 0.0  # line 8
        posterior.update(x, kept)  # lines 9-10
    return users.outcome(posterior.mean)
