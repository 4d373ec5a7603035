"""Sums of geometric series: the columns of a buffered Toeplitz factorisation."""

from __future__ import annotations

import math

import numpy as np

from dpaudit.mechanisms.pairs import Floats


def series_weights(poles: Floats, zeros: Floats) -> tuple[Floats, Floats, float]:
    """Partial fractions of C and of B, and B's weight of the fresh noise; all are positive.

    C(x) = Σ_j α_j/(1 − θ_j x) with α_j = ∏_i (q_i − p_j)/(1 + q_i) ∏_{i≠j} (1 + p_i)/(p_i − p_j);
    B(x) = c + Σ_j β_j/(1 − λ_j x) likewise, with λ_0 = 1. Written in the rates, nothing cancels.
    """
    buffers = np.concatenate([[0.0], zeros])
    encoder = _residues(poles, zeros)
    decoder = _residues(buffers, poles)
    fresh = np.exp(np.log1p(buffers).sum() - np.log1p(poles).sum())
    return encoder, decoder, fresh


def _residues(own: Floats, other: Floats) -> Floats:
    """Weight of each series with rates ``own`` where the numerator has the rates ``other``."""
    above = (other - own[:, None]) / (1 + other)
    below = (own - own[:, None]) / (1 + own)
    np.fill_diagonal(below, 1.0)
    weights: Floats = above.prod(axis=1) / below.prod(axis=1)
    return weights


def geometric(weights: Floats, rates: Floats, length: int) -> Floats:
    """Σ_j w_j (1 + r_j)^−k for k below length."""
    column = np.zeros(length)
    lags = np.arange(length)
    for weight, rate in zip(weights, rates, strict=True):
        column += weight * np.exp(-math.log1p(rate) * lags)
    return column
