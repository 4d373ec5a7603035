"""Algorithm 2 against a slow program written line by line from the pseudocode."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scripted import DELTA, LAMBDA, K, constants, script

from private_bo.local.policies import LaplaceTruncation, Users, clear_channel, truncated_gp_ucb


def literal_tgp(answer: Callable[[int], float], steps: int, b: Callable, beta: Callable) -> list:
    history: list[int] = []
    y: list[float] = []
    mu, sigma, gain = np.zeros(9), np.ones(9), 0.0
    for t in range(1, steps + 1):
        x = int(np.argmax(mu + beta(t - 1, gain) * sigma))
        response = answer(x)
        history.append(x)
        y.append(response if abs(response) <= b(t) else 0.0)
        gram = K[np.ix_(history, history)]
        solved = np.linalg.solve(gram + LAMBDA * np.eye(t), K[history, :])
        mu = solved.T @ np.array(y)
        sigma = np.sqrt(1 - np.sum(K[history, :] * solved, axis=0))
        gain = 0.5 * np.linalg.slogdet(np.eye(t) + gram / LAMBDA)[1]
    return history


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("multiplier", [1.0, 0.05])
def test_tgp_follows_algorithm_2(seed: int, multiplier: float) -> None:
    steps, scale = 50, 1.5
    problem, answer = script(steps, seed)
    public = constants(
        steps, v=2.0 + 2 * scale**2, laplace_scale=scale, width_multiplier=multiplier
    )
    users = Users(problem, clear_channel, np.random.default_rng(0))
    run = truncated_gp_ucb(users, LaplaceTruncation(public), np.random.default_rng(1))

    def b(t: int) -> float:
        return 2.0 + scale * math.log(max(t, 1))

    def beta(t: int, gain: float) -> float:
        first = 2 * math.sqrt(2) / math.sqrt(LAMBDA) * b(t) * math.sqrt(gain + math.log(1 / DELTA))
        moment = 2.0 + 2 * scale**2
        second = math.sqrt(moment * (math.log(max(t, 1)) + 1)) / math.sqrt(LAMBDA)
        return multiplier * (1.0 + first + second)

    literal = literal_tgp(answer, steps, b, beta)
    assert run.choices.tolist() == literal
    assert len(set(literal)) > 1
