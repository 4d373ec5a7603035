"""A posterior for kernels that are not quite covariances, by clipping eigenvalues."""

from __future__ import annotations

import numpy as np

from private_bo.gp import FiniteDomain, Kernel
from private_bo.gp.types import Array


class ClippedPosterior:
    """The posterior of a finite domain, negative eigenvalues of the observed Gram matrix set to 0.

    It is solved anew after every observation, in O(n t²): slower than
    :class:`private_bo.gp.FinitePosterior`, for kernels that the latter cannot take.

    Args:
        domain: the n points.
        kernel: of unit variance, symmetric.
        noise_variance: λ > 0 of an observation.
    """

    def __init__(self, domain: FiniteDomain, kernel: Kernel, noise_variance: float) -> None:
        self._domain = domain
        self._kernel = kernel
        self._noise = noise_variance
        self._rows: list[int] = []
        self._outputs: list[float] = []
        self._columns = np.empty((domain.size, 0))
        self.mean: Array = np.zeros(domain.size)
        self.variance: Array = np.ones(domain.size)

    def update(self, index: int, y: float) -> None:
        """Condition on the observation ``y`` of the point ``index``."""
        self._rows.append(index)
        self._outputs.append(y)
        column = self._domain.kernel_columns(self._kernel, [index])
        self._columns = np.hstack([self._columns, column])
        values, vectors = np.linalg.eigh(self._columns[self._rows])
        whitened = self._columns @ (vectors / np.sqrt(np.maximum(values, 0.0) + self._noise))
        weights = vectors.T @ np.array(self._outputs)
        self.mean = whitened @ (weights / np.sqrt(np.maximum(values, 0.0) + self._noise))
        self.variance = np.maximum(1.0 - np.einsum("ij,ij->i", whitened, whitened), 0.0)
