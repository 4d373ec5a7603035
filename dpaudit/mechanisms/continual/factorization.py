"""Factorisations A = B C of the prefix-sum matrix: noise is added to C x, then B is applied.

Streams ask for the sensitivity of C and the error of B, and the ledger for a stream of B z. A
sensitivity is exact or an upper bound, rounded up, for streams chosen adaptively too.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from dpaudit.base import validate
from dpaudit.base.by_class import by_class
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.base.fields import Kinded, at_least
from dpaudit.mechanisms.base import Norm
from dpaudit.mechanisms.pairs import Floats

_MOST_STEPS = 10**7
"""Ten times the longest training that we know of; a number for each step is 80 MB then."""
_MOST_PATTERNS = 10**8
"""Steps times participations of a search that has to look at all of them: some ten seconds."""


@dataclass(frozen=True)
class Factorization(Kinded, ABC):
    """Prefix sums of a stream x_1 … x_T released as A x + B z, with node noise z and A = B C.

    A is lower triangular with ones. What is published is a function of C x + z, so one stream's
    privacy is that of one release of C x. For Gaussian z this holds for streams chosen adaptively
    too (Denisov, McMahan, Rush, Smith and Thakurta 2022, Theorem 2.1), and for Laplace z on a tree
    by composing the nodes.

    A subclass is its fields, ``kind``, the two matrices, and a stream that samples B z, which the
    ledger has for those of this package.

    Attributes:
        steps: length T of the stream; no more prefix sums can be released.
    """

    family: ClassVar[str] = "factorization"
    homes: ClassVar[tuple[str, ...]] = ("dpaudit.mechanisms.continual",)
    steps: Annotated[int, at_least(1, _MOST_STEPS)]

    # -- privacy ---------------------------------------------------------------------------------

    def sensitivity(
        self,
        participations: int = 1,
        min_separation: int = 1,
        norm: Norm = Norm.L2,
        *,
        cyclic: bool = False,
    ) -> float:
        """Measure how far C x moves, in ``norm``, when one participant's contributions move by 1.

        All matrices C here are non-negative, so that contributions in the same direction are the
        worst: ‖Σ_i C e_i ⊗ u_i‖² = Σ_ij (CᵀC)_ij ⟨u_i, u_j⟩ for unit vectors u_i, so vectors and
        matrices move C x no further than numbers do (Choquette-Choo, McMahan, Rush and Thakurta
        2023, "Multi-epoch matrix factorization mechanisms").

        Args:
            participations: at how many steps one participant may contribute, at most.
            min_separation: how many steps lie from one of them to the next, at least.
            norm: L2 for Gaussian noise (Frobenius for matrices), L1 for Laplace noise.
            cyclic: whether it is exactly so many steps, at one of ``participations`` in turn.

        Returns:
            The sensitivity, rounded up. In L1, or for one participation, it is exact; in L2 for
            several see the subclass.

        Raises:
            InputError: if a number is not a positive integer, or the norm is neither L1 nor L2.
        """
        count, gap = self._pattern(participations, min_separation)
        if norm is Norm.L1:
            heaviest = _heaviest_cycle if cyclic else _heaviest_pattern
            return self._rounded_up(heaviest(self._column_sums(), count, gap))
        if norm is Norm.L2:
            found = self._cyclic_l2 if cyclic else self._l2_sensitivity
            return self._rounded_up(found(count, gap))
        raise InputError(f"norm is {norm!r}; a factorisation has an L1 and an L2 sensitivity.")

    def work(self, participations: int, min_separation: int, norm: Norm) -> float:
        """About how many elementary operations, 10^8 a second, its sensitivity takes, at most."""
        count, _ = self._pattern(participations, min_separation)
        searched = min(self.steps * count, _MOST_PATTERNS) if norm is Norm.L1 else 0
        return 100.0 * self.steps + 10.0 * searched

    def _pattern(self, participations: int, min_separation: int) -> tuple[int, int]:
        """The pattern, without the participations for which the stream is too short."""
        count = validate.integer_at_least(1, participations=participations)
        gap = validate.integer_at_least(1, min_separation=min_separation)
        return min(count, 1 + (self.steps - 1) // gap), min(gap, self.steps)

    def _rounded_up(self, sensitivity: float) -> float:
        """Covers the rounding of sums of T positive terms and of T-fold products."""
        return sensitivity * (1 + self.steps * 2.0**-50)

    @abstractmethod
    def _column_sums(self) -> Floats:
        """Sums of the columns of C, shape (T,)."""

    @abstractmethod
    def _l2_sensitivity(self, count: int, gap: int) -> float:
        """The L2 sensitivity for a pattern that fits into the stream."""

    def _cyclic_l2(self, count: int, gap: int) -> float:
        """The same where the steps are exactly ``gap`` apart; at most that of any others."""
        return self._l2_sensitivity(count, gap)

    @property
    def bandwidth(self) -> int:
        """C[i, j] = 0 but for 0 ≤ i − j < bandwidth: T where no fewer are known."""
        return self.steps

    # -- accuracy --------------------------------------------------------------------------------

    def error(self, noise_sigma: float) -> Floats:
        """Exact standard deviation of every entry of every released prefix sum, shape (T,).

        Args:
            noise_sigma: standard deviation of the node noise; for symmetric matrices that off the
                diagonal (the diagonal of the release has √2 times the error).
        """
        sigma = validate.positive(noise_sigma=noise_sigma)
        return sigma * np.sqrt(self._row_energy())

    def max_error(self, noise_sigma: float) -> float:
        """The largest entry of :meth:`error`."""
        return float(self.error(noise_sigma).max())

    @abstractmethod
    def _row_energy(self) -> Floats:
        """Squared norms of the rows of B, shape (T,)."""

    # -- matrices --------------------------------------------------------------------------------

    @abstractmethod
    def encoder(self) -> Floats:
        """The matrix C, shape (nodes, T); dense, so for checks and short streams."""

    @abstractmethod
    def decoder(self) -> Floats:
        """The matrix B, shape (T, nodes); dense, so for checks and short streams."""

    @property
    def is_square(self) -> bool:
        """Whether there are as many nodes as steps, so that the outputs determine the noise."""
        return True

    def noise_root(self) -> Floats:
        """A lower-triangular L of shape (T, T) with L Lᵀ = B Bᵀ: B itself where it is square."""
        return self.decoder()

    # -- sampling --------------------------------------------------------------------------------

    @by_class("dpaudit.ledger.samplers.streams")
    def stream(self, noise: Any) -> Any:
        """The :class:`~dpaudit.ledger.samplers.streams.NoiseStream` of B z on that node noise."""
        raise UnsupportedError(f"{self.kind} has no stream of noise.")


def _heaviest_cycle(weights: Floats, count: int, gap: int) -> float:
    """Largest total weight of ``count`` steps that are exactly ``gap`` apart, or those that fit."""
    padded = np.append(weights, np.zeros((count - 1) * gap))
    sums = np.zeros(len(weights))
    for number in range(count):
        sums += padded[number * gap :][: len(sums)]
    return float(sums.max())


def _heaviest_pattern(weights: Floats, count: int, gap: int) -> float:
    """Largest total weight of at most ``count`` steps that are ``gap`` apart, exactly.

    Where weights never increase, the earliest steps are the heaviest: the i-th step of a pattern is
    not before i gaps. Else best[t] is the largest total of j such steps among the first t; one pass
    for each j.
    """
    if gap == 1 or (np.diff(weights) <= 0).all():
        heaviest = weights if gap > 1 else np.sort(weights)[::-1]
        return math.fsum(heaviest[::gap][:count])
    if count * len(weights) > _MOST_PATTERNS:
        raise InputError(
            f"steps is {len(weights)} and participations {count}; their product must be at most "
            f"{_MOST_PATTERNS:.0e} where a pattern is searched for."
        )
    return float(heaviest_patterns(weights[None], count, gap)[0])


def heaviest_patterns(weights: Floats, count: int, gap: int) -> Floats:
    """Of each row the largest total of at most ``count`` entries that are ``gap`` apart."""
    best = np.zeros((len(weights), weights.shape[1] + 1))
    for _ in range(count):
        earlier = np.pad(best, ((0, 0), (gap, 0)))[:, 1 : best.shape[1]]
        best[:, 1:] = np.maximum.accumulate(weights + earlier, axis=1)
    return best[:, -1].copy()
