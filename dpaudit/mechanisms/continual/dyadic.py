"""The most that a participation pattern can move the nodes of a tree, exactly."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Table = NDArray[np.int64]
"""The largest square norm of j = 1, 2, … participations in a block of steps, of which none is among
its first a or its last c steps: indexed by j − 1, a and c. Beyond the last a and c there are none.
"""

_NEVER = -(2**60)


def search_work(steps: int, count: int, gap: int) -> float:
    """Estimate the elementary operations that :func:`heaviest` takes, at most."""
    total, size = 1e6, 2
    while size <= steps:
        fits = min(count, -(-size // (2 * gap)))
        ends = gap if 4 * size <= steps else 1  # larger blocks are at an end
        total += fits**2 * min(gap, size) * ends**2 * (size > gap)
        size *= 2
    return total


@lru_cache(maxsize=256)
def heaviest(blocks: tuple[int, ...], count: int, gap: int, both: bool) -> int:
    """The largest Σ n² over the noisy nodes, where a pattern puts n of its steps into a node.

    Two patterns are joined where the last step of the one and the first of the other are ``gap``
    apart. Nodes of one level are alike, so that a table for each level is enough.

    Args:
        blocks: levels of the complete nodes that the stream is made of, in turn.
        count: steps of a pattern, at most.
        gap: steps from one to the next, at least 1.
        both: whether of two siblings both are noisy, and not the left one alone.
    """
    search = _Search(count, gap, both)
    found, size = search.block(blocks[0], True, (False, len(blocks) > 1)), 1 << blocks[0]
    for place, level in enumerate(blocks[1:], 2):
        more = place < len(blocks)
        found = search.joined(found, size, search.block(level, True, (True, more)), 1 << level)
        size += 1 << level
    return int(found.max())


class _Search:
    """The tables of all levels."""

    def __init__(self, count: int, gap: int, both: bool) -> None:
        self.count, self.gap, self.both = count, gap, both
        self._known: dict[tuple[int, bool, tuple[bool, bool]], Table] = {}

    def block(self, level: int, noisy: bool, inner: tuple[bool, bool]) -> Table:
        """Of a node; ``inner`` says of both ends whether another block is joined there."""
        key = (level, noisy, inner)
        if key not in self._known:
            self._known[key] = self._made(*key)
        return self._known[key]

    def _made(self, level: int, noisy: bool, inner: tuple[bool, bool]) -> Table:
        if level == 0:
            table = np.full((1, *(min(self.gap, 2) if one else 1 for one in inner)), _NEVER)
            table[0, 0, 0] = noisy
            return table
        left = self.block(level - 1, True, (inner[0], True))
        right = self.block(level - 1, self.both, (True, inner[1]))
        table = self.joined(left, 1 << (level - 1), right, 1 << (level - 1))
        own = np.arange(1, len(table) + 1)[:, None, None] ** 2
        return table + own * int(noisy)

    def joined(self, left: Table, size: int, right: Table, other: int) -> Table:
        """Return the table of two neighbouring blocks of so many steps."""
        gap, whole = self.gap, size + other
        first, last = (min(gap, whole + 1) if n > 1 else 1 for n in (left.shape[1], right.shape[2]))
        most = min(self.count, 1 + (whole - 1) // gap)
        table = np.full((most, first, last), _NEVER)
        ahead = left[:, _within(range(first), left.shape[1])]
        behind = right[:, :, _within(range(last), right.shape[2])]
        # All in one of the two: the steps of the other one are a part of the margin.
        table[: len(left)] = ahead[:, :, _within(range(-other, last - other), left.shape[2])]
        alone = behind[:, _within(range(-size, first - size), right.shape[1])]
        np.maximum(table[: len(right)], alone, out=table[: len(right)])
        for margin in range(max(0, gap - other), min(gap, size)):
            rest = behind[:, gap - 1 - margin, None, :]
            for number in range(1, min(len(left), most - 1) + 1):
                here = table[number : number + len(rest)]
                own = ahead[number - 1, :, margin, None]
                np.maximum(here, own + rest[: len(here)], out=here)
        return table


def _within(indices: range, length: int) -> NDArray[np.int64]:
    within: NDArray[np.int64] = np.clip(np.array(indices), 0, length - 1)
    return within
