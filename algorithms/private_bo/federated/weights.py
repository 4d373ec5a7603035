"""Sub-regions, the public weights of the agents in them, and what one agent can move.

Distributed exploration (Dai, Low & Jaillet 2021, Section 3.2): the unit cube is cut into P equal
boxes, agent n starts in box n mod P, and the server makes one weighted average for every box.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from dpaudit.base.errors import InputError
from dpaudit.base.fields import Checked
from private_bo.gp.types import Array, Indices, array_of

_ROUNDING = 1e-9
_UP = 1 + 1e-12
"""Sensitivities are rounded up: the weights are floats, and so are their norms."""


def splits(regions: int, dimension: int) -> tuple[int, ...]:
    """Into how many equal parts each axis is cut: the prime factors of P, largest first.

    Each factor goes to an axis with the fewest parts so far.

    >>> splits(4, 2), splits(2, 3), splits(12, 2), splits(1, 1)
    ((2, 2), (2, 1, 1), (3, 4), (1,))
    """
    parts = [1] * dimension
    for factor in _prime_factors(regions):
        parts[parts.index(min(parts))] *= factor
    return tuple(parts)


def _prime_factors(number: int) -> list[int]:
    factors, divisor = [], 2
    while number > 1:
        while number % divisor == 0:
            factors.append(divisor)
            number //= divisor
        divisor += 1
    return factors[::-1]


def region_of_point(points: Array, regions: int) -> Indices:
    """i[x], the sub-region of each point of the unit cube, (n,); a face belongs to the upper box.

    Args:
        points: (n, d), within [0, 1].
        regions: P.

    >>> region_of_point(np.array([[0.1], [0.5], [1.0]]), 2).tolist()
    [0, 1, 1]
    """
    parts = np.array(splits(regions, points.shape[1]))
    cells = np.minimum((points * parts).astype(np.intp), parts - 1)
    found: Indices = np.asarray(np.ravel_multi_index(tuple(cells.T), tuple(parts)), dtype=np.intp)
    return found


def region_of_agent(agents: int, regions: int) -> Indices:
    """i_n = n mod P, for each agent, (N,)."""
    return np.arange(agents) % regions


def contrasts(rounds: int, *, contrast: float, sharp: int, fading: int) -> Array:
    """a/𝒯_t: how far the logit of an agent's own sub-region is above the others, (rounds,).

    The temperature 𝒯 is 1 for the first ``sharp`` rounds. It then rises so that the contrast goes
    evenly from a to 0 within ``fading`` rounds, both ends included; afterwards all agents weigh the
    same. With 10 and 30 rounds that is the schedule of the paper's experiments.

    >>> contrasts(6, contrast=15.0, sharp=1, fading=4).tolist()
    [15.0, 15.0, 10.0, 5.0, 0.0, 0.0]
    """
    falling = np.linspace(contrast, 0.0, fading)
    whole = np.concatenate([np.full(min(sharp, rounds), contrast), falling, np.zeros(rounds)])
    return whole[:rounds].copy()


@dataclass(frozen=True, eq=False)
class Weights(Checked):
    """φ_n^(i) of every round: public, and the same whichever agents report.

    Attributes:
        values: (T, P, N), at least 0; over the agents each sums to 1. A read-only copy is kept.

    Raises:
        InputError: if the shape is wrong, a weight is negative or not finite, or a sum is not 1.

    >>> Weights.softmax(np.array([0.0]), agents=4, regions=2).values.tolist()
    [[[0.25, 0.25, 0.25, 0.25], [0.25, 0.25, 0.25, 0.25]]]
    """

    values: Annotated[Array, array_of("T", "P", "N")]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.values.min() < 0:
            raise InputError(f"weights has the value {self.values.min():g}; it must be at least 0.")
        sums = self.values.sum(axis=2)
        worst = float(sums.flat[int(np.abs(sums - 1).argmax())])
        if abs(worst - 1) > _ROUNDING:
            raise InputError(
                f"weights sum to {worst:.12g} over the agents of a sub-region; they must sum to 1."
            )

    @classmethod
    def softmax(cls, contrast: Array, *, agents: int, regions: int) -> Weights:
        """Proportional to exp(contrast) for agents of the sub-region, and to 1 for the others.

        Args:
            contrast: a/𝒯_t of each round, (T,); see :func:`contrasts`.
            agents: N.
            regions: P.
        """
        own = region_of_agent(agents, regions) == np.arange(regions)[:, None]
        # The largest logit is taken off, so that no contrast overflows.
        logits = np.where(own, 0.0, -np.asarray(contrast)[:, None, None])
        unscaled = np.exp(logits)
        return cls(unscaled / unscaled.sum(axis=2, keepdims=True))

    @classmethod
    def constant(cls, values: object, rounds: int) -> Weights:
        """The same weights (P, N) in every round.

        Raises:
            InputError: as for the class.
        """
        each = array_of("P", "N")(weights=values)
        return cls(np.broadcast_to(each, (rounds, *each.shape)))

    @property
    def rounds(self) -> int:
        """T, the number of rounds."""
        return int(self.values.shape[0])

    @property
    def regions(self) -> int:
        """P, the number of sub-regions."""
        return int(self.values.shape[1])

    @property
    def agents(self) -> int:
        """N, the number of agents."""
        return int(self.values.shape[2])

    @property
    def largest(self) -> Array:
        """φ_max of each round, (T,)."""
        largest: Array = self.values.max(axis=(1, 2))
        return largest

    def paper_sensitivity(self, clip: float, rate: float) -> Array:
        """φ_max S/q of each round, (T,): the paper's bound (Section 3.3)."""
        bound: Array = self.largest * (clip / rate) * _UP
        return bound

    def true_sensitivity(self, clip: float, rate: float) -> Array:
        """max_n (S/(q√P)) √(Σ_i φ_n^(i)²) of each round, (T,).

        Agent n enters the joint release with (φ_n^(i) ω̂_n/q) for i = 1…P, where ‖ω̂_n‖ <= S/√P;
        taking its vector for zero moves the release by exactly the norm of that. It is at most
        φ_max S/q, and nearly √P less where every agent counts in one sub-region alone.
        """
        largest: Array = self.norms.max(axis=1)
        return largest * (clip / (rate * math.sqrt(self.regions))) * _UP

    @property
    def norms(self) -> Array:
        """√(Σ_i φ_n^(i)²) of each round and agent, (T, N)."""
        norms: Array = np.sqrt(np.square(self.values).sum(axis=1))
        return norms
