"""Hyperparameters of the modeller's GP, given or by maximum likelihood on released data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpaudit.base.fields import Checked, Finite, Positive
from private_bo.gp.types import Array
from private_bo.outsourced.inputs import Inputs

_LENGTHS = 16
_NOISE_RATIOS = (1e-4, 1e-3, 1e-2, 1e-1, 0.3, 1.0, 3.0)


@dataclass(frozen=True)
class Hyperparameters(Checked):
    """Of y = f(x) + noise with f ~ GP(mean, signal_variance · SE(length_scale)).

    Attributes:
        length_scale: l > 0, in the units of the released rows.
        mean: of f.
        signal_variance: σ_y² > 0.
        noise_variance: σ_n² > 0 of an output.

    Raises:
        InputError: if one is outside its range.
    """

    length_scale: Positive
    mean: Finite = 0.0
    signal_variance: Positive = 1.0
    noise_variance: Positive = 1e-5


def most_likely(inputs: Inputs, rows: Sequence[int], outputs: Sequence[float]) -> Hyperparameters:
    """The hyperparameters of largest marginal likelihood given the outputs of some rows.

    Length scale and noise-to-signal ratio are searched on a grid that is public but for the
    diameter of the release; mean and signal variance have closed forms (generalised least squares).

    Args:
        inputs: the released rows.
        rows: at least 2 distinct row numbers.
        outputs: what was returned for them.
    """
    y = np.asarray(outputs, dtype=np.float64)
    diameter = inputs.diameter or 1.0
    best, chosen = -math.inf, Hyperparameters(diameter)
    for length in diameter * np.geomspace(1 / 50, 2.0, _LENGTHS):
        gram = _correlation(inputs, list(rows), float(length))
        for ratio in _NOISE_RATIOS:
            value, mean, signal = _profile(gram, y, ratio)
            if value > best:
                best = value
                chosen = Hyperparameters(float(length), mean, signal, ratio * signal)
    return chosen


def _correlation(inputs: Inputs, rows: list[int], length: float) -> Array:
    """Prior correlation of f at distinct rows."""
    points, share = inputs.scaled(length)[rows], inputs.share(length)
    gram = share * inputs.kernel(length)(points, points)
    gram.flat[:: len(rows) + 1] = 1.0
    return np.asarray(gram)


def _profile(gram: Array, y: Array, ratio: float) -> tuple[float, float, float]:
    """Log-likelihood (up to a constant), mean and signal variance that maximise it."""
    covariance = gram + ratio * np.eye(y.size)
    try:
        factor = np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:  # de-biased distances need not give a covariance
        return -math.inf, 0.0, 1.0
    whitened = np.linalg.solve(factor, np.column_stack([y, np.ones(y.size)]))
    mean = float(whitened[:, 1] @ whitened[:, 0] / (whitened[:, 1] @ whitened[:, 1]))
    residual = whitened[:, 0] - mean * whitened[:, 1]
    signal = max(float(residual @ residual) / y.size, 1e-12)
    log_determinant = 2.0 * float(np.log(factor.diagonal()).sum())
    return -0.5 * (y.size * math.log(signal) + log_determinant), mean, signal
