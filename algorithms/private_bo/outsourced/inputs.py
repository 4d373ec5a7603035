"""How a modeller reads released rows: as they are, with de-biased distances, or as noisy inputs."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from dpaudit.base.fields import Checked, NonNegative, Positive
from private_bo.gp import FiniteDomain, FinitePosterior, Kernel, SquaredExponential, Storage
from private_bo.gp.types import Array, point_set
from private_bo.outsourced.clipped import ClippedPosterior
from private_bo.outsourced.protocol import Release

__all__ = ["DebiasedSquaredExponential", "InputModel", "Inputs", "PosteriorInputs"]


class InputModel(StrEnum):
    """What the modeller makes of the noise that the curator declares."""

    ORDINARY = "ordinary"
    """Nothing: the SE kernel on the released rows, as in the paper."""
    DEBIASED = "debiased"
    """Squared distances less their expected excess 2rσ²."""
    EXPECTED = "expected"
    """The SE kernel averaged over the inputs given the release."""

    def read(self, release: Release) -> Inputs:
        """The released rows under this model."""
        variance = release.noise_variance
        if self is InputModel.ORDINARY or variance == 0:
            return PlainInputs(release.points)
        if self is InputModel.DEBIASED:
            return DebiasedInputs(release.points, variance)
        return PosteriorInputs.given(release)


class Inputs(ABC):
    """A kernel on row numbers: ``share`` of f is smooth in the release, the rest is each row's own.

    f(x_i) = sqrt(s) g(i) + sqrt(1 - s) h_i, with g ~ GP(0, k) and independent unit normals h_i.
    """

    @abstractmethod
    def scaled(self, length_scale: float) -> Array:
        """Points (n, r) on which ``kernel`` is defined."""

    @abstractmethod
    def kernel(self, length_scale: float) -> Kernel:
        """Unit-variance kernel k of the smooth share, on the points of :meth:`scaled`."""

    @property
    @abstractmethod
    def diameter(self) -> float:
        """Diagonal of the smallest box around the inputs, in the units of the release."""

    def share(self, length_scale: float) -> float:
        """The share s of the smooth part, in (0, 1]."""
        return 1.0

    def posterior(
        self, length_scale: float, noise_variance: float
    ) -> FinitePosterior | ClippedPosterior:
        """The prior of the smooth share on all rows, ready for observations."""
        domain = FiniteDomain(self.scaled(length_scale))
        kernel = self.kernel(length_scale)
        return FinitePosterior.of(domain, kernel, noise_variance, Storage.ROWS)


@dataclass(frozen=True, eq=False)
class PlainInputs(Inputs):
    """The released rows taken for the inputs.

    Attributes:
        points: (n, r).
    """

    points: Array

    @property
    def diameter(self) -> float:
        return float(np.linalg.norm(np.ptp(self.points, axis=0)))

    def scaled(self, length_scale: float) -> Array:
        return self.points

    def kernel(self, length_scale: float) -> Kernel:
        return SquaredExponential(length_scale)


@dataclass(frozen=True, eq=False)
class DebiasedInputs(PlainInputs):
    """The released rows with squared distances less 2rσ².

    Attributes:
        noise_variance: σ² of each entry.
    """

    noise_variance: float

    def kernel(self, length_scale: float) -> Kernel:
        excess = 2.0 * self.points.shape[1] * self.noise_variance
        return DebiasedSquaredExponential(length_scale, excess)

    def posterior(self, length_scale: float, noise_variance: float) -> ClippedPosterior:
        domain = FiniteDomain(self.scaled(length_scale))
        return ClippedPosterior(domain, self.kernel(length_scale), noise_variance)


@dataclass(frozen=True)
class DebiasedSquaredExponential(Checked, Kernel):
    """exp(-max(‖z - z'‖² - excess, 0)/(2 l²)); not positive semi-definite in general.

    Clipped eigenvalues (:class:`ClippedPosterior`) make it usable; it needs observation noise.

    Attributes:
        length_scale: l > 0.
        excess: expected squared distance of two releases of equal rows, 2rσ² >= 0.
    """

    length_scale: Positive
    excess: NonNegative

    def __call__(self, X: Array, Y: Array) -> Array:
        """Covariance of the values at the rows of X (n, d) and Y (m, d), shape (n, m)."""
        plain = SquaredExponential(self.length_scale)(X, Y)
        bias = math.exp(min(0.5 * self.excess / self.length_scale**2, 700.0))
        return np.minimum(plain * bias, 1.0)

    def diagonal(self, X: Array) -> Array:
        """Prior variance at the rows of X (n, d), shape (n,)."""
        return np.ones(point_set(X=X).shape[0])


@dataclass(frozen=True, eq=False)
class PosteriorInputs(Inputs):
    """Inputs known up to independent normal errors, and the SE kernel averaged over them.

    For x_i ~ N(m_i, diag p) independently, E k(x_i, x_j) for i ≠ j is, coordinate by coordinate,
    l/√(l² + 2p) · exp(-(m_i - m_j)²/(2 (l² + 2p))) (the integral of a Gaussian), and it is 1 for
    i = j. So f has the covariance of a smooth part of share ∏ l/√(l² + 2p) and a part of each
    row's own.

    Attributes:
        means: m (n, r).
        variances: p (r,).
    """

    means: Array
    variances: Array

    @classmethod
    def given(cls, release: Release) -> PosteriorInputs:
        """The posterior of the inputs under a normal prior of variance var(Z) - σ².

        With prior variance v the mean is shrunk by v/(v + σ²) and p = v σ²/(v + σ²). The prior is
        taken from the release, never from the private rows. Noise that is not normal enters with
        its variance.
        """
        middle = release.points.mean(axis=0)
        noise = release.noise_variance
        prior = np.maximum(release.points.var(axis=0) - noise, 1e-9 * noise)
        shrinkage = prior / (prior + noise)
        return cls((release.points - middle) * shrinkage, shrinkage * noise)

    @property
    def diameter(self) -> float:
        """Largest distance within the box around the means."""
        return float(np.linalg.norm(np.ptp(self.means, axis=0)))

    def scaled(self, length_scale: float) -> Array:
        """The means in units of the averaged kernel's length scales, shape (n, r)."""
        return self.means / np.sqrt(length_scale**2 + 2.0 * self.variances)

    def kernel(self, length_scale: float) -> Kernel:
        """The smooth part of the averaged kernel, for scaled means."""
        return SquaredExponential(1.0)

    def share(self, length_scale: float) -> float:
        """The smooth part of the prior variance, ∏ l/√(l² + 2p)."""
        return float(np.prod(length_scale / np.sqrt(length_scale**2 + 2.0 * self.variances)))
