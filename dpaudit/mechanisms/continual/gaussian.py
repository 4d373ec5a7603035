"""Continual release with Gaussian node noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.base import validate
from dpaudit.base.fields import Positive
from dpaudit.mechanisms.base import Norm, checked_sensitivity
from dpaudit.mechanisms.continual.factorization import Factorization
from dpaudit.mechanisms.continual.noise import NoiseLaw, packed_scale
from dpaudit.mechanisms.continual.release import Continual
from dpaudit.mechanisms.pairs import Floats, GaussianPair, least_deviation, normal_pair


@dataclass(frozen=True, kw_only=True)
class ContinualGaussian(Continual):
    """All prefix sums of a stream of T vectors or symmetric matrices, with Gaussian node noise.

    In a plan it is *one* invocation. Its sensitivity is the L2 distance (Frobenius for matrices) by
    which one contribution of a participant can move one step under the relation; the mechanism
    itself counts the nodes and the participations.

    Attributes:
        sigma: standard deviation of the node noise; for symmetric matrices σ off the diagonal and
            √2σ on it, the law of (V + Vᵀ)/√2.
        factorization: how noise is correlated over the steps.
        participations: at how many steps one participant may contribute, at most.
        min_separation: how many steps lie from one of them to the next, at least.
        fixed_steps: whether a participant who is replaced contributes at the same steps as before.
        symmetric: whether the steps are symmetric matrices.

    >>> from dpaudit.mechanisms.continual import BinaryTree
    >>> tree = ContinualGaussian(sigma=2.0, factorization=BinaryTree(16), participations=1)
    >>> round(tree.pair(1.0).mu, 9)
    1.0
    """

    kind: ClassVar[str] = "continual-gaussian"
    norm: ClassVar[Norm] = Norm.L2
    law: ClassVar[NoiseLaw] = NoiseLaw.NORMAL
    sigma: Positive
    symmetric: bool = False

    @classmethod
    def calibrated(
        cls,
        *,
        epsilon: float,
        delta: float,
        sensitivity: float,
        factorization: Factorization,
        participations: int,
        min_separation: int = 1,
        fixed_steps: bool | None = None,
        symmetric: bool = False,
    ) -> ContinualGaussian:
        """The least σ for (ε, δ): the analytic Gaussian mechanism on the nodes.

        Neighbours are to contribute at the same steps; where they may not, pass the sensitivity
        times :attr:`displacement`.

        Raises:
            InputError: as :meth:`Gaussian.calibrated <dpaudit.mechanisms.Gaussian.calibrated>`.
        """
        factor = factorization.sensitivity(participations, min_separation)
        shift = Fraction(validate.positive(sensitivity=sensitivity)) * Fraction(factor)
        return cls(
            sigma=least_deviation(
                lambda sigma: normal_pair(shift, _deviation(sigma, symmetric)),
                epsilon=epsilon,
                delta=delta,
            ),
            factorization=factorization,
            participations=participations,
            min_separation=min_separation,
            fixed_steps=fixed_steps,
            symmetric=symmetric,
        )

    def pair(self, sensitivity: float) -> GaussianPair:
        """N(Δs/σ, 1) against N(0, 1), with s the factorisation's sensitivity; μ is rounded up.

        For symmetric matrices the node noise is isotropic in Frobenius norm with deviation √2σ.
        """
        shift = Fraction(checked_sensitivity(sensitivity)) * Fraction(self.sensitivity_factor)
        return normal_pair(shift, _deviation(self.sigma, self.symmetric))

    @property
    def noise_sigma(self) -> float:
        """σ of the normal noise of one node."""
        return self.sigma

    @property
    def is_symmetric(self) -> bool:
        """As declared."""
        return self.symmetric

    def log_density(self, outputs: ArrayLike, value: ArrayLike) -> Floats:
        """Joint normal log-density of all prefix sums (of the upper triangles, if symmetric).

        Outputs that are not symmetric where they must be have density 0.
        """
        outputs = np.asarray(outputs, dtype=np.float64)
        nodes, log_determinant = self._whitened(outputs, value)
        entries = nodes.shape[1] * nodes.shape[2]
        logs = -0.5 * (nodes / self.sigma) ** 2 - math.log(self.sigma * math.sqrt(2 * math.pi))
        joint: Floats = logs.sum(axis=(1, 2)) - log_determinant
        if not self.symmetric:
            return joint
        side, steps = outputs.shape[-1], outputs.shape[1]
        joint -= entries // len(packed_scale(side)) * float(np.log(packed_scale(side)).sum())
        mirrored = (outputs == np.swapaxes(outputs, -1, -2)).reshape(len(outputs), steps, -1)
        return np.where(mirrored.all(axis=(1, 2)), joint, -np.inf)


def _deviation(sigma: float, symmetric: bool) -> Fraction:
    """That of the node noise in its norm, rounded down: √2σ for symmetric matrices."""
    return Fraction(sigma) * (Fraction(math.nextafter(math.sqrt(2), 0.0)) if symmetric else 1)
