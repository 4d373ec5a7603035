"""Asking users through a channel."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from crowds import F, problem, run
from scipy import stats
from scripted import ACCURACY, DELTA, LAMBDA, K, constants, nystrom, script

from dpaudit.errors import InputError
from private_bo.gp import FiniteDomain, SquaredExponential
from private_bo.local import LDPATAGPUCB
from private_bo.local.policies import (
    Users,
    adaptively_truncated_gp_ucb,
    ask_ahead,
    central_estimate,
    in_the_clear,
    median_of_means_gp_ucb,
    prior_covariance,
    truncated_gp_ucb,
    worth,
)
from private_bo.local.schedules import (
    FeatureTruncation,
    LaplaceFeatureTruncation,
    LaplaceTruncation,
    MedianOfMeans,
)


def test_running_out_of_sellers_is_one_sentence() -> None:
    subject = LDPATAGPUCB(steps=371)
    data = subject.load("taipei-sellers", np.random.default_rng(0))
    with pytest.raises(InputError, match="steps is too large for 'neighbourhood prices'"):
        run(subject, data)


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
    users = Users(problem, in_the_clear, np.random.default_rng(0))
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
    users = Users(problem, in_the_clear, np.random.default_rng(0))
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
        users = Users(problem, in_the_clear, np.random.default_rng(0))
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
    users = Users(problem, in_the_clear, np.random.default_rng(0), plays)
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


def test_the_prior_has_three_equal_parts() -> None:
    far = FiniteDomain(np.array([[0.0], [100.0]]))
    covariance = prior_covariance(far, SquaredExponential(0.1))
    np.testing.assert_allclose(covariance, [[1 / 3, 1 / 9], [1 / 9, 1 / 3]], atol=1e-15)


@pytest.mark.parametrize("gap", [0.0, 0.4, -0.4])
def test_worth_of_two_independent_points(gap: float) -> None:
    """E max(a, b + sZ) = a + d Φ(d/s) + s φ(d/s) with d = b − a; of r = 2 and r = 1 the better."""
    values = []
    for rounds in (2, 1):
        s = 1 / math.sqrt(1 + 3 / rounds)
        best = gap * stats.norm.cdf(gap / s) + s * stats.norm.pdf(gap / s)
        values.append(rounds * gap + (4 - rounds) * best)
    found = worth(np.array([0.0, gap]), np.diag([0.0, 1.0]), 3.0, 4)
    assert found[1] == pytest.approx(max(values), abs=0.15)  # eight nodes meet a kink
    assert found[0] == pytest.approx(3 * max(gap, 0.0))  # asked once, which teaches nothing


def test_the_last_round_plays_what_looks_best() -> None:
    mean = np.array([0.1, 0.7, -2.0])
    np.testing.assert_allclose(worth(mean, np.eye(3), 1.0, 1), mean)


def test_it_finds_the_best_of_clear_rewards() -> None:
    users = Users(problem(), in_the_clear, np.random.default_rng(0))
    outcome = ask_ahead(users, 60, 0.01)
    assert outcome.choices.size == 60
    assert outcome.recommended == F.argmax()
    assert np.mean(outcome.choices == F.argmax()) > 0.8
    assert outcome.mean[F.argmax()] == pytest.approx(F.max(), abs=0.05)
