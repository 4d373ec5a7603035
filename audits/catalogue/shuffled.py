"""Shuffled reports, and what a shuffle does not hide if it is done wrongly.

What a server may see of shuffled reports is how many are a one. Wrong rows keep the order,
randomise less than they state, or leave one report as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binom

from audits.catalogue.entry import Entry, Floats, Release, epsilon_of
from dpaudit import Claim, RandomizedResponse
from dpaudit.auditing.distinguishing.scores import FixedScore
from dpaudit.mechanisms import Shuffled

USERS, LOCAL, TOO_MUCH, MARGIN = 30, 1.0, 3.0, 1e-3
RESPONSE = RandomizedResponse.calibrated(epsilon=LOCAL)
LOUD = RandomizedResponse.calibrated(epsilon=TOO_MUCH)
SHUFFLED = Shuffled(RESPONSE, USERS)
PROVED = SHUFFLED.pair(1.0)
CLAIM = Claim(epsilon_of(PROVED, MARGIN), MARGIN)
NOBODY, SOMEBODY = [0] * USERS, [1] + [0] * (USERS - 1)


def in_turn(answers: Any, size: int, rng: np.random.Generator) -> Floats:
    """The reports in the order of their users."""
    return RESPONSE.release_many(answers, size, rng).astype(float)


def louder(answers: Any, size: int, rng: np.random.Generator) -> Floats:
    """Reports of a local ε of 3."""
    return np.sort(LOUD.release_many(answers, size, rng), axis=1).astype(float)


def one_told(answers: Any, size: int, rng: np.random.Generator) -> Floats:
    """All reports but the first one are randomised."""
    reports = RESPONSE.release_many(answers, size, rng)
    reports[:, 0] = answers[0]
    return np.sort(reports, axis=1).astype(float)


def _shuffled(answers: Any, size: int, rng: np.random.Generator) -> Floats:
    return SHUFFLED.release_many(answers, size, rng).astype(float)


def ones(outputs: Floats) -> Floats:
    """How many reports are a one, which is all that shuffled reports tell."""
    return np.asarray(outputs.sum(axis=1))


def first(outputs: Floats) -> Floats:
    """The report of the user in question."""
    return np.asarray(outputs[:, 0])


def told(lie: float, own_lie: float) -> float:
    """ε at the margin, of the number of ones of all users, of whom the first has her own lie."""
    others = binom.pmf(np.arange(USERS), USERS - 1, lie)
    zero, one = np.append(others, 0.0), np.append(0.0, others)
    with_one = (1 - own_lie) * one + own_lie * zero
    with_zero = (1 - own_lie) * zero + own_lie * one

    def delta(epsilon: float) -> float:
        sides = ((with_one, with_zero), (with_zero, with_one))
        return max(float(np.maximum(p - math.exp(epsilon) * q, 0).sum()) for p, q in sides)

    low, high = 0.0, 50.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if delta(middle) > MARGIN else (low, middle)
    return low


def _entry(
    name: str, true_epsilon: float, release: Release, score: Callable[[Floats], Floats]
) -> Entry:
    return Entry(name, release is _shuffled, CLAIM, SOMEBODY, NOBODY, true_epsilon, 10_000, release,
                 _curve, FixedScore(score))  # fmt: skip


def _curve(epsilon: ArrayLike) -> Floats:
    return PROVED.delta(epsilon)


WRONG = (
    _entry("shuffled reports that keep their order", epsilon_of(RESPONSE.pair(1.0), MARGIN),
           in_turn, first),
    _entry("shuffled reports, local ε three times too large", told(LOUD.p / 2, LOUD.p / 2),
           louder, ones),
    _entry("shuffled reports, one of them as it is", told(RESPONSE.p / 2, 0.0), one_told, ones),
)  # fmt: skip

RIGHT = (_entry("shuffled reports", CLAIM.epsilon, _shuffled, ones),)
