"""Bounded sets of R^d on which features are good."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from dpaudit.base.fields import Checked, Count, Interval, Positive
from private_bo.gp.types import Array


class FeatureDomain(Checked, ABC):
    """A bounded set of R^d, known to the public: a dataclass with the field ``dimensions``, d."""

    dimensions: int

    @property
    @abstractmethod
    def diameter(self) -> float:
        """Largest Euclidean distance of two points."""

    @property
    @abstractmethod
    def bounds(self) -> Array:
        """Least and largest value of each coordinate, shape (d, 2)."""

    @abstractmethod
    def project(self, X: Array) -> Array:
        """The point of the domain nearest to each row of ``X`` (n, d)."""

    @abstractmethod
    def sample(self, size: int, rng: np.random.Generator) -> Array:
        """``size`` uniform points, (size, d)."""

    def lattice(self, spacing: float, margin: float = 0.0) -> Array:
        """The points of a lattice that are no farther from the domain than the margin, (n, d).

        Args:
            spacing: of the lattice, at most.
            margin: at least 0.
        """
        axes = [
            np.linspace(
                low - margin, high + margin, 1 + math.ceil((high - low + 2 * margin) / spacing)
            )
            for low, high in self.bounds
        ]
        points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
        away = np.linalg.norm(self.project(points) - points, axis=1)
        return np.asarray(points[away <= margin + 1e-12 * self.diameter])


@dataclass(frozen=True)
class Ball(FeatureDomain):
    """The Euclidean ball around the origin.

    Attributes:
        radius: of the ball.
        dimensions: d.

    Raises:
        InputError: if a field is not positive.
    """

    radius: Positive = 2.0
    dimensions: Count = 2

    @property
    def diameter(self) -> float:
        """Twice the radius."""
        return 2.0 * self.radius

    @property
    def bounds(self) -> Array:
        """±radius in every coordinate."""
        return np.tile([-self.radius, self.radius], (self.dimensions, 1))

    def project(self, X: Array) -> Array:
        """Scaled down to the sphere where outside."""
        norms = np.linalg.norm(X, axis=1, keepdims=True)
        return np.asarray(X * np.minimum(1.0, self.radius / np.maximum(norms, 1e-300)))

    def sample(self, size: int, rng: np.random.Generator) -> Array:
        """A uniform direction at a radius of density r^(d−1)."""
        directions = rng.normal(size=(size, self.dimensions))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        radii = self.radius * rng.uniform(size=(size, 1)) ** (1 / self.dimensions)
        return np.asarray(directions * radii)


@dataclass(frozen=True)
class Box(FeatureDomain):
    """The cube [low, high]^d.

    Attributes:
        side: (low, high), of every coordinate.
        dimensions: d.

    Raises:
        InputError: if ``side`` is no interval or d is not positive.
    """

    side: Interval = (0.0, 1.0)
    dimensions: Count = 1

    @property
    def diameter(self) -> float:
        """√d times the length of a side."""
        return (self.side[1] - self.side[0]) * math.sqrt(self.dimensions)

    @property
    def bounds(self) -> Array:
        """The same side in every coordinate."""
        return np.tile(self.side, (self.dimensions, 1))

    def project(self, X: Array) -> Array:
        """Coordinates clipped to the side."""
        return np.asarray(np.clip(X, *self.side))

    def sample(self, size: int, rng: np.random.Generator) -> Array:
        """Independent uniform coordinates."""
        return rng.uniform(*self.side, size=(size, self.dimensions))
