"""Values that one neighbour alone holds: a raw record, a name, the answer without noise.

A leak in one run of thousands moves no score that a pilot could choose, and may be all that there
is to find. The data alone say which values tell, so that an event of its own needs no pilot.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from dpaudit.auditing.distinguishing.output_facts import Form, Forms, canonical, read_numbers
from dpaudit.auditing.evidence.events import Direction, Event, Flags
from dpaudit.mechanisms.pairs import Floats
from dpaudit.project import AuditPair

SHOWS_VALUE = "value that occurs on one side only"
"""The name of the score."""
MOST_READ = 100_000
"""Numbers of a data set that are read."""
MOST_VALUES = 1_000
"""Numbers, and words, of one side alone that are looked for."""
DECIMALS = 6
"""The most decimals to which a value may have been rounded."""
REPEATS = 3
"""Occurrences in a pilot of continuous outputs from which on a value is no chance."""
CONTINUOUS = 0.9
"""Share of distinct numbers in outputs from which on they count as continuous."""


@dataclass(frozen=True)
class HeldValues:
    """Whether an output holds a value of one side alone: 1 of x, −1 of x', 0 of neither or both.

    Attributes:
        numbers: of x alone and of x' alone, as they are, rounded and cut, in single precision too;
            sums and means of lists and arrays of them. In order.
        words: likewise, of texts and keys.
    """

    numbers: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())
    words: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())
    name: str = SHOWS_VALUE
    method: str = "values that occur on one side only"

    @classmethod
    def of(cls, pair: AuditPair) -> Self:
        """The values of two data sets of any kind."""
        forms = [canonical(data) for data in (pair.x, pair.x_prime)]
        numbers, words = [_numbers(form) for form in forms], [form.words for form in forms]
        written = [_written(each) for each in numbers]

        def alone(own: int, far: int) -> tuple[tuple[float, ...], frozenset[str]]:
            held = np.setdiff1d(numbers[own], numbers[far])[:MOST_VALUES]
            told = np.setdiff1d(_written(held), written[far])
            return tuple(told.tolist()), frozenset(sorted(words[own] - words[far])[:MOST_VALUES])

        return cls(*zip(alone(0, 1), alone(1, 0), strict=True))  # type: ignore[arg-type]

    def with_repeats(self, x: Floats, x_prime: Floats) -> Self:
        """The same with numbers that come again and again on one side of a pilot alone.

        Args:
            x: pilot outputs on x, shape (n, …); nothing is added if they are not continuous.
            x_prime: those on x'.
        """
        shown = [np.unique(side, return_counts=True) for side in (x, x_prime)]
        if any(
            len(values) < CONTINUOUS * side.size
            for (values, _), side in zip(shown, (x, x_prime), strict=True)
        ):
            return self

        def more(own: int, far: int) -> tuple[float, ...]:
            values, counts = shown[own]
            again = np.setdiff1d(values[counts >= REPEATS], shown[far][0])[:MOST_VALUES]
            return tuple(np.union1d(self.numbers[own], again).tolist())

        return replace(self, numbers=(more(0, 1), more(1, 0)))

    def __call__(self, outputs: Floats) -> Floats:
        """The flags of numbers, shape (n, …)."""
        flat = outputs.reshape(len(outputs), -1)
        one, other = (_among(flat, values).any(axis=1) for values in self.numbers)
        flags: Floats = np.subtract(one, other, dtype=np.float64)
        return flags

    def flags(self, forms: Forms) -> Floats:
        """The flags of outputs of any kind, shape (n,)."""
        rows = [
            np.append(form.values, [each for text in form.texts for each in read_numbers(text)])
            for form in forms
        ]
        owners = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
        every = np.concatenate([np.zeros(0), *rows])
        found = np.zeros((2, len(rows)), dtype=bool)
        for side, values in zip(found, self.numbers, strict=True):
            side[owners[_among(every, values)]] = True
        if any(self.words):
            written = [form.words for form in forms]
            for side, words in zip(found, self.words, strict=True):
                side |= [not words.isdisjoint(each) for each in written]
        flags: Floats = np.subtract(*found, dtype=np.float64)
        return flags

    @property
    def events(self) -> Sequence[Event]:
        """That the value of a side is shown, of each side that has one of its own."""
        events = Event(lower=0.5), Event(upper=-0.5, direction=Direction.BACKWARD)
        own = zip(events, self.numbers, self.words, strict=True)
        return [event for event, numbers, words in own if numbers or words]

    def in_words(self, event: Event) -> str:
        """Return what an event says."""
        return f"output holds a value that only {event.direction.sides[0]} has"


NOTHING_HELD = HeldValues()


def _numbers(form: Form) -> Floats:
    """All finite numbers of data, and sums and means of those that stand together."""
    together = [each for each in form.blocks.values() if each.size > 1 and np.isfinite(each).all()]
    with np.errstate(over="ignore"):
        sums = [sum(each.tolist()) for each in together] + [each.sum() for each in together]
    means = [whole / each.size for whole, each in zip(sums, 2 * together, strict=True)]
    found = np.concatenate([form.values[:MOST_READ], sums, means])
    return np.unique(found[np.isfinite(found)])


def _written(numbers: Floats) -> Floats:
    """Numbers as they may be shown; at least two digits are left of what is rounded or cut."""
    with np.errstate(over="ignore", invalid="ignore"):
        found = [numbers, numbers.astype(np.float32).astype(np.float64)]
        for digits in (np.rint, np.trunc):
            coarser = np.full_like(numbers, math.nan)
            for unit in 10.0 ** np.arange(DECIMALS + 1):
                shown = digits(numbers * unit) / unit
                found.append(shown[(shown != coarser) & (np.abs(shown) >= 10 / unit)])
                coarser = shown
    every: Floats = np.unique(np.concatenate(found)) + 0.0  # no −0
    return every[np.isfinite(every)]


def _among(numbers: Floats, values: Sequence[float]) -> Flags:
    """Whether each number is one of some values in order."""
    if not values:
        return np.zeros(numbers.shape, dtype=bool)
    known = np.asarray(values)
    found: Flags = known[np.searchsorted(known, numbers).clip(max=len(known) - 1)] == numbers
    return found
