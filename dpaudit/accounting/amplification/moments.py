"""Moments of likelihood ratios after sampling, by quadrature over the loss before sampling.

With L = ln dP/dQ of the base pair, sampling with probability q turns the likelihood ratio into
r = 1 + q(e^L − 1). All moments are written as E_Q[r^α] = 1 + E_Q[r^α − 1 − α(r − 1)], which
holds as E_Q[r] = 1: every term is positive, so that tiny divergences keep their relative precision.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.mechanisms.pairs import Floats

SAFETY = 1e-11
"""Relative slack for rounding and quadrature, whose errors are below 1e-12."""


def log_ratio(losses: ArrayLike, rate: float) -> Floats:
    """Ln(1 + q(e^L − 1)) for any L, without overflow or cancellation."""
    losses = np.asarray(losses, dtype=np.float64)
    plain: Floats = np.log1p(rate * np.expm1(np.minimum(losses, 700.0)))
    if not (losses > 700).any():
        return plain
    large = losses + np.log(rate + (1 - rate) * np.exp(-np.maximum(losses, 0.0)))
    return np.where(losses > 700, large, plain)


def log_moment(orders: Floats, log_ratios: Floats, log_base: Floats) -> Floats:
    """Ln(1 + Σ base (r^α − 1 − α(r − 1))) at each order.

    With c = α − 1 and l = ln r the term is r (e^(cl) − 1 − c(1 − e^−l)), a series where l is small.
    """
    if not log_ratios.size:  # no loss but 0: nothing is released
        return np.zeros(len(orders))
    c = (orders - 1)[:, None]
    l = log_ratios[None, :]  # noqa: E741
    step = c * l
    plainly = float(step.max()) <= 600 and float(log_ratios.min()) >= -30
    with np.errstate(over="ignore"):
        plain = np.expm1(np.minimum(step, 600.0 if plainly else 30.0))
        plain += c * np.expm1(-l)
    small = np.maximum(np.abs(step), np.abs(l)) < 1e-3
    if small.any():
        series = c * l * l / 2 * (c + 1 + l * ((c * c - 1) / 3 + l * (c**3 + 1) / 12))
        np.copyto(plain, series, where=small)
    term = np.maximum(plain, 1e-320, out=plain)
    if plainly:
        sums = np.einsum("ij,j->i", term, np.exp(log_ratios + log_base))
        if float(sums.min()) > 1e-250:  # so that no float of either factor was too small
            return np.asarray(np.log1p(sums) * (1 + SAFETY), dtype=np.float64)
    with np.errstate(over="ignore"):
        log_term = np.where(step > 30, step, np.log(term))
    # Below e^-30 the part c e^-l is nearly all of the term, and at least it.
    exponents = np.where(l < -30, np.log(c), log_term + l) + log_base
    top = exponents.max(axis=1)
    total = top + np.log(np.exp(exponents - top[:, None]).sum(axis=1))
    moments: Floats = np.logaddexp(0.0, total) * (1 + SAFETY)
    return moments
