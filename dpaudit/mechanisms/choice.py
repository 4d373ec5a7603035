"""Private choices: exponential mechanism, noisy maxima, top-k and sparse vector technique.

The exponential mechanism, permute-and-flip and report noisy max release the index of the largest
noisy utility, and differ in the law of the noise alone. The law of what is released follows from
the gaps to the best utility; where densities have corners, by nodes and weights chosen for them.
"""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from functools import cache
from itertools import pairwise, permutations
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.base import validate
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.base.fields import Count, Finite, OpenProbability, Positive, Probability, at_least
from dpaudit.mechanisms.base import Mechanism, Norm, changes
from dpaudit.mechanisms.pairs import (
    BoundedRangePair,
    DominatingPair,
    Floats,
    LaplaceBound,
    costless_pair,
)
from dpaudit.mechanisms.rounding import as_float, round_up

_MOST = 10**5


@dataclass(frozen=True)
class Enumerated(Mechanism):
    """A subclass lists its outputs, and declares ``log_density``; the rest follows."""

    @abstractmethod
    def outputs(self, value: NDArray[Any]) -> NDArray[Any]:
        """All that may come of a prepared value, in one order, shape (n, *shape of one).

        Raises:
            UnsupportedError: if they cannot be listed, or are too many.
        """

    def probabilities(self, value: ArrayLike) -> tuple[float, ...]:
        """The probability of each output."""
        every = self.outputs(self.prepare(value))
        return tuple(np.exp(self.log_density(every, value)).tolist())


def require_few(outputs: int, kind: str) -> None:
    """Refuse to list more than 100 000."""
    if outputs > _MOST:
        raise UnsupportedError(f"{kind} has more than {_MOST} outputs here, too many to list.")


_NODES = 24


def panels(low: float, high: float, corners: Floats, width: float = 2.0) -> tuple[Floats, Floats]:
    """Gauss–Legendre nodes and weights on [low, high], where all is smooth between corners and 0.

    Panels have a width of at most ``width``; corners are of any order, and may lie outside.
    """
    inside = corners[(corners > low) & (corners < high)]
    ends = np.unique(np.concatenate([[low, 0.0, high], inside]))
    cuts = [np.linspace(a, b, 1 + math.ceil((b - a) / width))[:-1] for a, b in pairwise(ends)]
    starts = np.concatenate(cuts)
    widths = np.diff(np.append(starts, high))
    nodes, weights = _unit()
    places = starts[:, None] + widths[:, None] * nodes
    return places.ravel(), (widths[:, None] * weights).ravel()


@cache
def _unit() -> tuple[Floats, Floats]:
    """Nodes and weights on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return (nodes + 1) / 2, weights / 2


_LARGEST = float(np.finfo(np.float64).max)
_FAR = 40.0
"""Noise beyond has a probability of e^-40, below the rounding of those that are computed."""
_MOST_CANDIDATES = 500


class Noise(StrEnum):
    """The law of what is added to utilities, of scale 2Δ/ε, or Δ/ε where they are monotonic."""

    LAPLACE = "laplace"
    EXPONENTIAL = "exponential"
    GUMBEL = "gumbel"


@dataclass(frozen=True)
class Choice(Enumerated):
    """Chooses the index of the largest utility with noise; a subclass says which noise.

    The private value is the vector of utilities, one for each candidate; the release is an index.

    Attributes:
        epsilon: the pure ε of one choice.
        utility_sensitivity: Δ, the most by which any one utility differs between neighbours.
    """

    norm: ClassVar[Norm] = Norm.CHANGE
    epsilon: Positive
    utility_sensitivity: Positive = 1.0

    @property
    @abstractmethod
    def law(self) -> Noise:
        """Of the noise."""

    @property
    def span(self) -> int:
        """By how many Δ two utilities may move apart: 2, but 1 where all move in one direction."""
        return 2

    # -- privacy ---------------------------------------------------------------------------------

    def pair(self, sensitivity: float) -> DominatingPair:
        """With Gumbel noise that of bounded range: the losses of two neighbours span at most ε.

        Else the Laplace law of ratio ε. A choice is tε-private for utilities that move by tΔ (Dwork
        and Roth 2014, Claim 3.9; McKenna and Sheldon 2020), and small steps lead from one vector to
        another: :class:`~dpaudit.mechanisms.pairs.LaplaceBound`. With exponential noise two
        candidates attain each point of that curve, as their gap decides by a Laplace noise; so
        these losses do not span ε alone, and ρ = ε²/8 is false of them.

        Raises:
            InputError: if the sensitivity, 1 where the utilities change at all, is not 0 or 1.
        """
        if not changes(sensitivity, self.kind):
            return costless_pair()
        if self.law is Noise.GUMBEL:
            return BoundedRangePair(self.epsilon)
        return LaplaceBound(Fraction(self.epsilon))

    @property
    def is_tight(self) -> bool:
        """Not with Laplace noise, of which the curve is a bound but at its end."""
        return self.law is not Noise.LAPLACE

    def strength(self, sensitivity: float) -> tuple[Hashable, Fraction | float]:
        """ε: the pair is a post-processing of any with a larger one."""
        return replace(self, epsilon=1.0), self.pair(sensitivity).pure_epsilon

    def distance(self, one: NDArray[Any], other: NDArray[Any]) -> float:
        """Measure how far utilities move, in units of Δ: 1 where they move as much as they may."""
        return largest_move(one, other, self.utility_sensitivity, monotonic=self.span == 1)

    # -- release ---------------------------------------------------------------------------------

    def prepare(self, value: ArrayLike) -> NDArray[Any]:
        """A vector of utilities."""
        utilities = validate.real_array(value=value)
        if utilities.ndim != 1 or utilities.size == 0:
            raise InputError("value must be a vector of utilities, one for each candidate.")
        return utilities

    # -- law -------------------------------------------------------------------------------------

    def outputs(self, value: NDArray[Any]) -> NDArray[Any]:
        """All indices."""
        return np.arange(value.size)

    def log_density(self, outputs: ArrayLike, value: ArrayLike) -> Floats:
        """A softmax with Gumbel noise, else by integration over the largest, of at most 500."""
        log_mass = _log_race(self.exponents(self.prepare(value)), self.law)
        chosen = np.asarray(outputs)
        possible = (chosen >= 0) & (chosen < log_mass.size) & (chosen == np.floor(chosen))
        index = np.where(possible, chosen, 0).astype(np.int64)
        density: Floats = np.where(possible, log_mass[index], -np.inf)
        return density

    def exponents(self, utilities: Floats) -> Floats:
        """ε (u − max u)/2Δ, at most 0; a finite gap beyond floats is as good as the largest."""
        factor = as_float(Fraction(self.epsilon) / (self.span * Fraction(self.utility_sensitivity)))
        with np.errstate(over="ignore"):
            gaps = np.maximum(utilities - utilities.max(axis=-1, keepdims=True), -_LARGEST)
            exponents = np.maximum(gaps * min(factor, _LARGEST), -_LARGEST)
        return np.where(utilities == -np.inf, -np.inf, exponents)


def largest_move(
    one: NDArray[Any], other: NDArray[Any], unit: float, *, monotonic: bool = False
) -> float:
    """The largest change of an entry, in ``unit``; infinite between vectors of different shape.

    Of a monotonic change it is the largest rise and fall together, of which there should be but
    one; half the noise is made for that.
    """
    if one.shape != other.shape:
        return math.inf
    moved = one.astype(np.float64) - other
    rise, fall = float(moved.max(initial=0.0)), float(-moved.min(initial=0.0))
    return (rise + fall if monotonic else max(rise, fall)) / unit


def _log_race(exponents: Floats, noise: Noise) -> Floats:
    """Ln P[i is the largest] = ln ∫ f(v − u_i) Π_{j ≠ i} F(v − u_j) dv."""
    if noise is Noise.GUMBEL:
        from scipy.special import log_softmax

        softmax: Floats = log_softmax(exponents)
        return softmax
    if exponents.size > _MOST_CANDIDATES:
        raise UnsupportedError(
            f"value has {exponents.size} utilities; this choice takes at most {_MOST_CANDIDATES}."
        )
    low, share = (0.0, 1.0) if noise is Noise.EXPONENTIAL else (-_FAR, 0.5)
    v, weight = panels(low, math.log(exponents.size) + _FAR, exponents)
    gaps = v[:, None] - exponents
    density = share * np.exp(-np.abs(gaps))
    log_mass = np.log(np.where(gaps < 0, density, 1 - density))
    others = np.exp(log_mass.sum(axis=1, keepdims=True) - log_mass)
    masses = (weight[:, None] * density * others).sum(axis=0)
    with np.errstate(divide="ignore"):
        log_masses: Floats = np.log(masses / masses.sum())
    return log_masses


@dataclass(frozen=True)
class ExponentialMechanism(Choice):
    """Chooses an index with probability proportional to exp(ε u / 2Δ) (McSherry and Talwar 2007).

    >>> import numpy as np
    >>> choice = ExponentialMechanism(epsilon=2.0, utility_sensitivity=1.0)
    >>> choice.release([0.0, 1000.0, 0.0], np.random.default_rng(0))
    1
    """

    kind: ClassVar[str] = "exponential"

    @property
    def law(self) -> Noise:
        """Gumbel noise has just this law."""
        return Noise.GUMBEL


@dataclass(frozen=True)
class PermuteAndFlip(Choice):
    """Takes the first candidate, in random order, of a coin of exp(ε (u − max u)/2Δ).

    McKenna and Sheldon 2020. It is report noisy max with exponential noise (Ding et al. 2021, *The
    permute-and-flip mechanism is identical to report-noisy-max with exponential noise*).

    Attributes:
        monotonic: whether one unit moves all utilities in the same direction, if at all, so that
            half the noise will do.
    """

    kind: ClassVar[str] = "permute-and-flip"
    monotonic: bool = False

    @property
    def law(self) -> Noise:
        """Exponential noise has just this law."""
        return Noise.EXPONENTIAL

    @property
    def span(self) -> int:
        """1 for monotonic utilities, else 2."""
        return 1 if self.monotonic else 2


@dataclass(frozen=True)
class NoisyMax(PermuteAndFlip):
    """Chooses the index of the largest utility with noise of scale 2Δ/ε; no noisy value leaves.

    Dwork and Roth 2014, Section 3.3. With exponential noise it is permute-and-flip (Ding et al.
    2021), and with Gumbel noise the exponential mechanism, which is better concentrated.

    Attributes:
        noise: its law.
    """

    kind: ClassVar[str] = "noisy-max"
    noise: Noise = Noise.LAPLACE

    @property
    def law(self) -> Noise:
        """The noise."""
        return self.noise


@dataclass(frozen=True)
class TopK(PermuteAndFlip):
    """Chooses the indices of the k largest utilities with Gumbel noise, in order; no value leaves.

    Its law is that of the exponential mechanism, asked k times for one of those that are left
    (Durfee and Rogers 2019, *Practical differentially private top-k selection with
    pay-what-you-get composition*, Lemma 4.2). So it costs k adaptive choices of bounded range ε.

    Attributes:
        epsilon: the pure ε of each of the k choices; together they are kε-private.
        k: how many are chosen, of at least as many candidates.
    """

    is_tight = False  # an adversary may choose utilities anew, neighbours may not
    kind: ClassVar[str] = "top-k"
    k: Annotated[int, at_least(1, 10**4)] = field(kw_only=True)

    @property
    def law(self) -> Noise:
        """Gumbel noise."""
        return Noise.GUMBEL

    def pair(self, sensitivity: float) -> DominatingPair:
        """Of several choices the Laplace law of ratio kε, as utilities that move by tΔ cost tkε.

        Raises:
            InputError: if the sensitivity is not 0 or 1.
        """
        if self.k > 1 and changes(sensitivity, self.kind):
            return LaplaceBound(self.k * Fraction(self.epsilon))
        return super().pair(sensitivity)

    def composed_of(self) -> tuple[tuple[Mechanism, float, int], ...]:
        """The k choices."""
        return ((replace(self, k=1), 1.0, self.k),) if self.k > 1 else ()

    def prepare(self, value: ArrayLike) -> NDArray[Any]:
        """A vector of at least k utilities."""
        utilities = super().prepare(value)
        if utilities.size < self.k:
            raise InputError(
                f"value has {utilities.size} utilities; top-k needs at least {self.k}."
            )
        return utilities

    def outputs(self, value: NDArray[Any]) -> NDArray[Any]:
        """All k of the indices, in any order."""
        require_few(math.perm(value.size, self.k), self.kind)
        return np.array(list(permutations(range(value.size), self.k)))

    def log_density(self, outputs: ArrayLike, value: ArrayLike) -> Floats:
        """The sum of k softmaxes, each over those that are left."""
        from scipy.special import log_softmax

        utilities, asked = self.prepare(value), np.asarray(outputs, dtype=np.float64)
        within = (asked >= 0) & (asked < utilities.size) & (asked == np.floor(asked))
        left, density = np.tile(utilities, (len(asked), 1)), np.zeros(len(asked))
        for place in np.where(within, asked, 0).astype(np.int64).T[:, :, None]:
            softmax = log_softmax(self.exponents(left), axis=-1)
            density += np.take_along_axis(softmax, place, axis=-1)[:, 0]
            np.put_along_axis(left, place, -np.inf, axis=-1)
        return np.where(within.all(axis=-1), density, -np.inf)


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
                "epsilon is too small for the sensitivity; the scale would be too large for "
                "a float, so epsilon must be larger."
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
            raise UnsupportedError(
                "the noise of the queries is too small compared with that of the threshold."
            )
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
