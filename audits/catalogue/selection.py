"""Private choices: noisy max, the exponential mechanism, permute-and-flip.

The output is an index, or an index and a value, so that laws can be enumerated. Wrong rows take a
privacy proof beyond the utilities for which it holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np
from scipy.special import logsumexp

from audits.catalogue.entry import PURE, Entry, Floats, Release
from dpaudit import AuditPair, Claim
from dpaudit.auditing.distinguishing.scores import AtomScore, Identity
from dpaudit.auditing.subjects.exact import audit_exact
from dpaudit.certificate import AuditRecord
from dpaudit.mechanisms import ExponentialMechanism

ZEROS, ONES = [0.0] * 10, [1.0] * 10
UNEVEN, EVEN = [1.0] + [-1.0] * 49, [0.0] * 50
FLAT, STEEP = [0.0, 0.0, 0.0], [1.0, -1.0, -1.0]
INDEX = AtomScore(((0.0,), (1.0,), (2.0,)), (0.0, 1.0, 1.0))


def noisy_max(noise: str, scale: float = 2.0, *, value: bool = False) -> Release:
    """The index of the largest of queries with noise, of scale 2/ε, or the largest itself."""

    def release(queries: Any, size: int, rng: np.random.Generator) -> Floats:
        noisy = np.asarray(queries) + getattr(rng, noise)(scale=scale, size=(size, len(queries)))
        return noisy.max(axis=1) if value else noisy.argmax(axis=1).astype(float)

    return release


def counted(counts: Any, size: int, rng: np.random.Generator) -> Floats:
    """One-shot top-2 at ε = 1/2 each, beside which the noisy counts are told that were compared."""
    noisy = np.asarray(counts) + rng.gumbel(scale=2.0, size=(size, len(counts)))
    chosen = np.argsort(-noisy, axis=1)[:, :2]
    return np.column_stack([chosen, np.take_along_axis(noisy, chosen, axis=1)])


def best_run(scale: float, runs: Callable[[np.random.Generator, int], Any]) -> Release:
    """The largest of some runs, each of which adds Laplace noise to a number."""

    def release(value: Any, size: int, rng: np.random.Generator) -> Floats:
        share = rng.random(size) ** (1 / runs(rng, size))  # P[all ≤ t] = F(t)^K
        noise = np.where(share < 0.5, np.log(2 * share), -np.log(2 - 2 * share))
        return float(value) + scale * noise

    return release


class SteepChoice:
    """The exponential mechanism with exp(ε u), which is right for monotone utilities only."""

    def probabilities(self, data: Any) -> list[float]:
        """Softmax of the utilities."""
        weights = np.exp(np.asarray(data))
        return [float(weight) for weight in weights / weights.sum()]


class PermuteAndFlip:
    """Permute-and-flip at ε = 2 (McKenna and Sheldon 2020), by enumeration of the orders.

    In random order, candidate r is accepted with probability exp(ε (u_r − max u)/2).
    """

    def probabilities(self, data: Any) -> list[float]:
        """The probability of each candidate."""
        accept = np.exp(np.asarray(data) - max(data))
        chosen = np.zeros(len(accept))
        for order in permutations(range(len(accept))):
            left = 1.0
            for candidate in order:
                chosen[candidate] += left * accept[candidate]
                left *= 1 - accept[candidate]
        return [float(mass) for mass in chosen / math.factorial(len(accept))]


def _steep() -> AuditRecord:
    return audit_exact(SteepChoice(), AuditPair(UNEVEN, EVEN), epsilon=1.0)


def least_rho(p: Sequence[float], q: Sequence[float]) -> float:
    """The ρ that two laws demand over a grid of orders α: Rényi divergence over α, either way.

    As a supremum over all orders, the true ρ is at least this (Bun and Steinke 2016).
    """
    logs = np.log([p, q])
    orders = [1.01, *np.linspace(1.05, 4, 60), *np.geomspace(4, 1000, 60)]
    every = [
        logsumexp(order * one - (order - 1) * two) / (order - 1) / order
        for order in orders
        for one, two in (logs, logs[::-1])
    ]
    return float(max(every))


def _concentrated() -> AuditRecord:
    flip, pair = PermuteAndFlip(), AuditPair([0.0, 0.0], [1.0, -1.0])
    record = audit_exact(flip, pair, epsilon=_FLIP_STATED.epsilon, delta=_FLIP_STATED.delta)
    rho = least_rho(flip.probabilities(pair.x), flip.probabilities(pair.x_prime))
    details = {"claim_rho": 0.5, "rho_lower": rho}
    return replace(record, refuted=rho > 0.5 * (1 + 1e-9), event="", power="", details=details)


def _permute_and_flip() -> AuditRecord:
    return audit_exact(PermuteAndFlip(), AuditPair([0.0, 0.0], [1.0, -1.0]), epsilon=2.0)


_FLIP_RHO = math.log(0.25 / (1 - math.exp(-2) / 2) + 0.25 / (math.exp(-2) / 2)) / 2
"""Half of the Rényi divergence of order 2 of (1/2, 1/2) from (1 − e⁻²/2, e⁻²/2)."""
_FLIP_STATED = Claim(0.5 + 2 * math.sqrt(0.5 * math.log(1e5)), 1e-5)

WRONG = (
    Entry("noisy max that returns the value", False, PURE, ZEROS, ONES, 5.0, 5_000,
          noisy_max("laplace", value=True), None, Identity()),
    Entry("noisy max with exponential noise that returns the value", False, PURE, ZEROS, ONES,
          math.inf, 60_000, noisy_max("exponential", value=True), None, Identity()),
    Entry("one-shot top-k with the noisy counts beside", False, PURE, ZEROS, ONES, math.inf, 20_000,
          counted),
    Entry("exponential mechanism exp(εu), utility not monotone", False, PURE, UNEVEN, EVEN,
          math.log(50 * math.e**2 / (math.e**2 + 49)), exact=_steep),
    Entry("the best of ten runs, stated as one", False, PURE, 0.0, 1.0, 10.0, 10_000,
          best_run(1.0, lambda rng, size: 10)),
    Entry("permute-and-flip stated as ρ = ε²/8", False, _FLIP_STATED, [0.0, 0.0], [1.0, -1.0],
          2.0, exact=_concentrated, rho=(0.5, _FLIP_RHO)),
)  # fmt: skip

RIGHT = (
    Entry("noisy max index", True, PURE, FLAT, STEEP, 1.0, 10_000,
          noisy_max("laplace"), None, INDEX, limit=True),
    Entry("exponential mechanism", True, PURE, FLAT, STEEP, 1.0, 10_000,
          ExponentialMechanism(1.0).release_many, None, INDEX, limit=True),
    Entry("the best of a geometric number of runs, at 3ε", True, PURE, 0.0, 1.0, 1.0, 10_000,
          best_run(3.0, lambda rng, size: rng.geometric(0.1, size)), limit=True),
    Entry("permute-and-flip", True, Claim(2.0), [0.0, 0.0], [1.0, -1.0], 2.0,
          exact=_permute_and_flip),
)  # fmt: skip
