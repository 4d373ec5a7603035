"""Collections by key of a library, so that what one unit changes stays at its keys.

Releases of neighbours are compared one by one: an order, or a sample, that follows from the order
of rows would be no match.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from dpaudit.observing.recorder import Recorder


class Lazy:
    """What is computed whenever it is asked for, as all collections of the library."""

    def __init__(self, made: Callable[[], Iterable[Any]]) -> None:
        self._made = made

    def __iter__(self) -> Iterator[Any]:
        return iter(self._made())


def by_key(row: Any) -> str:
    """By what rows of a key and what it has are put in order."""
    return repr(row[0])


def in_order(recorder: Recorder, original: Any) -> Any:
    """In the order of keys, not of rows, in which releases of neighbours would be no match."""

    def map_values(own: Any, col: Any, fn: Any, *given: Any, **options: Any) -> Any:
        if not recorder.active:
            return original(own, col, fn, *given, **options)

        def run() -> Iterator[Any]:
            rows = list(col)
            places = sorted(range(len(rows)), key=lambda place: by_key(rows[place]))
            made = {place: fn(rows[place][1]) for place in places}
            return ((row[0], made[place]) for place, row in enumerate(rows))

        return Lazy(run)

    return map_values


def sampled(recorder: Recorder, original: Any) -> Any:
    """Each unit's sample by a generator of its own, so that it is no matter who else is there."""

    def sample(own: Any, col: Any, n: int, *given: Any, **options: Any) -> Any:
        if not recorder.active:
            return original(own, col, n, *given, **options)
        salt = recorder.memory.setdefault("salt", np.random.randint(2**31))  # noqa: NPY002 - theirs

        def run() -> Iterator[Any]:
            for key, held in own.group_by_key(col):
                rng = np.random.default_rng([salt, *repr(key).encode()])
                places = range(len(held)) if len(held) <= n else rng.permutation(len(held))[:n]
                yield key, [held[place] for place in places]

        return Lazy(run)

    return sample
