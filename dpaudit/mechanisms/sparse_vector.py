"""The sparse vector technique: which queries are above a threshold, until some are."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.base import validate
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.base.fields import Count, Finite, OpenProbability, Positive, Probability
from dpaudit.mechanisms.base import Norm, changes
from dpaudit.mechanisms.choice import largest_move
from dpaudit.mechanisms.enumerated import Enumerated, require_few
from dpaudit.mechanisms.pairs import DominatingPair, Floats, LaplaceBound, costless_pair
from dpaudit.mechanisms.quadrature import panels
from dpaudit.mechanisms.rounding import round_up

_REACH = 40.0
_SHARPEST = 1e-3
"""Scale of the queries' noise in that of the threshold, below which integrals are not computed."""


@dataclass(frozen=True)
class SparseVector(Enumerated):
    """Says of each query whether it is above a threshold, and halts after ``cutoff`` that are.

    Lyu, Su and Li 2017, Algorithm 7: noise of scale Δ/ε₁ on the threshold, drawn once, and of
    2cΔ/ε₂ on each query (cΔ/ε₂ if monotonic). With a cutoff of 1 and ε₁ = ε₂ it is AboveThreshold
    (Dwork and Roth 2014, Algorithm 1); as many uses as ``count`` says are their Algorithm 2, which
    draws the threshold anew after each answer above and composes better for large cutoffs.

    The private value is the vector of all answers to queries; the release has, for each of them, 1
    if it is above, 0 if below and −1 if it came after the end. With ``answers_share`` it has two
    columns, the second with an answer, of noise cΔ/ε₃ of its own, for each that is above, else 0.

    Attributes:
        epsilon: ε₁ + ε₂ + ε₃.
        threshold: T, a public number.
        cutoff: c, of how many queries it may say that they are above.
        query_sensitivity: Δ, the most by which any one query differs between neighbours.
        monotonic: whether one unit moves all queries in the same direction, if at all.
        answers_share: ε₃/ε; 0 for no numeric answers.
        threshold_share: ε₁/(ε₁ + ε₂); if not given 1/(1 + (2c)^⅔), or 1/(1 + c^⅔) for monotonic
            queries, which is the best (Lyu, Su and Li 2017, Section 4.2).
    """

    is_tight = False  # several theorems are known only as bounds
    kind: ClassVar[str] = "sparse-vector"
    norm: ClassVar[Norm] = Norm.CHANGE
    epsilon: Positive
    threshold: Finite
    cutoff: Count = 1
    query_sensitivity: Positive = 1.0
    monotonic: bool = False
    answers_share: Probability = 0.0
    threshold_share: OpenProbability | None = None

    # -- privacy ---------------------------------------------------------------------------------

    def pair(self, sensitivity: float) -> DominatingPair:
        """The Laplace law of ratio ε, which bounds whatever pays ε in small steps.

        For queries that move by tΔ it is tε-private (Lyu, Su and Li 2017, Theorems 4
        and 5), for all t: :class:`~dpaudit.mechanisms.pairs.LaplaceBound`.

        Raises:
            InputError: if the sensitivity, 1 where the queries change at all, is not 0 or 1.
        """
        if not changes(sensitivity, self.kind):
            return costless_pair()
        return LaplaceBound(Fraction(self.epsilon))

    def strength(self, sensitivity: float) -> tuple[Hashable, Fraction | float]:
        """ε: the pair is a post-processing of any with a larger one."""
        return (), self.pair(sensitivity).pure_epsilon

    def distance(self, one: NDArray[Any], other: NDArray[Any]) -> float:
        """Measure how far queries move, in units of Δ; above 1 where monotonic ones are not."""
        return largest_move(one, other, self.query_sensitivity, monotonic=self.monotonic)

    # -- release ---------------------------------------------------------------------------------

    def prepare(self, value: ArrayLike) -> NDArray[Any]:
        """A vector of answers."""
        queries = validate.real_array(value=value)
        if queries.ndim != 1 or queries.size == 0:
            raise InputError("value must be a vector, with the answer to each query.")
        return queries

    def transcript(self, above: NDArray[np.bool_], answers: Floats | None) -> Floats:
        """Tell which queries are above, until the cutoff, with their answers."""
        running = np.cumsum(above, axis=-1) - above < self.cutoff
        flags = np.where(running, above.astype(np.float64), -1.0)
        if answers is None:
            return flags
        return np.stack([flags, np.where(flags > 0, answers, 0.0)], axis=-1)

    @property
    def scales(self) -> tuple[float, float, float]:
        """Of the noise of threshold, queries and answers, rounded up; 0 for no answers."""
        unit = Fraction(self.query_sensitivity) / Fraction(self.epsilon)
        answers, moves = Fraction(self.answers_share), 1 if self.monotonic else 2
        best = 1 / (1 + (moves * self.cutoff) ** (2 / 3))
        share = Fraction(best if self.threshold_share is None else self.threshold_share)
        first = round_up(unit / ((1 - answers) * share))
        second = round_up(moves * self.cutoff * unit / ((1 - answers) * (1 - share)))
        third = round_up(self.cutoff * unit / answers) if answers else 0.0
        if math.inf in (first, second, third):
            raise InputError(
                "epsilon is too small for the sensitivity; no float is so large a scale, so it "
                "must be larger."
            )
        return first, second, third

    # -- law -------------------------------------------------------------------------------------

    def log_density(self, outputs: ArrayLike, value: ArrayLike) -> Floats:
        """Ln of the probability of the flags, and of the density of answers."""
        queries, given = self.prepare(value), np.asarray(outputs, dtype=np.float64)
        flags = given[..., 0] if self.answers_share else given
        distinct, which = np.unique(flags, axis=0, return_inverse=True)
        density = self._log_masses(distinct, queries)[which.ravel()]
        if self.answers_share:
            scale = self.scales[2]
            noise = np.abs(given[..., 1] - queries) / scale + math.log(2 * scale)
            density = density - np.where(flags > 0, noise, 0.0).sum(axis=-1)
        return np.asarray(density, dtype=np.float64)

    def outputs(self, value: NDArray[Any]) -> NDArray[Any]:
        """All transcripts of flags; refused where there are numeric answers."""
        if self.answers_share:
            raise UnsupportedError("sparse-vector with numeric answers has no list of outputs.")
        require_few(2**value.size, self.kind)
        patterns = np.array(list(itertools.product([False, True], repeat=value.size)))
        return np.unique(self.transcript(patterns, None), axis=0)

    def _log_masses(self, flags: Floats, queries: Floats) -> Floats:
        """Ln ∫ f(ρ) Π P[ν below ρ + T − q] Π P[ν above] dρ, minus infinity for what cannot be."""
        from scipy.special import logsumexp

        first, second, _ = self.scales
        sharp = second / first
        if sharp < _SHARPEST:
            raise UnsupportedError("the queries' noise is too small beside that of the threshold.")
        corners = (queries - self.threshold) / first
        rho, weight = panels(-_REACH, _REACH, corners, min(2.0, 8 * sharp))
        gaps = (rho[:, None] - corners) / sharp
        below, above = _log_laplace(gaps), _log_laplace(-gaps)
        log_weight = np.log(weight / 2) - np.abs(rho)
        sums = (flags == 0).astype(float) @ below.T + (flags == 1).astype(float) @ above.T
        masses: Floats = logsumexp(sums + log_weight, axis=1)
        possible = (flags == self.transcript(flags == 1, None)).all(axis=1)
        return np.where(possible, masses, -np.inf)


def _log_laplace(x: Floats) -> Floats:
    """Ln of the distribution function of Laplace noise of scale 1."""
    return np.where(x < 0, x - math.log(2), np.log1p(-np.exp(-np.abs(x)) / 2))
