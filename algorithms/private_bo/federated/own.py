"""An agent's own process: candidates for its kernel and noise, and the choice among them.

Length scale and noise variance are fitted by maximum likelihood to what the agent itself has seen
(Rasmussen & Williams 2006, equation (5.8)). The candidates are public and the choice stays with
the agent: it decides which points the agent queries on its own, and nothing of it is sent.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from private_bo.gp import Kernel, SquaredExponential
from private_bo.gp.types import Array, read_only
from private_bo.threads import single_threaded

SCALE_FACTORS = (1.0, 0.25, 0.5, 2.0, 4.0)
"""Of the length scale; the stated one first, which wins ties."""
NOISE_FACTORS = (1.0, 0.01, 0.1)
"""Of the noise variance; the stated one first."""

_RESIDUAL = 1e-6
_MOST_FEATURES = 1000


@dataclass(frozen=True, eq=False)
class OwnProcess:
    """Normal processes with unit variance and a SE kernel, on a public grid.

    Attributes:
        grid: (G, d).
        scales: length scales to choose from.
        variances: noise variances λ to choose from; every pair is a candidate.
        refit_every: after how many further observations an agent chooses anew; None for never:
            then the first scale and variance are used.
    """

    grid: Array = field(repr=False)
    scales: tuple[float, ...]
    variances: tuple[float, ...]
    refit_every: int | None
    _roots: dict[int, Array] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def around(
        cls, grid: Array, scale: float, variance: float, refit_every: int | None
    ) -> OwnProcess:
        """The stated values alone, or where they are refitted, multiples of them beside these."""
        if refit_every is None:
            return cls(grid, (scale,), (variance,), None)
        scales = tuple(scale * factor for factor in SCALE_FACTORS)
        variances = tuple(variance * factor for factor in NOISE_FACTORS)
        return cls(grid, scales, variances, refit_every)

    def root(self, scale: int) -> Array:
        """Ψ(x) of every point with ΨΨᵀ = K, for the scale of that place, (G, r)."""
        if scale not in self._roots:
            kernel = SquaredExponential(self.scales[scale])
            with single_threaded():
                self._roots[scale] = read_only(kernel_root(kernel, self.grid))
        return self._roots[scale]

    def fitted_on(self, seen: int, initial: int) -> int:
        """How many observations the choice in force is made on, the first ones; 0 for none.

        >>> process = OwnProcess.around(np.zeros((1, 1)), 0.1, 0.1, refit_every=5)
        >>> [process.fitted_on(seen, 10) for seen in (10, 14, 15, 21)]
        [10, 10, 15, 20]
        """
        if self.refit_every is None:
            return 0
        return seen - (seen - initial) % self.refit_every

    def log_likelihoods(self, points: Array, targets: Array) -> Array:
        """Give ln p(y) under every candidate, but for ½ t ln 2π, (scales, variances).

        Args:
            points: what one agent has queried, (t, d).
            targets: y, (t,).
        """
        squares = np.square(points[:, None, :] - points[None, :, :]).sum(axis=2)
        halved = np.array([0.5 / scale**2 for scale in self.scales])
        t, variances = len(targets), np.array(self.variances)
        # The factor of [[K + λI, y], [yᵀ, c]] has L⁻¹y in its last row; yᵀ(K + λI)⁻¹y < c.
        bordered = np.empty((len(self.scales), len(variances), t + 1, t + 1))
        bordered[:, :, :t, :t] = np.exp(-halved[:, None, None] * squares)[:, None]
        steps = np.arange(t)
        bordered[:, :, steps, steps] += variances[:, None]
        bordered[:, :, t, :t] = bordered[:, :, :t, t] = targets
        bordered[:, :, t, t] = 2 * (targets @ targets) / variances + 1
        factor = np.linalg.cholesky(bordered)
        misfit = np.square(factor[:, :, t, :t]).sum(axis=2)
        volume = np.log(factor[:, :, steps, steps]).sum(axis=2)
        found: Array = -0.5 * misfit - volume
        return found

    def likeliest(self, points: Array, targets: Array) -> tuple[int, int]:
        """Places of the length scale and the noise variance with the largest likelihood."""
        values = self.log_likelihoods(points, targets)
        scale, variance = np.unravel_index(int(values.argmax()), values.shape)
        return int(scale), int(variance)


def kernel_root(kernel: Kernel, grid: Array) -> Array:
    """Ψ with ΨΨᵀ = K on the grid, up to 1e-6 of the prior variance, by pivoted Cholesky.

    Args:
        kernel: k.
        grid: (G, d).

    Returns:
        Shape (G, r), where r is as small as the accuracy allows, and at most 1000.
    """
    left = kernel.diagonal(grid).copy()
    most = min(_MOST_FEATURES, len(grid))
    rows = np.empty((most, len(grid)))
    rank = 0
    while rank < most and left.max() > _RESIDUAL:
        pivot = int(left.argmax())
        column = kernel(grid, grid[pivot : pivot + 1])[:, 0]
        column -= rows[:rank, pivot] @ rows[:rank]
        rows[rank] = column / np.sqrt(left[pivot])
        left = np.maximum(left - np.square(rows[rank]), 0.0)
        left[pivot] = 0.0
        rank += 1
    return np.ascontiguousarray(rows[:rank].T)
