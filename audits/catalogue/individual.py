"""Sums in which every unit has a budget of its own, and how budgets are miscounted.

A unit that has spent its budget is to be dropped from later sums. Wrong rows look at the budget too
late, give every step one of its own, or tell who has any left.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from audits.catalogue.entry import APPROXIMATE, SIGMA, Entry, Floats, Release, gaussian_epsilon
from dpaudit.auditing.distinguishing.scores import LinearScore
from dpaudit.mechanisms import GaussianPair

STEPS = 6
ABSENT, HALVES, WHOLES, LONG = [0.0] * STEPS, [0.5] * STEPS, [1.0] * STEPS, [0.9] * STEPS


def budgeted(
    *, late: bool = False, each_step: bool = False, shows_who_is_left: bool = False
) -> Release:
    """Noisy sums of the parts of one unit, which together may be 1 long.

    A part is turned by what was released before, as later steps of a run may be.

    Args:
        late: look at the budget only after the part was added.
        each_step: give each step a budget of its own.
        shows_who_is_left: release how many units have a budget left as well.
    """

    def release(parts: Any, size: int, rng: np.random.Generator) -> Floats:
        left, turn, shown = np.ones(size), np.ones(size), []
        for part in parts:
            fits = part if each_step or late else np.sqrt(np.maximum(left, 0.0))
            added = np.where(left > 1e-12, np.minimum(part, fits), 0.0)
            left = left if each_step else left - added**2
            one = turn * added + rng.normal(scale=SIGMA, size=size)
            shown.append(turn * one)
            turn = np.where(one > 0, 1.0, -1.0)
        if shows_who_is_left:
            shown.append((left > 1e-12).astype(np.float64))
        return np.stack(shown, axis=1)

    return release


def _row(name: str, release: Release, parts: list[float], added: list[float], runs: int) -> Entry:
    length = math.hypot(*added)
    score = LinearScore(tuple(added + [0.0] * (STEPS - len(added))))
    return Entry(name, length <= 1, APPROXIMATE, parts, ABSENT,
                 gaussian_epsilon(length / SIGMA), runs,
                 release, GaussianPair(1 / SIGMA).delta, score)  # fmt: skip


WRONG = (
    _row("budget of a unit, given anew at each step", budgeted(each_step=True), WHOLES, WHOLES,
         3_000),
    _row("budget of a unit, looked at too late", budgeted(late=True), LONG, [0.9, 0.9], 30_000),
    Entry("budget of a unit, and how many have one left", False, APPROXIMATE, WHOLES, ABSENT,
          math.inf, 1_000, budgeted(shows_who_is_left=True)),
)  # fmt: skip
RIGHT = (_row("budget of a unit", budgeted(), HALVES, [0.5] * 4, 10_000),)
