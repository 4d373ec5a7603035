"""Tree aggregation: dyadic intervals with noise, the binary mechanism, and Honaker's estimator.

Plans name trees as factorisations of their streams. The worst pattern of participations is searched
for exactly, or bounded from above where the search would take long.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpaudit.mechanisms.base import Norm
from dpaudit.mechanisms.continual.factorization import Factorization
from dpaudit.mechanisms.pairs import Floats

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


_MOST_WORK = 2e9
"""Of a search for the worst pattern: some ten seconds, and for 4096 steps one at most."""
_MOST_CYCLES = 10**7
"""Patterns times participations of a search through all cycles."""


@dataclass(frozen=True)
class Tree(Factorization):
    """Noisy sums of dyadic intervals; a prefix is put together from at most ``levels`` of them.

    C is 0 or 1, so that the worst participants contribute 1 at every step of a pattern, as numbers
    (see :meth:`sensitivity`), and the worst pattern is found by going through all of them, block by
    block. Where that takes too long, as for 10^4 steps far apart, it is an upper bound.

    Attributes:
        steps: length T of the stream.
        release_root: whether the node over all T steps gets noise of its own. It exists if T is a
            power of two above 1, and serves the last prefix alone; without it that prefix is the
            sum of the two halves, and every other prefix costs one level less.
    """

    _draws_both: ClassVar[bool]
    release_root: bool = False

    @property
    def levels(self) -> int:
        """In how many nodes the first step is counted; no other step is in more.

        ⌊log₂T⌋ + 1 with the root and max(1, ⌈log₂T⌉) without: the two differ for powers of two.
        """
        if self.release_root:
            return self.steps.bit_length()
        return max(1, (self.steps - 1).bit_length())

    def _rounded_up(self, sensitivity: float) -> float:
        """Whole numbers are exact, and so is the next float above a correctly rounded root."""
        whole = sensitivity == int(sensitivity)
        return sensitivity if whole else math.nextafter(sensitivity, math.inf)

    @abstractmethod
    def _drawn(self) -> list[int]:
        """How many nodes of each level get noise."""

    def _l2_sensitivity(self, count: int, gap: int) -> float:
        """Exact where the search is short, else the bound."""
        if search_work(self.steps, count, gap) > _MOST_WORK:
            return math.sqrt(self._fill(count, gap))
        top = self.levels - 1
        blocks = [top] * (self.steps >> top)
        blocks += [level for level in reversed(range(top)) if self.steps >> level & 1]
        return math.sqrt(heaviest(tuple(blocks), count, gap, self._draws_both))

    def _cyclic_l2(self, count: int, gap: int) -> float:
        """Exact: Σ n² is the sum over the steps of a pattern of the n of the nodes they are in."""
        starts = np.arange(self.steps - (count - 1) * gap)[:, None]
        if starts.size * count > _MOST_CYCLES:
            return self._l2_sensitivity(count, gap)
        totals = np.zeros(len(starts), dtype=np.int64)
        top = self.levels - 1
        for level, drawn in enumerate(self._drawn()):
            node = (starts + gap * np.arange(count)) >> level
            first = np.maximum(-((starts - (node << level)) // gap), 0)
            beyond = np.minimum(-((starts - ((node + 1) << level)) // gap), count)
            stride = 1 if self._draws_both or level == top else 2
            noisy = (node % stride == 0) & (node // stride < drawn)
            totals += (noisy * (beyond - first)).sum(axis=1)
        return math.sqrt(int(totals.max()))

    def work(self, participations: int, min_separation: int, norm: Norm) -> float:
        """With that of the search for the worst pattern."""
        searched = search_work(self.steps, *self._pattern(participations, min_separation))
        searched *= norm is Norm.L2 and searched <= _MOST_WORK
        cycles = 100.0 * min(self.steps * self._pattern(participations, min_separation)[0], 1e7)
        return super().work(participations, min_separation, norm) + searched + cycles

    def _nodes(self, prefix: int) -> list[tuple[int, int]]:
        """The (level, number) of the nodes that make up a prefix, largest first."""
        top = self.levels - 1
        largest = [(top, number) for number in range(prefix >> top)]
        digits = [level for level in reversed(range(top)) if prefix >> level & 1]
        return largest + [(level, (prefix >> level) - 1) for level in digits]

    def _weighted_nodes(self, weights: Floats) -> Floats:
        """Sum of ``weights[level]`` over the nodes of every prefix, shape (T,)."""
        prefixes = np.arange(1, self.steps + 1)
        top = self.levels - 1
        total: Floats = weights[top] * (prefixes >> top).astype(np.float64)
        for level in range(top):
            total += weights[level] * (prefixes >> level & 1)
        return total

    def _fill(self, count: int, gap: int) -> int:
        """At least the squared norm of C u for the indicator u of any pattern.

        At level l the pattern puts n_i steps into node i; Σ n_i² is largest when as few nodes as
        possible hold as many steps as fit, ⌈2^l/gap⌉.
        """
        total = 0
        for level, available in enumerate(self._drawn()):
            fits = -(-(1 << level) // gap)
            full = min(count // fits, available)
            rest = min(fits, count - full * fits) if full < available else 0
            total += full * fits**2 + rest**2
        return total


@dataclass(frozen=True)
class BinaryTree(Tree):
    """The binary mechanism (Dwork, Naor, Pitassi and Rothblum 2010; Chan, Shi and Song 2011).

    Prefix t is the sum of the disjoint dyadic intervals of its binary digits; nodes that no prefix
    needs are never drawn. B is then square and lower triangular with ones on the diagonal.

    The L2 sensitivity is the root of the number of levels for one participation.

    The stream keeps the noise of the nodes of the current prefix: at most ``levels`` arrays (two,
    for two steps without the root).

    >>> BinaryTree(1024).levels, BinaryTree(1024, release_root=True).levels, BinaryTree(1000).levels
    (10, 11, 10)
    """

    kind: ClassVar[str] = "binary-tree"
    _draws_both: ClassVar[bool] = False

    def _drawn(self) -> list[int]:
        """Those that appear in any prefix: the left children, and the top."""
        complete = [self.steps >> level for level in range(self.levels)]
        return [(number + 1) // 2 for number in complete[:-1]] + complete[-1:]

    def _column_sums(self) -> Floats:
        steps = np.arange(self.steps)
        sums = np.zeros(self.steps)
        for level, used in enumerate(self._drawn()):
            node = steps >> level
            stride = 1 if level == self.levels - 1 else 2
            sums += (node % stride == 0) & (node // stride < used)
        return sums

    def _row_energy(self) -> Floats:
        return self._weighted_nodes(np.ones(self.levels))

    def encoder(self) -> Floats:
        """C: row t has ones over the node that prefix t is the first to need."""
        matrix = np.zeros((self.steps, self.steps))
        for prefix in range(1, self.steps + 1):
            level, number = self._nodes(prefix)[-1]
            matrix[prefix - 1, number << level : (number + 1) << level] = 1.0
        return matrix

    def decoder(self) -> Floats:
        """B: row t has ones at the prefixes that first needed its nodes."""
        matrix = np.zeros((self.steps, self.steps))
        for prefix in range(1, self.steps + 1):
            for level, number in self._nodes(prefix):
                matrix[prefix - 1, ((number + 1) << level) - 1] = 1.0
        return matrix


@dataclass(frozen=True)
class HonakerTree(Tree):
    """Honaker's online estimator: every node is averaged with what its children say of it.

    With v₀ = 1, a node's own noise has weight w = 2v_{l−1}/(1 + 2v_{l−1}) and the sum of its
    children's estimates 1 − w, the inverse of their variances; its variance is v_l = w (Honaker
    2015, "Efficient use of differentially private binary trees", the estimate from below). All
    complete nodes are drawn.

    The L2 sensitivity is the root of the number of levels for one participation.

    The stream keeps the estimates of the nodes of the current prefix: at most ``levels`` arrays
    (two, for two steps without the root).
    """

    kind: ClassVar[str] = "honaker-tree"
    _draws_both: ClassVar[bool] = True

    def _drawn(self) -> list[int]:
        """All complete ones."""
        return [self.steps >> level for level in range(self.levels)]

    def _column_sums(self) -> Floats:
        steps = np.arange(self.steps)
        sums = np.zeros(self.steps)
        for level, complete in enumerate(self._drawn()):
            sums += steps >> level < complete
        return sums

    def _row_energy(self) -> Floats:
        return self._weighted_nodes(node_variances(self.levels))

    def encoder(self) -> Floats:
        """C: one row of ones for every complete node, level by level."""
        rows = [
            np.repeat(np.arange(self.steps >> level) == number, 1 << level)
            for level, complete in enumerate(self._drawn())
            for number in range(complete)
        ]
        return np.array([np.pad(row, (0, self.steps - len(row))) for row in rows], dtype=float)

    def decoder(self) -> Floats:
        """B: the weights of all nodes in the estimate of each prefix."""
        first = np.cumsum([0, *self._drawn()])
        variances = node_variances(self.levels)
        estimates = np.zeros((first[-1], first[-1]))
        for level, complete in enumerate(self._drawn()):
            for number in range(complete):
                row = first[level] + number
                estimates[row, row] = variances[level]
                if level:
                    left = first[level - 1] + 2 * number
                    children = estimates[left] + estimates[left + 1]
                    estimates[row] += (1 - variances[level]) * children
        rows = [
            sum(estimates[first[level] + number] for level, number in self._nodes(prefix))
            for prefix in range(1, self.steps + 1)
        ]
        return np.array(rows)

    @property
    def is_square(self) -> bool:
        """Only if every node is a step."""
        return sum(self._drawn()) == self.steps

    def noise_root(self) -> Floats:
        """The Cholesky factor of B Bᵀ, since B has more columns than rows."""
        decoder = self.decoder()
        covariance: Floats = decoder @ decoder.T
        return np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)


def node_variances(levels: int) -> Floats:
    """The variance of a node's estimate at each level, 2^l/(2^{l+1} − 1): from 1 down to 1/2."""
    powers = 2.0 ** np.arange(levels)
    return powers / (2 * powers - 1)
