"""Tree aggregation: dyadic intervals with noise, and the binary mechanism.

Plans name trees as factorisations of their streams. The worst pattern of participations is searched
for exactly, or bounded from above where the search would take long.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpaudit.mechanisms.base import Norm
from dpaudit.mechanisms.continual.dyadic import heaviest, search_work
from dpaudit.mechanisms.continual.factorization import Factorization
from dpaudit.mechanisms.pairs import Floats

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
