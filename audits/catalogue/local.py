"""Local reports: randomised response, unary encoding, and rewards of a bandit.

Every user randomises her own answer, so that one answer is the whole data set. Wrong rows believe
in a range of answers that nothing enforces.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from audits.catalogue.entry import PURE, Entry, Floats
from dpaudit import Laplace, RandomizedResponse
from dpaudit.auditing.distinguishing.scores import FixedScore, Identity, LinearScore

BOUND, NOISE = 1.0, 1.0
"""Of the function and of the observation's own noise; a reward lies in ±(BOUND + NOISE)."""
ANSWERS = 4
RESPONSE = RandomizedResponse.calibrated(epsilon=1.0, k=ANSWERS)
REWARD = Laplace.calibrated(
    epsilon=1.0, sensitivity=2 * (BOUND + NOISE), clip=(-BOUND - NOISE, BOUND + NOISE)
)


def short_range(reward: Any, size: int, rng: np.random.Generator) -> Floats:
    """Noise for the range ±BOUND alone, though rewards also carry their own noise."""
    clipped = np.clip(reward, -BOUND - NOISE, BOUND + NOISE)
    return clipped + rng.laplace(scale=2 * BOUND, size=size)


def no_clip(reward: Any, size: int, rng: np.random.Generator) -> Floats:
    """The right noise for a range that nothing enforces."""
    return reward + rng.laplace(scale=2 * (BOUND + NOISE), size=size)


def unary(answer: Any, size: int, rng: np.random.Generator) -> Floats:
    """One bit for each answer, each told truly with probability √e / (1 + √e) (symmetric)."""
    truth = np.arange(ANSWERS) == answer
    lie = rng.random((size, ANSWERS)) >= math.exp(0.5) / (1 + math.exp(0.5))
    return (truth ^ lie).astype(float)


def _answer(outputs: Floats) -> Floats:
    """1 for the first answer, -1 for the second, 0 for others."""
    return np.asarray((outputs == 0).astype(float) - (outputs == 1))


WRONG = (
    Entry("GP-UCB reward, range without the noise", False, PURE, 2.0, -2.0, 2.0, 3_000,
          short_range, Laplace(1.0).pair(1.0).delta, Identity()),
    Entry("GP-UCB reward, no clip", False, PURE, 50.0, -2.0, 13.0, 1_000, no_clip,
          Laplace(1.0).pair(1.0).delta, Identity()),
)  # fmt: skip

RIGHT = (
    Entry("generalised randomised response", True, PURE, 0, 1, 1.0, 10_000, RESPONSE.release_many,
          None, FixedScore(_answer)),
    Entry("symmetric unary encoding", True, PURE, 0, 1, 1.0, 10_000, unary, None,
          LinearScore((1.0, -1.0, 0.0, 0.0))),
    Entry("GP-UCB reward, clipped", True, PURE, 50.0, -2.0, 1.0, 10_000, REWARD.release_many,
          Laplace(1.0).pair(1.0).delta, Identity()),
)  # fmt: skip
