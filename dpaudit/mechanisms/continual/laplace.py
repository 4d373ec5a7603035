"""Continual release with Laplace node noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.base import validate
from dpaudit.base.errors import UnsupportedError
from dpaudit.base.fields import Positive
from dpaudit.mechanisms.base import Norm, checked_sensitivity
from dpaudit.mechanisms.continual.factorization import Factorization
from dpaudit.mechanisms.continual.noise import NoiseLaw
from dpaudit.mechanisms.continual.release import Continual
from dpaudit.mechanisms.laplace import least_scale
from dpaudit.mechanisms.pairs import Floats, LaplacePair


@dataclass(frozen=True, kw_only=True)
class ContinualLaplace(Continual):
    """All prefix sums of a stream with Laplace noise in the nodes: pure differential privacy.

    Its sensitivity is in L1. Trees are the factorisations that are good for it: one contribution
    moves ``levels`` nodes.

    Attributes:
        scale: scale b of the node noise.
        factorization: how noise is correlated over the steps.
        participations: at how many steps one participant may contribute, at most.
        min_separation: how many steps lie from one of them to the next, at least.
        fixed_steps: whether a participant who is replaced contributes at the same steps as before.

    >>> from dpaudit.mechanisms.continual import BinaryTree
    >>> tree = BinaryTree(1024)
    >>> ContinualLaplace(scale=10.0, factorization=tree, participations=1).pair(1.0).pure_epsilon
    Fraction(1, 1)
    """

    kind: ClassVar[str] = "continual-laplace"
    norm: ClassVar[Norm] = Norm.L1
    law: ClassVar[NoiseLaw] = NoiseLaw.LAPLACE
    scale: Positive

    @classmethod
    def calibrated(
        cls,
        *,
        epsilon: float,
        sensitivity: float,
        factorization: Factorization,
        participations: int,
        min_separation: int = 1,
        fixed_steps: bool | None = None,
    ) -> ContinualLaplace:
        """The least scale whose ε does not exceed the wish, in exact arithmetic.

        Neighbours are to contribute at the same steps; where they may not, pass the sensitivity
        times :attr:`displacement`.

        Raises:
            InputError: as :meth:`Laplace.calibrated <dpaudit.mechanisms.Laplace.calibrated>`.
        """
        factor = factorization.sensitivity(participations, min_separation, Norm.L1)
        shift = Fraction(validate.positive(sensitivity=sensitivity)) * Fraction(factor)
        return cls(
            scale=least_scale(shift, epsilon),
            factorization=factorization,
            participations=participations,
            min_separation=min_separation,
            fixed_steps=fixed_steps,
        )

    def pair(self, sensitivity: float) -> LaplacePair:
        """A Laplace pair of ε = Δs/b in exact arithmetic, s the factorisation's L1 sensitivity."""
        shift = Fraction(checked_sensitivity(sensitivity)) * Fraction(self.sensitivity_factor)
        return LaplacePair(shift / Fraction(self.scale))

    @property
    def noise_sigma(self) -> float:
        """√2 b, the standard deviation of the Laplace noise of one node."""
        return math.sqrt(2) * self.scale

    def log_density(self, outputs: ArrayLike, value: ArrayLike) -> Floats:
        """Joint log-density of all prefix sums.

        Raises:
            UnsupportedError: if there are more nodes than prefix sums, as in Honaker's tree: the
                density is then an integral without a closed form.
        """
        if not self.factorization.is_square:
            raise UnsupportedError(
                f"{self.kind} on a {self.factorization.kind} has no closed density; use a "
                "factorisation with as many nodes as steps."
            )
        nodes, log_determinant = self._whitened(outputs, value)
        logs = -np.abs(nodes) / self.scale - math.log(2 * self.scale)
        joint: Floats = logs.sum(axis=(1, 2)) - log_determinant
        return joint
