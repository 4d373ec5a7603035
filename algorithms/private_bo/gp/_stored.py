"""The two storages of a finite posterior (imported on first use, with scipy's BLAS)."""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import dger

from private_bo.gp._types import Array
from private_bo.gp.domains import FiniteDomain
from private_bo.gp.kernels import Kernel
from private_bo.gp.posterior import FinitePosterior

_FIRST_CAPACITY = 64


class CovariancePosterior(FinitePosterior):
    """Keeps the posterior covariance (n, n) and takes w wᵀ off it in place."""

    def __init__(self, prior: Array, noise_variance: float) -> None:
        super().__init__(prior.diagonal(), noise_variance)
        # BLAS updates in place only what is in Fortran order.
        self._covariance = np.array(prior, dtype=np.float64, order="F")

    def _condition(self, index: int, deviation: float) -> None:
        covariance = self._covariance
        np.divide(covariance[:, index], deviation, out=self._row)
        dger(-1.0, self._row, self._row, a=covariance, overwrite_a=1)
        np.maximum(covariance.diagonal(), 0.0, out=self._variance)


class RowPosterior(FinitePosterior):
    """Keeps the rows w of W, with covariance K - WᵀW; asks the kernel for one column a step."""

    def __init__(self, domain: FiniteDomain, kernel: Kernel, noise_variance: float) -> None:
        super().__init__(kernel.diagonal(domain.points), noise_variance)
        self._domain = domain
        self._kernel = kernel
        self._rows = np.empty((_FIRST_CAPACITY, domain.size))

    def _condition(self, index: int, deviation: float) -> None:
        played = self._observations
        if played == self._rows.shape[0]:
            grown = np.empty((2 * played, self._size))
            grown[:played] = self._rows
            self._rows = grown
        row = self._row
        rows = self._rows[:played]
        np.dot(rows[:, index], rows, out=row)
        np.subtract(self._domain.kernel_columns(self._kernel, [index])[:, 0], row, out=row)
        row /= deviation
        self._rows[played] = row
        np.square(row, out=self._scratch)
        self._variance -= self._scratch
        np.maximum(self._variance, 0.0, out=self._variance)
