"""Values that one neighbour alone holds: a raw record, a name, the answer without noise.

A leak in one run of thousands moves no score that a pilot could choose, and may be all that there
is to find. The data alone say which values tell, so that an event of its own needs no pilot.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Self

import numpy as np

from dpaudit.auditing.evidence.types import Direction, Event
from dpaudit.mechanisms.pairs import Floats
from dpaudit.project import AuditPair

MOST_VALUES = 1_000
"""Numbers, and words, of a data set that are looked for."""
DECIMALS = 6
"""The most decimals to which a value may have been rounded."""
REPEATS = 3
"""Occurrences in a pilot of continuous outputs from which on a value is no chance."""
CONTINUOUS = 0.9
"""Share of distinct numbers in outputs from which on they count as continuous."""
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
WORD = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True)
class HeldValues:
    """Whether an output holds a value of one side alone: 1 of x, −1 of x', 0 of neither or both.

    Attributes:
        numbers: of x alone and of x' alone, as they are, rounded and cut, in single precision too;
            sums and means of them.
        words: likewise, of texts.
    """

    numbers: tuple[tuple[float, ...], tuple[float, ...]]
    words: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())
    name: str = "value that one side alone holds"
    method: str = "values that one side alone holds"

    @classmethod
    def of(cls, pair: AuditPair) -> Self:
        """The values of two data sets of any nesting."""
        held = [_Held.of(data) for data in (pair.x, pair.x_prime)]
        forms = [frozenset(_written(each.numbers)) for each in held]
        one, other = (
            (tuple(sorted(forms[own] - forms[far])), frozenset(held[own].words - held[far].words))
            for own, far in ((0, 1), (1, 0))
        )
        return cls((one[0], other[0]), (one[1], other[1]))

    def with_repeats(self, x: Floats, x_prime: Floats) -> Self:
        """The same with numbers that come again and again on one side of a pilot alone.

        Args:
            x: pilot outputs on x, shape (n, …); nothing is added if they are not continuous.
            x_prime: those on x'.
        """
        shown = [np.unique(side.ravel(), return_counts=True) for side in (x, x_prime)]
        if any(
            len(values) < CONTINUOUS * side.size
            for (values, _), side in zip(shown, (x, x_prime), strict=True)
        ):
            return self
        more = (
            np.setdiff1d(shown[own][0][shown[own][1] >= REPEATS], shown[far][0])
            for own, far in ((0, 1), (1, 0))
        )
        one, other = (
            (*known, *found[:MOST_VALUES].tolist())
            for known, found in zip(self.numbers, more, strict=True)
        )
        return replace(self, numbers=(one, other))

    def __call__(self, outputs: Floats) -> Floats:
        """The flags of numbers, shape (n, …)."""
        flat = outputs.reshape(len(outputs), -1)
        one, other = (
            np.isin(flat, values).any(axis=1) if values else np.zeros(len(flat), dtype=bool)
            for values in self.numbers
        )
        flags: Floats = np.subtract(one, other, dtype=np.float64)
        return flags

    def flags(self, numbers: Iterable[Iterable[Floats]], texts: Sequence[Sequence[str]]) -> Floats:
        """The flags of outputs of any kind, by the numbers and the texts of each, shape (n,)."""
        found = np.zeros((2, len(texts)), dtype=bool)
        rows = [
            np.concatenate([*map(np.ravel, own), [*chain.from_iterable(map(read_numbers, held))]])
            for own, held in zip(numbers, texts, strict=True)
        ]
        owners = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
        every = np.concatenate([np.zeros(0), *rows])
        for flags, values in zip(found, self.numbers, strict=True):
            flags[owners[np.isin(every, values)]] = True
        if any(self.words):
            written = [{word for text in held for word in WORD.findall(text)} for held in texts]
            for flags, words in zip(found, self.words, strict=True):
                flags |= [not words.isdisjoint(each) for each in written]
        flagged: Floats = np.subtract(*found, dtype=np.float64)
        return flagged

    @property
    def events(self) -> Sequence[Event]:
        """That the value of a side is shown, of each side that has one of its own."""
        events = Event(lower=0.5), Event(upper=-0.5, direction=Direction.BACKWARD)
        own = zip(events, self.numbers, self.words, strict=True)
        return [event for event, numbers, words in own if numbers or words]

    def in_words(self, event: Event) -> str:
        """Return what an event says."""
        side = "x" if event.direction is Direction.FORWARD else "x'"
        return f"output holds a value that {side} alone holds"


def read_numbers(text: str) -> Iterator[float]:
    """The numbers in a text."""
    yield from (float(each.group()) for each in NUMBER.finditer(text))


@dataclass
class _Held:
    numbers: set[float]
    words: set[str]

    @classmethod
    def of(cls, data: Any) -> _Held:
        """All finite numbers and words of data, up to ``MOST_VALUES`` each."""
        held, waiting = cls(set(), set()), [data]
        while waiting and max(len(held.numbers), len(held.words)) < MOST_VALUES:
            one = waiting.pop()
            if isinstance(one, str):
                held.words |= set(WORD.findall(one))
                held.numbers |= set(read_numbers(one))
            elif isinstance(one, int | float | np.number) and not isinstance(one, bool):
                held.numbers.add(_float(one))
            elif isinstance(one, dict):
                waiting += [*one.values(), *one]
            elif isinstance(one, list | tuple | set | frozenset | np.ndarray):
                each = one.ravel().tolist() if isinstance(one, np.ndarray) else [*one]
                waiting += each[:MOST_VALUES]
                numbers = [_float(item) for item in each if isinstance(item, int | float)]
                if len(numbers) == len(each) > 1 and all(map(math.isfinite, numbers)):
                    held.numbers |= {sum(numbers), sum(numbers) / len(numbers)}
        held.numbers = {each for each in held.numbers if math.isfinite(each)}
        return held


def _float(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf


def _written(numbers: Iterable[float]) -> Iterator[float]:
    """Each number as it may be shown, if two digits are left or it is shown as it is."""
    with np.errstate(over="ignore"):
        for number in numbers:
            yield number + 0.0
            yield float(np.float32(number))
            cut = float(math.trunc(number))
            rounded = (round(number, decimals) for decimals in range(DECIMALS + 1))
            yield from (each for each in (cut, *rounded) if abs(each) >= 10 * _unit(each, number))


def _unit(shown: float, number: float) -> float:
    """The place of the last digit that is left of a number, 0 where all are."""
    if shown == number:
        return 0.0
    return next(10.0**-at for at in range(DECIMALS + 1) if round(shown, at) == shown)
