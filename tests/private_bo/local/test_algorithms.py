"""The three algorithms against slow programs written line by line from the pseudocode."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest
from scipy.linalg import sqrtm

from private_bo.gp import FiniteDomain, Matern
from private_bo.local.ata import adaptively_truncated_gp_ucb
from private_bo.local.heavy_tails import FeatureTruncation, RewardTruncation
from private_bo.local.moma import central_estimate, median_of_means_gp_ucb
from private_bo.local.schedules import LaplaceFeatureTruncation, LaplaceTruncation, MedianOfMeans
from private_bo.local.tgp import truncated_gp_ucb
from private_bo.local.users import Users, in_the_clear
from private_bo.problems import BanditProblem, Response, RewardSource

LAMBDA, DELTA, ACCURACY = 0.7, 0.1, 0.1
KERNEL = Matern(0.3, nu=0.5)
DOMAIN = FiniteDomain.grid(9)
F = np.cos(5 * DOMAIN.points[:, 0])
K = DOMAIN.kernel_matrix(KERNEL)


@dataclass(eq=False)
class Scripted(RewardSource):
    """The t-th answer has the t-th of fixed heavy-tailed noises, whatever was asked."""

    noise: np.ndarray
    asked: int = field(default=0)

    def respond(self, index: int, rng: np.random.Generator) -> Response:
        self.asked += 1
        return Response(f"u{self.asked}", float(F[index] + self.noise[self.asked - 1]))


def script(steps: int, seed: int) -> tuple[BanditProblem, Callable[[int], float]]:
    """A problem and an independent reader of the same answers."""
    noise = np.random.default_rng(seed).laplace(scale=1.5, size=steps)
    problem = BanditProblem(
        "scripted", DOMAIN, KERNEL, F, 1.0, 1.0, 2.0, 1.0, True, Scripted(noise)
    )
    again = Scripted(noise)
    return problem, lambda x: again.respond(x, np.random.default_rng(0)).value


def nystrom(history: list[int]) -> tuple[np.ndarray, int]:
    """(K_D^{1/2})^† k_D(x) of every point, all played points in the dictionary."""
    dictionary = sorted(set(history))
    root = np.linalg.pinv(np.real(sqrtm(K[np.ix_(dictionary, dictionary)])))
    return (root @ K[dictionary, :]).T, len(dictionary)


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
@pytest.mark.parametrize("multiplier", [1.0, 0.05])
def test_ata_follows_algorithm_1(seed: int, multiplier: float) -> None:
    steps, scale = 40, 1.5
    problem, answer = script(steps, seed)
    schedule = LaplaceFeatureTruncation(1.0, 1.0, scale, steps, DELTA, ACCURACY, LAMBDA, multiplier)
    users = Users(problem, in_the_clear, np.random.default_rng(0))
    run = adaptively_truncated_gp_ucb(
        users, schedule, steps=steps, regularisation=LAMBDA, rng=np.random.default_rng(1)
    )
    v = 1.0 + 1.0 + 8.0 * 4.0 / (4.0 / scale) ** 2  # ε = 2(B+R)/ℒ

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
        schedule = FeatureTruncation(1.0, 2.0, 0.1, steps, ACCURACY, LAMBDA, 0.1)
        users = Users(problem, in_the_clear, np.random.default_rng(0))
        run = adaptively_truncated_gp_ucb(
            users, schedule, steps=steps, regularisation=LAMBDA, rng=np.random.default_rng(1)
        )
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


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("multiplier", [1.0, 0.05])
def test_tgp_follows_algorithm_2(seed: int, multiplier: float) -> None:
    steps, scale = 50, 1.5
    problem, answer = script(steps, seed)
    schedule = LaplaceTruncation(1.0, 1.0, scale, DELTA, LAMBDA, multiplier)
    users = Users(problem, in_the_clear, np.random.default_rng(0))
    run = truncated_gp_ucb(users, schedule, steps=steps, regularisation=LAMBDA)

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


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("plays", [1, 2, 5, 6])
def test_moma_follows_algorithm_3(seed: int, plays: int) -> None:
    epochs, c = 25, 3.0
    problem, answer = script(epochs * plays, seed)
    schedule = MedianOfMeans(1.0, c, 1.0, epochs * plays, DELTA, ACCURACY, LAMBDA, 0.1)
    users = Users(problem, in_the_clear, np.random.default_rng(0), plays)
    run = median_of_means_gp_ucb(
        users, schedule, epochs=epochs, regularisation=LAMBDA, rng=np.random.default_rng(1)
    )

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


def test_moma_with_a_lower_moment() -> None:
    """γ = (9 m c')^{1/(1+α)} n^{(1-α)/(2(1+α))}, with c' = c^{(1+α)/2} the bound of E|η|^{1+α}."""
    alpha, c, m, n = 0.5, 3.0, 7, 11
    schedule = MedianOfMeans(2.0, c, alpha, 100, DELTA, ACCURACY, LAMBDA, 1.0)
    gamma = (9 * m * c ** ((1 + alpha) / 2)) ** (1 / (1 + alpha))
    gamma *= n ** ((1 - alpha) / (2 * (1 + alpha)))
    expected = 2.0 * (1 + 1 / math.sqrt(1 - ACCURACY)) + 3 * gamma / math.sqrt(LAMBDA)
    assert schedule.width(n, m) == pytest.approx(expected, rel=1e-12)


def test_central_estimate_takes_the_estimate_with_most_company() -> None:
    rng = np.random.default_rng(0)
    crowd = rng.normal(size=(3, 6)) * 0.01
    outliers = rng.normal(size=(3, 3)) * 100
    assert central_estimate(np.hstack([outliers, crowd])) >= 3


@pytest.mark.parametrize("alpha", [1.0, 0.6])
def test_published_heavy_tail_settings(alpha: float) -> None:
    steps, v, m, t = 1000, 4.0, 12, 57
    features = FeatureTruncation(1.0, v, alpha, steps, 0.1, LAMBDA, 1.0)
    rewards = RewardTruncation(1.0, v, alpha, LAMBDA, 1.0)
    v_alpha = v ** ((1 + alpha) / 2)
    log = math.log((m + 1) * steps)
    growth = t ** ((1 - alpha) / (2 * (1 + alpha)))
    assert features.oversampling == pytest.approx(math.log(steps) / 0.01)
    assert features.threshold(t, m) == pytest.approx(growth * (v_alpha / log) ** (1 / (1 + alpha)))
    tail = math.sqrt(m) * v_alpha ** (1 / (1 + alpha)) * log ** (alpha / (1 + alpha)) * growth
    assert features.width(t, m) == pytest.approx(math.sqrt(LAMBDA) + tail)
    b = t ** (1 / (2 * (1 + alpha))) * v_alpha ** (1 / (1 + alpha))
    assert rewards.threshold(t) == pytest.approx(b)
    assert rewards.width(t, 1.0) == pytest.approx(math.sqrt(LAMBDA) + b * math.sqrt(math.log(t)))
