"""Values that only one neighbour can show: a raw record, a file's name as a number, a constant.

A leak in one run of thousands moves no other score, and may be all that there is to find.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.auditing.distinguishing.scores import Score
from dpaudit.auditing.evidence.types import Direction, Event
from dpaudit.mechanisms.pairs import Floats
from dpaudit.project import AuditPair

REPEATS = 3
"""Occurrences in a pilot of continuous outputs from which on a value is no chance."""
MOST_FLAGGED = 10_000
"""Flagged values a side."""
CONTINUOUS = 0.9
"""Share of distinct numbers in outputs from which on they count as continuous."""


@dataclass(frozen=True)
class FlaggedScore:
    """A score that is infinite where an output holds a value that only one side can show.

    Attributes:
        score: of all other outputs.
        of_x: values that tell of x.
        of_x_prime: values that tell of x'.
    """

    score: Score
    of_x: tuple[float, ...]
    of_x_prime: tuple[float, ...]

    @property
    def name(self) -> str:
        """That of the other score, and what it becomes."""
        return f"{self.score.name} (infinite where a value is that of one side alone)"

    @property
    def method(self) -> str:
        """How the evidence is made."""
        return f"{self.score.method}, and values of one side alone"

    def __call__(self, outputs: Floats) -> Floats:
        """Scores, shape (n,)."""
        flat, scores = outputs.reshape(len(outputs), -1), self.score(outputs).astype(np.float64)
        scores[np.isin(flat, self.of_x).any(axis=1)] = np.inf
        scores[np.isin(flat, self.of_x_prime).any(axis=1)] = -np.inf
        return scores

    def alone(self, x: Floats, x_prime: Floats) -> Event | None:
        """The event that a flagged value is shown, on the side that shows it more often.

        Args:
            x: scores of a pilot on x, shape (n,).
            x_prime: those on x'.
        """
        of_x, of_x_prime = int((x == np.inf).sum()), int((x_prime == -np.inf).sum())
        if not of_x and not of_x_prime:
            return None
        if of_x >= of_x_prime:
            return Event(lower=np.inf)
        return Event(upper=-np.inf, direction=Direction.BACKWARD)

    def in_words(self, event: Event) -> str | None:
        """Return what :meth:`alone` says; None of any other event."""
        flag = event.lower == np.inf or event.upper == -np.inf
        return "output holds a value that one side alone shows" if flag else None


def flag_values(score: Score, x: Floats, x_prime: Floats, pair: AuditPair) -> Score:
    """The score, with values flagged if the pilot shows any that only one side can show.

    They are numbers of one data set that the other does not hold, and numbers that come again and
    again on one side only. Of outputs that are not continuous every atom is judged anyway.

    Args:
        score: that was chosen.
        x: pilot outputs on x, shape (n, …).
        x_prime: pilot outputs on x', shape (n, …).
        pair: the data.
    """
    sides = x.ravel(), x_prime.ravel()
    shown = [np.unique(side, return_counts=True) for side in sides]
    if any(
        len(values) < CONTINUOUS * side.size for (values, _), side in zip(shown, sides, strict=True)
    ):
        return score
    held = [_numbers(pair.x), _numbers(pair.x_prime)]
    found = []
    for own, other in ((0, 1), (1, 0)):
        values, counts = shown[own]
        raw = np.setdiff1d(held[own], held[other])
        told = values[np.isin(values, raw) | (counts >= REPEATS)]
        alone = np.setdiff1d(told, shown[other][0])
        found.append(
            tuple(map(float, (np.union1d(alone, raw) if alone.size else alone)[:MOST_FLAGGED]))
        )
    return FlaggedScore(score, found[0], found[1]) if any(found) else score


def _numbers(data: Any) -> Floats:
    """All finite numbers of data of any nesting, up to ``MOST_FLAGGED``."""
    numbers: list[float] = []
    waiting = [data]
    while waiting and len(numbers) < MOST_FLAGGED:
        one = waiting.pop()
        if isinstance(one, np.ndarray) and one.dtype.kind in "biuf":
            numbers.extend(one.ravel()[:MOST_FLAGGED].astype(np.float64).tolist())
        elif isinstance(one, int | float):
            numbers.append(float(one))
        elif isinstance(one, dict):
            waiting.extend(one.values())
        elif isinstance(one, list | tuple | set | frozenset | np.ndarray):
            waiting.extend(one)
    held = np.unique(np.array(numbers, dtype=np.float64))
    return held[np.isfinite(held)]
