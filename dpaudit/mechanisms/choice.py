"""Private choices of one of many candidates: the index of the largest noisy utility.

The exponential mechanism, permute-and-flip and report noisy max differ in the law of the noise
alone. What is released is an index, and its law follows from the gaps to the best utility.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.base import validate
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.base.fields import Positive
from dpaudit.mechanisms.base import Norm, changes
from dpaudit.mechanisms.enumerated import Enumerated
from dpaudit.mechanisms.pairs import (
    BoundedRangePair,
    DominatingPair,
    Floats,
    LaplaceBound,
    costless_pair,
)
from dpaudit.mechanisms.quadrature import panels
from dpaudit.mechanisms.rounding import as_float

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
            f"value has {exponents.size} utilities; the law of a noisy maximum is computed for at "
            f"most {_MOST_CANDIDATES}."
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
