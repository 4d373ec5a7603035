"""The sparse vector technique, and four of the ways in which it was published wrongly.

The wrong variants are those that Lyu, Su and Li 2017 (Figure 1) collect. Thresholds are 0, ε = 1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from audits.catalogue.entry import PURE, Entry, Floats, Release
from dpaudit.auditing.distinguishing.scores import FixedScore

BELOW, HALTED = 0.0, -1.0


def sparse(
    threshold: float,
    query: float,
    *,
    cutoff: int | None = None,
    values: bool = False,
    refresh: bool = False,
) -> Release:
    """Answers to queries: above (1, or the noisy query), below (0), or none after the cutoff.

    Args:
        threshold: scale of the threshold's noise.
        query: scale of the queries' noise; 0 for none.
        cutoff: answers above before it halts.
        values: whether noisy queries are released in place of 1.
        refresh: whether the threshold's noise is drawn again after each answer above.
    """

    def release(queries: Any, size: int, rng: np.random.Generator) -> Floats:
        noisy = np.asarray(queries) + rng.laplace(scale=query, size=(size, len(queries)))
        rho = rng.laplace(scale=threshold, size=size)
        answers, given = np.full(noisy.shape, HALTED), np.zeros(size, dtype=int)
        for turn in range(noisy.shape[1]):
            running = np.full(size, True) if cutoff is None else given < cutoff
            above = running & (noisy[:, turn] >= rho)
            shown = noisy[:, turn] if values else 1.0
            answers[:, turn] = np.where(above, shown, np.where(running, BELOW, HALTED))
            given += above
            if refresh:
                rho = np.where(above, rng.laplace(scale=threshold, size=size), rho)
        return answers

    return release


def pattern(below: int) -> FixedScore:
    """How many of the first answers are below, and how many of the others above."""

    def score(outputs: Floats) -> Floats:
        first = (outputs[:, :below] == BELOW).sum(axis=1)
        return np.asarray(first + (outputs[:, below:] > 0).sum(axis=1), dtype=np.float64)

    return FixedScore(score, "answers as expected under x")


def _low_value(outputs: Floats) -> Floats:
    """Whether a low value is released after answers that are all below.

    A low value betrays a low threshold, below which queries at 1 would hardly have stayed.
    """
    quiet = (outputs[:, :-1] == BELOW).all(axis=1) & (outputs[:, -1] != BELOW)
    return np.asarray(quiet & (outputs[:, -1] <= 1.75), dtype=np.float64)


def queries(below: int, above: int, shift: float) -> list[float]:
    """Queries at 0 and 1, or shifted by 1 towards each other."""
    return [shift] * below + [1.0 - shift] * above


WRONG = (
    Entry("sparse vector, Roth's notes: releases the noisy query", False, PURE,
          [0.0] * 5, [1.0] * 4 + [0.0], math.inf, 60_000, sparse(2.0, 2.0, cutoff=1, values=True),
          None, FixedScore(_low_value), rare=True),
    Entry("sparse vector, Lee and Clifton, c = 5", False, PURE, queries(8, 5, 0.0),
          queries(8, 5, 1.0), 31 / 4, 20_000, sparse(4.0, 4 / 3, cutoff=5), None, pattern(8),
          limit=True),
    Entry("sparse vector, Stoddard: no query noise", False, PURE, [0.0, 1.0], [1.0, 0.0], math.inf,
          5_000, sparse(2.0, 0.0), None, pattern(1)),
    Entry("sparse vector, Chen: no cutoff", False, PURE, [0.0] * 16, [1.0] * 8 + [-1.0] * 8, 7.35,
          20_000, sparse(2.0, 2.0), None, pattern(8), limit=True),
)  # fmt: skip

RIGHT = (
    Entry("sparse vector, Lyu's Algorithm 1", True, PURE, queries(4, 2, 0.0), queries(4, 2, 1.0),
          1.0, 10_000, sparse(2.0, 8.0, cutoff=2), None, pattern(4), limit=True),
    Entry("sparse vector, Dwork and Roth", True, PURE, queries(4, 2, 0.0), queries(4, 2, 1.0), 1.0,
          10_000, sparse(4.0, 8.0, cutoff=2, refresh=True), None, pattern(4), limit=True),
)  # fmt: skip
