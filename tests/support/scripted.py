"""A bandit problem with scripted heavy-tailed answers, for the algorithms of local privacy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import sqrtm

from private_bo.gp import FiniteDomain, Matern
from private_bo.local.policies import Constants
from private_bo.problems import BanditProblem, Response, RewardSource

LAMBDA, DELTA, ACCURACY = 0.7, 0.1, 0.1


def constants(steps: int, **changes: float) -> Constants:
    """B = R = 1, v = 2, c = 1 and no Laplace noise, but for the changes."""
    given = {"B": 1.0, "R": 1.0, "v": 2.0, "c": 1.0, "width_multiplier": 1.0} | changes
    return Constants(
        horizon=steps, confidence=DELTA, regularisation=LAMBDA, **{"accuracy": ACCURACY} | given
    )


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
        "scripted", DOMAIN, KERNEL, F, 1.0, 1.0, 2.0, 1.0, True, rewards=Scripted(noise)
    )
    again = Scripted(noise)
    return problem, lambda x: again.respond(x, np.random.default_rng(0)).value


def nystrom(history: list[int]) -> tuple[np.ndarray, int]:
    """(K_D^{1/2})^† k_D(x) of every point, all played points in the dictionary."""
    dictionary = sorted(set(history))
    root = np.linalg.pinv(np.real(sqrtm(K[np.ix_(dictionary, dictionary)])))
    return (root @ K[dictionary, :]).T, len(dictionary)
