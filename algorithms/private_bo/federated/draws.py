"""What agents compute and draw, in numpy alone: one at a time, or many of them at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from private_bo.gp.types import Array

_RESIDUAL = 1e-6
_MOST_FEATURES = 1000
_LEAST_SPREAD = 1e-6
"""Of observations: an agent that has seen one value alone is not blown up by rounding."""


def kernel_root(kernel: Callable[[Array, Array], Array], grid: Array) -> Array:
    """Ψ with ΨΨᵀ = K on the grid, up to 1e-6 of the prior variance, by pivoted Cholesky.

    Args:
        kernel: k, of unit variance.
        grid: (G, d).

    Returns:
        Shape (G, r), where r is as small as the accuracy allows, and at most 1000.
    """
    left = np.ones(len(grid))
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


def log_likelihoods(points: Array, targets: Array, scales: Array, variances: Array) -> Array:
    """Give ln p(y) under every candidate, but for ½ t ln 2π, (scales, variances).

    Args:
        points: what one agent has queried, (t, d).
        targets: y, (t,).
        scales: length scales of a squared exponential.
        variances: of the noise, λ.
    """
    squares = np.square(points[:, None, :] - points[None, :, :]).sum(axis=2)
    halved = np.array([0.5 / scale**2 for scale in scales])
    t = len(targets)
    # The factor of [[K + λI, y], [yᵀ, c]] has L⁻¹y in its last row; yᵀ(K + λI)⁻¹y < c.
    bordered = np.empty((len(scales), len(variances), t + 1, t + 1))
    bordered[:, :, :t, :t] = np.exp(-halved[:, None, None] * squares)[:, None]
    steps = np.arange(t)
    bordered[:, :, steps, steps] += variances[:, None]
    bordered[:, :, t, :t] = bordered[:, :, :t, t] = targets
    bordered[:, :, t, t] = 2 * (targets @ targets) / variances + 1
    factor = np.linalg.cholesky(bordered)
    misfit = np.square(factor[:, :, t, :t]).sum(axis=2)
    volume = np.log(factor[:, :, steps, steps]).sum(axis=2)
    return np.asarray(-0.5 * misfit - volume)


def standardised(seen: Array) -> Array:
    """What agents have seen less its mean, over its deviation, (n, t)."""
    centred = seen - seen.mean(axis=1, keepdims=True)
    spread = np.sqrt(np.square(centred).mean(axis=1, keepdims=True))
    return np.asarray(centred / np.maximum(spread, _LEAST_SPREAD))


def posterior_draws(
    features: Array, targets: Array, noise_variances: Array, prior: Array, noise: Array
) -> Array:
    """Draws of N(ν, λΣ⁻¹) of equation (2), by moving a draw of the prior to the data.

    With w ~ N(0, I) and e ~ N(0, I), the vector w + Φᵀ(ΦΦᵀ + λI)⁻¹(y − Φw − √λ e) has that law, by
    Matheron's rule (Wilson et al. 2020), at the cost of one system of t equations instead of m.

    Args:
        features: Φ of what each agent has seen, (n, t, m).
        targets: y, (n, t).
        noise_variances: λ of each, (n,).
        prior: w, (n, m).
        noise: e, (n, t).

    Returns:
        Shape (n, m). Each row follows from its own inputs alone, bit for bit.
    """
    if len(features) == 0:
        return prior
    across = features.swapaxes(1, 2)
    # One agent at a time within numpy: no product runs over the agents.
    gram = np.matmul(features, across)
    steps = np.arange(gram.shape[1])
    gram[:, steps, steps] += noise_variances[:, None]
    expected = np.matmul(features, prior[:, :, None])
    missing = (targets - np.sqrt(noise_variances)[:, None] * noise)[:, :, None] - expected
    moved: Array = np.matmul(across, np.linalg.solve(gram, missing))[:, :, 0]
    return prior + moved


def clip_to_norm(vector: Array, limit: float) -> Array:
    """ω / max(1, ‖ω‖/limit) (line 9); no finite vector overflows it.

    >>> clip_to_norm(np.array([3.0, 4.0]), 1.0).round(6).tolist()
    [0.6, 0.8]
    >>> clip_to_norm(np.array([1e300, -1e300]), 2.0).round(6).tolist()
    [1.414214, -1.414214]
    """
    largest = float(np.abs(vector).max(initial=0.0))
    if largest == 0.0:
        return vector
    relative = vector / largest
    norm = float(np.linalg.norm(relative))
    if norm * min(largest, 1e300) <= limit:
        return vector
    return np.asarray(relative * (limit / norm))
