"""Vectors of which every coordinate has a sensitivity and noise of its own."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.errors import InputError
from dpaudit.fields import NonNegative, Positive
from dpaudit.mechanisms.additive import AdditiveNoise
from dpaudit.mechanisms.base import Mechanism, Norm, changes
from dpaudit.mechanisms.exact import ExactSource
from dpaudit.mechanisms.gaussian import Gaussian
from dpaudit.mechanisms.laplace import Laplace
from dpaudit.mechanisms.pairs import (
    DominatingPair,
    Floats,
    LaplaceBound,
    costless_pair,
    normal_pair,
)
from dpaudit.mechanisms.rounding import root, round_up
from dpaudit.mechanisms.tails import Tails

_MOST_PARTS = 500
"""Of more distinct coordinates no product of laws is computed."""


@dataclass(frozen=True)
class _VectorNoise(AdditiveNoise):
    """What both share: neighbours lie in a box, of which every coordinate may move at once.

    Attributes:
        scales: of the noise of each coordinate, above 0: b of Laplace noise, σ of normal noise.
        sensitivities: Δ_i, the most by which each coordinate differs between neighbours.
    """

    norm: ClassVar[Norm] = Norm.CHANGE
    real_valued: ClassVar[bool] = True
    _of_one: ClassVar[type[Laplace] | type[Gaussian]]
    scales: tuple[Positive, ...]
    sensitivities: tuple[NonNegative, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not len(self.scales) == len(self.sensitivities) > 0:
            raise InputError(
                f"sensitivities has {len(self.sensitivities)} entries and scales "
                f"{len(self.scales)}; give one of each for every coordinate."
            )

    # -- privacy ---------------------------------------------------------------------------------

    def pair(self, sensitivity: float) -> DominatingPair:
        """Of the corner of the box, as longer shifts dominate coordinate by coordinate.

        Raises:
            InputError: if the sensitivity, 1 where the vector changes at all, is not 0 or 1.
        """
        return self._corner() if changes(sensitivity, self.kind) else costless_pair()

    @abstractmethod
    def _corner(self) -> DominatingPair:
        """The pair of two opposite corners."""

    @property
    def _ratios(self) -> list[Fraction]:
        """Δ_i over the scale."""
        both = zip(self.sensitivities, self.scales, strict=True)
        return [Fraction(moved) / Fraction(scale) for moved, scale in both]

    def for_group(self, size: int) -> Self:
        """A box so many times as wide."""
        wide = (round_up(Fraction(each) * size) for each in self.sensitivities)
        return replace(self, sensitivities=tuple(wide))

    def distance(self, one: NDArray[Any], other: NDArray[Any]) -> float:
        """By how much of its sensitivity a coordinate moves, at most."""
        if one.shape != other.shape:
            return np.inf
        moved, most = np.abs(one.astype(np.float64) - other), np.array(self.sensitivities)
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.where(moved > 0, moved / most, 0.0).max())

    def worst_pairs(self) -> tuple[tuple[list[float], list[float], str], ...]:
        """Two opposite corners of the box."""
        corner = list(self.sensitivities)
        return (([0.0] * len(corner), corner, "all coordinates"),) if any(corner) else ()

    # -- release ---------------------------------------------------------------------------------

    def prepare(self, value: ArrayLike) -> NDArray[Any]:
        """A vector of as many entries as there are scales."""
        vector = super().prepare(value)
        if vector.shape != (len(self.scales),):
            raise InputError(f"value must be a vector of {len(self.scales)} entries, as scales is.")
        return vector

    def noise(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Noise of each coordinate's scale; the last axis is that of coordinates."""
        drawn: Floats = getattr(rng, self._of_one.numpy_law)(scale=self.scales, size=shape)
        return drawn

    def require_exact(self, sensitivity: float, source: ExactSource) -> None:
        """Refuse what cannot be drawn for one of the coordinates."""
        super().require_exact(sensitivity, source)
        for scale, moved in zip(self.scales, self.sensitivities, strict=True):
            self._of_one(scale).require_exact(moved, source)

    def sample_exactly(
        self, values: NDArray[Any], sensitivity: float, source: ExactSource
    ) -> NDArray[Any]:
        """Every coordinate on a grid of its own, so that each costs at most what is declared."""
        both = enumerate(zip(self.scales, self.sensitivities, strict=True))
        columns = [
            self._of_one(scale).sample_exactly(values[..., at], moved, source)
            for at, (scale, moved) in both
        ]
        return np.stack(columns, axis=-1)

    # -- law -------------------------------------------------------------------------------------

    def log_noise_density(self, noise: Floats) -> Floats:
        """That of the standard law, of each coordinate in its scale."""
        standard = self._of_one(1.0).log_noise_density(noise / self.scales)
        return np.asarray(standard - np.log(self.scales), dtype=np.float64)

    def noise_tails(self, noise: Floats, rng: np.random.Generator) -> Tails:
        """That of the standard law, of each coordinate in its scale."""
        return self._of_one(1.0).noise_tails(noise / self.scales, rng)


@dataclass(frozen=True)
class LaplaceVector(_VectorNoise):
    """Adds Laplace noise of its own scale to each coordinate, of which each may move by its own Δ.

    ε is Σ Δ_i/b_i, and the law of the loss is that of as many Laplace mechanisms, one a coordinate:
    noise is independent, and neighbours may move all coordinates at once.
    """

    kind: ClassVar[str] = "laplace-vector"
    costs_as_its_parts: ClassVar[bool] = True
    _of_one = Laplace

    def _corner(self) -> DominatingPair:
        """One shift of the whole length (:class:`~dpaudit.mechanisms.LaplacePair`)."""
        return LaplaceBound(sum(self._ratios, Fraction(0)))

    @property
    def is_tight(self) -> bool:
        """Not in a sample, of which one long shift is a bound."""
        return False

    def composed_of(self, sensitivity: float) -> tuple[tuple[Mechanism, float, int], ...]:
        """One mechanism for each coordinate that moves, equal ones together."""
        ratios, both = self._ratios, zip(self.scales, self.sensitivities, strict=True)
        alike = {ratio: each for ratio, each in zip(ratios, both, strict=True) if ratio}
        if len(alike) > _MOST_PARTS:
            return ()
        return tuple((Laplace(b), moved, ratios.count(at)) for at, (b, moved) in alike.items())


@dataclass(frozen=True)
class GaussianVector(_VectorNoise):
    """Adds normal noise of its own σ to each coordinate, of which each may move by its own Δ.

    In units of its σ every coordinate has the same noise, so that only the L2 distance counts:
    μ² = Σ (Δ_i/σ_i)².
    """

    kind: ClassVar[str] = "gaussian-vector"
    _of_one = Gaussian

    def _corner(self) -> DominatingPair:
        """N(μ, 1) against N(0, 1)."""
        return normal_pair(root(sum((each**2 for each in self._ratios), Fraction(0))), Fraction(1))
