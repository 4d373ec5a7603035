"""Finite feature maps Φ with Φ(x)ᵀΦ(y) ≈ k(x, y), and the domains on which they are good.

Every map has ‖Φ(x)‖ <= 1, which is what sensitivities rest on, and states a proven bound of its
uniform error (Dubey 2021, Definition 2).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from dpaudit.base.errors import InputError
from dpaudit.base.fields import Checked, Count
from private_bo.gp.regions import FeatureDomain
from private_bo.gp.types import Array, point_set

Mask: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]


class FeatureMap(ABC):
    """Φ: R^d → R^m with ‖Φ(x)‖ <= 1 that approximates a kernel on a domain.

    Maps are immutable and compare by their public fields.
    """

    domain: FeatureDomain
    """Where the map is good; an additive one has that of its part."""

    @property
    @abstractmethod
    def size(self) -> int:
        """m, the number of features."""

    @property
    def dimension(self) -> int:
        """d, the number of coordinates of a point."""
        return self.domain.dimensions

    @abstractmethod
    def __call__(self, X: Array) -> Array:
        """Features of the rows of ``X`` (n, d), shape (n, m).

        Raises:
            InputError: if ``X`` has another width or is not finite.
        """

    @property
    @abstractmethod
    def uniform_error(self) -> float:
        """A proven bound of |k(x, y) − Φ(x)ᵀΦ(y)| over the domain, rounded up.

        Raises:
            UnsupportedError: if there is no proof for this kernel.
        """

    def points(self, X: Array) -> Array:
        """``X`` as checked points, (n, d).

        Raises:
            InputError: if it has another width or is not finite.
        """
        points = point_set(X=X)
        if points.shape[1] != self.dimension:
            raise InputError(
                f"X has points of dimension {points.shape[1]}; the feature map takes those of "
                f"dimension {self.dimension}."
            )
        return points


@dataclass(frozen=True)
class AdditiveFeatures(Checked, FeatureMap):
    """The features of one coordinate at a time, scaled by 1/√d: the mean of their kernels.

    The number of features grows with d and not exponentially in it, which is what makes functions
    of 20 variables tractable (Mutny & Krause 2018, Section 4).

    Attributes:
        part: a map of the line.
        dimensions: d.

    Raises:
        InputError: if ``part`` is not a map of the line.
    """

    part: FeatureMap
    dimensions: Count

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.part.dimension != 1:
            raise InputError(f"part takes points of dimension {self.part.dimension}; it must be 1.")

    @property
    def size(self) -> int:
        """D times the features of a coordinate."""
        return self.dimensions * self.part.size

    @property
    def dimension(self) -> int:
        """d, the number of coordinates of a point."""
        return self.dimensions

    def __call__(self, X: Array) -> Array:
        """Coordinate by coordinate, shape (n, d m)."""
        points = self.points(X)
        flat = self.part(points.reshape(-1, 1)) / math.sqrt(self.dimensions)
        return flat.reshape(len(points), self.size)

    @property
    def uniform_error(self) -> float:
        """That of a coordinate: the mean of d equal bounds."""
        return self.part.uniform_error
