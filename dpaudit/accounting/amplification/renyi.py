"""Rényi divergences of sampled mechanisms, from the law of the loss before sampling.

With L = ln dP/dQ of the base pair, sampling with probability q turns the likelihood ratio into
r = 1 + q(e^L − 1). All moments are written as E_Q[r^α] = 1 + E_Q[r^α − 1 − α(r − 1)], which
holds as E_Q[r] = 1: every term is positive, so that tiny divergences keep their relative precision.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpaudit.mechanisms import DominatingPair, FinitePair, GaussianPair, LaplacePair
from dpaudit.mechanisms.pairs import Floats

__all__ = ["fixed_size_moments", "poisson_moments", "poisson_moments_at_integers"]

_SAFETY = 1e-11
"""Relative slack for rounding and quadrature, whose errors are below 1e-12."""


def poisson_moments(pair: DominatingPair, rate: float, orders: Floats) -> Floats | None:
    """Ln E_Q[r^α] at real orders up to about 16; None where there is no quadrature for the pair.

    The mixture against Q is the worse of the two directions for a symmetric pair (Mironov, Talwar
    and Zhang 2019, Theorem 5).
    """
    nodes = _nodes(pair, float(orders[-1]), split=False)
    if nodes is None:
        return None
    losses, log_q = nodes
    return _log_moment(orders, _log_ratio(losses, rate), log_q)


def fixed_size_moments(pair: DominatingPair, rate: float, orders: Floats) -> Floats | None:
    """Ln of the α-moment that bounds subsets of fixed size under replace-one.

    For t >= 1 the hockey-stick divergence of order t is at most that of (qP + (1 − q)Q, Q), for
    t < 1 at most that of (P, (1 − q)P + qQ) (Balle, Barthe and Gaboardi 2018, Theorems 2 and 9;
    Zhu, Dong and Wang 2022, Theorem 11). These two halves are the profile of one pair, whose
    moments are the integral of the profile against α(α − 1)t^(α − 2): the positive losses of the
    first pair and the negative losses of the second, each less its tangent at 1.
    """
    nodes = _nodes(pair, float(orders[-1]), split=True)
    if nodes is None:
        return None
    losses, log_q = nodes
    gain = losses > 0
    loss = losses < 0
    back = losses[loss]
    log_ratio = np.concatenate(
        [_log_ratio(losses[gain], rate), -_log_ratio(-back, rate)],
    )
    log_base = np.concatenate([log_q[gain], log_q[loss] + back + _log_ratio(-back, rate)])
    return _log_moment(orders, log_ratio, log_base)


def poisson_moments_at_integers(
    pair: DominatingPair, rate: float, orders: tuple[int, ...]
) -> Floats:
    """Ln E_Q[r^α] by the binomial sum over the base pair's own moments.

    Mironov, Talwar and Zhang 2019, Section 3.3: Σ_j C(α, j)(1 − q)^(α−j) q^j e^((j−1)D_j). As the
    weights sum to 1 and the moments of j = 0 and 1 are 1, it is 1 + Σ_{j≥2} weight (moment − 1).
    """
    alpha, j, log_binomial, starts = _binomials(orders)
    base = np.arange(2, max(orders) + 1, dtype=np.float64)
    curve = _plain(pair).renyi(base)
    kappa = (base - 1) * curve
    log_moment = np.where(kappa > 30, kappa, np.log(np.expm1(np.minimum(kappa, 31.0)) + 1e-320))
    log_weight = log_binomial + (alpha - j) * math.log1p(-rate) + j * math.log(rate)
    exponents = log_weight + log_moment[j - 2]
    top = np.maximum.reduceat(exponents, starts)
    spread = np.repeat(top, np.diff(np.append(starts, exponents.size)))
    with np.errstate(invalid="ignore"):
        total = top + np.log(np.add.reduceat(np.exp(exponents - spread), starts))
    total = np.where(np.isfinite(top), total, top)
    moments: Floats = np.logaddexp(0.0, total) * (1 + _SAFETY)
    return moments


def _plain(pair: DominatingPair) -> DominatingPair:
    """The pair without what a subclass knows better than its masses give.

    The theorem on directions needs the divergences of a symmetric pair, not those of the mechanism
    that it dominates.
    """
    if isinstance(pair, FinitePair) and pair.p_infinite == 0:
        return FinitePair(pair.losses, pair.p, pair.q, 0.0, pair.bound)
    return pair


@lru_cache(maxsize=8)
def _binomials(
    orders: tuple[int, ...],
) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats, NDArray[np.int64]]:
    from scipy.special import gammaln

    alpha = np.concatenate([np.full(order - 1, order) for order in orders])
    j = np.concatenate([np.arange(2, order + 1) for order in orders])
    starts = np.cumsum([0, *(order - 1 for order in orders[:-1])])
    return alpha, j, gammaln(alpha + 1) - gammaln(j + 1) - gammaln(alpha - j + 1), starts


def _log_ratio(losses: Floats, rate: float) -> Floats:
    """Ln(1 + q(e^L − 1)) for any L."""
    with np.errstate(over="ignore"):
        low = np.log1p(rate * np.expm1(np.minimum(losses, 30.0)))
    high = losses + math.log(rate) + np.log1p((1 - rate) / rate * np.exp(-np.maximum(losses, 30.0)))
    ratio: Floats = np.where(losses > 30, high, low)
    return ratio


def _log_moment(orders: Floats, log_ratio: Floats, log_base: Floats) -> Floats:
    """Ln(1 + Σ base (r^α − 1 − α(r − 1))) at each order.

    With c = α − 1 and l = ln r the term is r (e^(cl) − 1 − c(1 − e^−l)), a series where l is small.
    """
    c = (orders - 1)[:, None]
    l = log_ratio[None, :]  # noqa: E741
    step = c * l
    with np.errstate(over="ignore"):
        plain = np.expm1(np.minimum(step, 30.0)) + c * np.expm1(-l)
    series = c * l * l / 2 * (c + 1 + l * ((c * c - 1) / 3 + l * (c**3 + 1) / 12))
    small = np.maximum(np.abs(step), np.abs(l)) < 1e-3
    term = np.maximum(np.where(small, series, plain), 1e-320)
    with np.errstate(over="ignore"):
        log_term = np.where(step > 30, step, np.log(term))
    # Below e^-30 the part c e^-l is nearly all of the term, and at least it.
    exponents = np.where(l < -30, np.log(c), log_term + l) + log_base
    top = exponents.max(axis=1)
    total = top + np.log(np.exp(exponents - top[:, None]).sum(axis=1))
    moments: Floats = np.logaddexp(0.0, total) * (1 + _SAFETY)
    return moments


def _nodes(pair: DominatingPair, top: float, *, split: bool) -> tuple[Floats, Floats] | None:
    """Losses and log-weights under Q that integrate r^α for α up to ``top``.

    Args:
        pair: the base pair.
        top: the largest order.
        split: whether the integrand has a kink at loss 0.
    """
    if isinstance(pair, FinitePair) and pair.p_infinite == 0 and pair.losses.size <= 20_000:
        return pair.losses, pair.log_masses()[1]
    if isinstance(pair, GaussianPair) and 0 < pair.mu * top <= 320:
        return _gaussian_panels(pair.mu, top) if split else _gaussian_trapezia(pair.mu, top)
    if isinstance(pair, LaplacePair) and pair.epsilon * top <= 2000:
        return _laplace_panels(pair.epsilon, top)
    return None


def _gaussian_trapezia(mu: float, top: float) -> tuple[Floats, Floats]:
    """The trapezoidal rule, which converges geometrically for analytic integrands.

    The integrand is analytic in |Im x| < π/μ, where it is bounded by e^(y²/2) times itself; a step
    of at most 1/4 and 1/2μ leaves a relative error below e^−36.
    """
    step = min(0.25, 0.5 / mu)
    x = np.arange(-10.0, top * mu + 10.0 + step, step)
    return mu * x - mu * mu / 2, -x * x / 2 + math.log(step / math.sqrt(2 * math.pi))


def _gaussian_panels(mu: float, top: float) -> tuple[Floats, Floats]:
    """Gauss-Legendre panels on both sides of loss 0, which lies at x = μ/2."""
    width = min(1.0, 1.0 / mu)
    ahead, weight_ahead = _panels(mu / 2, top * mu + 10, width)
    back, weight_back = _panels(-10.0 - mu, mu / 2, width)
    x = np.concatenate([back, ahead])
    weights = np.concatenate([weight_back, weight_ahead])
    return mu * x - mu * mu / 2, -x * x / 2 + np.log(weights / math.sqrt(2 * math.pi))


def _laplace_panels(epsilon: float, top: float) -> tuple[Floats, Floats]:
    """The two atoms and, between them, panels over which no moment grows by more than e^8."""
    width = 4 / max(top, 8.0)
    left, weight_left = _panels(0.0, epsilon / 2, width)
    right, weight_right = _panels(epsilon / 2, epsilon, width)
    x = np.concatenate([left, right])
    weights = np.concatenate([weight_left, weight_right])
    losses = np.concatenate([[-epsilon], 2 * x - epsilon, [epsilon]])
    log_q = np.concatenate([[0.0], -x + np.log(weights), [-epsilon]]) - math.log(2.0)
    return losses, log_q


def _panels(low: float, high: float, width: float) -> tuple[Floats, Floats]:
    """Sixteen Gauss-Legendre nodes in each of equal panels no wider than ``width``."""
    count = max(1, math.ceil((high - low) / width))
    node, weight = np.polynomial.legendre.leggauss(16)
    edges = np.linspace(low, high, count + 1)
    half = (high - low) / count / 2
    return ((edges[:-1] + half)[:, None] + half * node).ravel(), np.tile(half * weight, count)
