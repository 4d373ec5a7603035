"""Algorithm 1 against a slow program written line by line from the pseudocode."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scripted import ACCURACY, DELTA, LAMBDA, constants, nystrom, script

from private_bo.local.policies import (
    FeatureTruncation,
    LaplaceFeatureTruncation,
    Users,
    adaptively_truncated_gp_ucb,
    clear_channel,
)


def literal_ata(answer: Callable[[int], float], steps: int, b: Callable, beta: Callable) -> list:
    history: list[int] = []
    y: list[float] = []
    thresholds: list[float] = []
    mu, sigma = np.zeros(9), np.ones(9)
    m = 0
    for t in range(1, steps + 1):
        x = int(np.argmax(mu + beta(t - 1, m) * sigma))
        history.append(x)
        y.append(answer(x))
        phi, m = nystrom(history)
        thresholds.append(b(t, m))
        Phi = np.array([phi[s] for s in history])
        V = Phi.T @ Phi + LAMBDA * np.eye(m)
        root = np.linalg.inv(np.linalg.cholesky(V))  # root.T @ root = V⁻¹
        U = root @ Phi.T
        r = np.zeros(m)
        for i in range(m):
            for tau in range(t):
                if abs(U[i, tau] * y[tau]) <= thresholds[tau]:
                    r[i] += U[i, tau] * y[tau]
        theta = root.T @ r
        mu = phi @ theta
        inverse = np.linalg.inv(V)
        sigma = np.sqrt([1 - p @ p + LAMBDA * p @ inverse @ p for p in phi])
    return history


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("multiplier", [1.0, 0.05])
def test_ata_follows_algorithm_1(seed: int, multiplier: float) -> None:
    steps, scale = 40, 1.5
    problem, answer = script(steps, seed)
    v = 1.0 + 1.0 + 8.0 * 4.0 / (4.0 / scale) ** 2  # ε = 2(B+R)/ℒ
    public = constants(steps, v=v, laplace_scale=scale, width_multiplier=multiplier)
    users = Users(problem, clear_channel, np.random.default_rng(0))
    schedule = LaplaceFeatureTruncation(public)
    run = adaptively_truncated_gp_ucb(users, schedule, np.random.default_rng(1))

    def beta(t: int, m: int) -> float:
        width = 1.0 + 1.0 / math.sqrt(1 - ACCURACY)
        if m:
            width += 4 * math.sqrt(math.log(4 * m * steps / DELTA) * v * m / LAMBDA)
        return multiplier * width

    literal = literal_ata(
        answer, steps, lambda t, m: math.sqrt(v / math.log(4 * m * steps / DELTA)), beta
    )
    assert run.choices.tolist() == literal
    assert len(set(literal)) > 1


def test_ata_knows_the_round() -> None:
    """With α < 1 thresholds and widths grow with t, so that a shifted index shows."""
    steps, shifted = 30, 0
    for seed in range(6):
        problem, answer = script(steps, seed)
        schedule = FeatureTruncation(constants(steps, moment=0.1, width_multiplier=0.1))
        users = Users(problem, clear_channel, np.random.default_rng(0))
        run = adaptively_truncated_gp_ucb(users, schedule, np.random.default_rng(1))
        b, beta = schedule.threshold, schedule.width
        assert run.choices.tolist() == literal_ata(answer, steps, b, beta)
        _, again = script(steps, seed)
        late = literal_ata(again, steps, b, lambda t, m, beta=beta: beta(t + 1, m))
        shifted += run.choices.tolist() != late
    assert shifted > 0


def test_ata_truncates_in_the_scripted_runs() -> None:
    """Without truncation the same script gives other choices, so that the test above sees it."""
    steps = 40
    runs = []
    for b in (lambda t, m: 0.5, lambda t, m: math.inf):
        _, answer = script(steps, 0)
        runs.append(literal_ata(answer, steps, b, lambda t, m: 0.1))
    assert runs[0] != runs[1]
