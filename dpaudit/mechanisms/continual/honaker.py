"""Honaker's estimator of prefix sums from the whole tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpaudit.mechanisms.continual.trees import Tree
from dpaudit.mechanisms.pairs import Floats


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
