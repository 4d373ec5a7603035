"""Algorithm 3 against a slow program written line by line from the pseudocode."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scripted import ACCURACY, LAMBDA, constants, nystrom, script

from private_bo.local.policies import (
    MedianOfMeans,
    Users,
    central_estimate,
    clear_channel,
    median_of_means_gp_ucb,
)


def literal_moma(answer: Callable[[int], float], epochs: int, k: int, beta: Callable) -> list:
    history: list[int] = []
    y: list[list[float]] = []
    mu, sigma = np.zeros(9), np.ones(9)
    m = 0
    for n in range(1, epochs + 1):
        x = int(np.argmax(mu + beta(n - 1, m) * sigma))
        history.append(x)
        y.append([answer(x) for _ in range(k)])
        phi, m = nystrom(history)
        Phi = np.array([phi[s] for s in history])
        V = Phi.T @ Phi + LAMBDA * np.eye(m)
        inverse = np.linalg.inv(V)
        thetas = [inverse @ sum(y[i][j] * Phi[i] for i in range(n)) for j in range(k)]
        r = [
            np.median([math.sqrt((a - c) @ V @ (a - c)) for s, c in enumerate(thetas) if s != j])
            for j, a in enumerate(thetas)
        ]
        mu = phi @ thetas[int(np.argmin(r))]
        sigma = np.sqrt([1 - p @ p + LAMBDA * p @ inverse @ p for p in phi])
    return [x for x in history for _ in range(k)]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("plays", [1, 2, 5, 6])
def test_moma_follows_algorithm_3(seed: int, plays: int) -> None:
    epochs, c = 25, 3.0
    problem, answer = script(epochs * plays, seed)
    schedule = MedianOfMeans(constants(epochs * plays, c=c, width_multiplier=0.1))
    users = Users(problem, clear_channel, np.random.default_rng(0), plays)
    run = median_of_means_gp_ucb(users, schedule, np.random.default_rng(1))

    def beta(n: int, m: int) -> float:
        gamma = math.sqrt(9 * m * c)
        return 0.1 * (1 + 1 / math.sqrt(1 - ACCURACY) + 3 * gamma / math.sqrt(LAMBDA))

    if plays == 1:  # the median over no other estimate: there is only one to choose
        literal = literal_moma_of_one(answer, epochs, beta)
    else:
        literal = literal_moma(answer, epochs, plays, beta)
    assert run.choices.tolist() == literal
    assert len(set(literal)) > 1


def literal_moma_of_one(answer: Callable[[int], float], epochs: int, beta: Callable) -> list:
    """k = 1 is regression on all rewards: two equal copies of every reward change nothing."""
    twice: list[float] = []

    def copied(x: int) -> float:
        if not twice:
            twice.append(answer(x))
            return twice[0]
        return twice.pop()

    return literal_moma(copied, epochs, 2, beta)[::2]


def test_central_estimate_takes_the_estimate_with_most_company() -> None:
    rng = np.random.default_rng(0)
    crowd = rng.normal(size=(3, 6)) * 0.01
    outliers = rng.normal(size=(3, 3)) * 100
    assert central_estimate(np.hstack([outliers, crowd])) >= 3
