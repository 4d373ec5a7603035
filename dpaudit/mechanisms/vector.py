"""Vectors of which every coordinate has a sensitivity and noise of its own."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.base.errors import InputError
from dpaudit.base.fields import NonNegative, Positive
from dpaudit.mechanisms.additive import AdditiveNoise
from dpaudit.mechanisms.base import Mechanism, Norm, changes
from dpaudit.mechanisms.gaussian import Gaussian
from dpaudit.mechanisms.laplace import Laplace
from dpaudit.mechanisms.pairs import (
    DominatingPair,
    Floats,
    LaplaceBound,
    costless_pair,
    normal_pair,
)
from dpaudit.mechanisms.rounding import round_up, up

_MOST_PARTS = 500
"""Of more distinct coordinates no product of laws is computed."""


@dataclass(frozen=True)
class VectorNoise(AdditiveNoise):
    """Noise on vectors from a box, of which every coordinate may move at once.

    Noise is independent, and longer shifts dominate shorter ones, coordinate by coordinate. So two
    opposite corners cost the most: as much as one mechanism for each coordinate.

    Attributes:
        scales: of the noise of each coordinate, above 0: b of Laplace noise, σ of normal noise.
        sensitivities: Δ_i, the most by which each coordinate differs between neighbours.
    """

    is_tight = False  # its parts are, which alone count where nothing is sampled
    norm: ClassVar[Norm] = Norm.CHANGE
    real_valued: ClassVar[bool] = True
    of_one: ClassVar[type[Laplace] | type[Gaussian]]
    scales: tuple[Positive, ...]
    sensitivities: tuple[NonNegative, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not len(self.scales) == len(self.sensitivities) > 0:
            raise InputError(
                f"sensitivities has {len(self.sensitivities)} entries and scales "
                f"{len(self.scales)}; give one of each for every coordinate."
            )

    @property
    def _ratios(self) -> list[Fraction]:
        """Δ_i over the scale."""
        both = zip(self.sensitivities, self.scales, strict=True)
        return [Fraction(moved) / Fraction(scale) for moved, scale in both]

    def pair(self, sensitivity: float) -> DominatingPair:
        """The pair of one long shift, of Laplace noise an upper bound, of which samples need one.

        Raises:
            InputError: if the sensitivity, 1 where the vector changes at all, is not 0 or 1.
        """
        if not changes(sensitivity, self.kind):
            return costless_pair()
        if self.of_one is Laplace:
            return LaplaceBound(sum(self._ratios, Fraction(0)))
        return normal_pair(up(math.hypot(*map(round_up, self._ratios)), 2), 1.0)

    def composed_of(self) -> tuple[tuple[Mechanism, float, int], ...]:
        """One mechanism for each coordinate that moves, equal ones together."""
        ratios, both = self._ratios, zip(self.scales, self.sensitivities, strict=True)
        alike = {ratio: each for ratio, each in zip(ratios, both, strict=True) if ratio}
        if len(alike) > _MOST_PARTS:
            return ()
        return tuple((self.of_one(b), moved, ratios.count(at)) for at, (b, moved) in alike.items())

    def for_group(self, size: int) -> Self:
        """A box so many times as wide."""
        wide = (round_up(Fraction(each) * size) for each in self.sensitivities)
        return replace(self, sensitivities=tuple(wide))

    def distance(self, one: NDArray[Any], other: NDArray[Any]) -> float:
        """Measure by how much of its sensitivity a coordinate moves, at most."""
        if one.shape != other.shape:
            return math.inf
        moved = np.abs(one.astype(np.float64) - other)
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.where(moved > 0, moved / self.sensitivities, 0.0).max())

    def prepare(self, value: ArrayLike) -> NDArray[Any]:
        """A vector of as many entries as there are scales."""
        vector = super().prepare(value)
        if vector.shape != (len(self.scales),):
            raise InputError(f"value must be a vector of {len(self.scales)} entries, as scales is.")
        return vector

    def log_noise_density(self, noise: Floats) -> Floats:
        """Take that of the standard law, in units of the scales."""
        standard: Floats = self.of_one(1.0).log_noise_density(noise / self.scales)
        return standard - np.log(self.scales)


@dataclass(frozen=True)
class LaplaceVector(VectorNoise):
    """Adds Laplace noise of its own scale to each coordinate, of which each may move by its own Δ.

    ε is Σ Δ_i/b_i.
    """

    kind: ClassVar[str] = "laplace-vector"
    of_one = Laplace


@dataclass(frozen=True)
class GaussianVector(VectorNoise):
    """Adds normal noise of its own σ to each coordinate, of which each may move by its own Δ.

    In units of σ noise is the same in all directions, so that μ² = Σ (Δ_i/σ_i)².
    """

    kind: ClassVar[str] = "gaussian-vector"
    of_one = Gaussian
