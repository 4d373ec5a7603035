"""Rules that integrate moments of a likelihood ratio over the privacy loss of a symmetric pair."""

from __future__ import annotations

import math
from functools import singledispatch

import numpy as np

from dpaudit.mechanisms import DominatingPair, FinitePair, GaussianPair, LaplacePair
from dpaudit.mechanisms.pairs import BoundedRangePair, Floats

_MOST_LOSSES = 20_000
_MOST_PANELS = 6_000


@singledispatch
def quadrature(
    pair: DominatingPair, top: float, *, split: bool = False
) -> tuple[Floats, Floats] | None:
    """Losses and log-weights under Q that integrate r^α for α up to ``top``; None if unknown.

    Rules for other pairs are registered: ``quadrature.register(MyPair)``.

    Args:
        pair: the base pair.
        top: the largest order.
        split: whether the integrand has a kink at loss 0.
    """
    return None


@quadrature.register(FinitePair)
def _(pair: FinitePair, top: float, *, split: bool = False) -> tuple[Floats, Floats] | None:
    if pair.p_infinite > 0 or pair.losses.size > _MOST_LOSSES:
        return None
    return pair.losses, pair.log_masses()[1]


@quadrature.register(GaussianPair)
def _(pair: GaussianPair, top: float, *, split: bool = False) -> tuple[Floats, Floats] | None:
    if not 0 < pair.mu * top <= 320:
        return None
    return _gaussian_panels(pair.mu, top) if split else _gaussian_trapezia(pair.mu, top)


@quadrature.register(LaplacePair)
def _(pair: LaplacePair, top: float, *, split: bool = False) -> tuple[Floats, Floats] | None:
    """The two atoms and what lies between them."""
    epsilon = pair.epsilon
    between = _exponential_panels(epsilon, top)
    if between is None:
        return None
    losses = np.concatenate([[-epsilon], between[0], [epsilon]])
    return losses, np.concatenate([[0.0], between[1], [-epsilon]]) - math.log(2.0)


@quadrature.register(BoundedRangePair)
def _(pair: BoundedRangePair, top: float, *, split: bool = False) -> tuple[Floats, Floats] | None:
    between = _exponential_panels(pair.epsilon, top)
    return between and (between[0], between[1] - math.log(-math.expm1(-pair.epsilon)))


def _exponential_panels(epsilon: float, top: float) -> tuple[Floats, Floats] | None:
    """Losses of Q-density e^(−(loss+ε)/2)/2, in panels where no moment grows by more than e^8."""
    if not epsilon * top <= 2000:
        return None
    width = 4 / max(top, 8.0)
    left, weight_left = _panels(0.0, epsilon / 2, width)
    right, weight_right = _panels(epsilon / 2, epsilon, width)
    x = np.concatenate([left, right])
    return 2 * x - epsilon, np.log(np.concatenate([weight_left, weight_right])) - x


def _gaussian_trapezia(mu: float, top: float) -> tuple[Floats, Floats]:
    """The trapezoidal rule, which converges geometrically for analytic integrands.

    The integrand is analytic in |Im x| < π/μ, where it is bounded by e^(y²/2) times itself; a step
    of at most 1/4 and 1/2μ leaves a relative error below e^−36.
    """
    step = min(0.25, 0.5 / mu)
    x = np.arange(-10.0, top * mu + 10.0 + step, step)
    return mu * x - mu * mu / 2, -x * x / 2 + math.log(step / math.sqrt(2 * math.pi))


def _gaussian_panels(mu: float, top: float) -> tuple[Floats, Floats] | None:
    """Gauss-Legendre panels on both sides of loss 0, which lies at x = μ/2."""
    width = min(1.0, 1.0 / mu)
    if (top + 1) * mu + 20 > width * _MOST_PANELS:
        return None
    ahead, weight_ahead = _panels(mu / 2, top * mu + 10, width)
    back, weight_back = _panels(-10.0 - mu, mu / 2, width)
    x = np.concatenate([back, ahead])
    weights = np.concatenate([weight_back, weight_ahead])
    return mu * x - mu * mu / 2, -x * x / 2 + np.log(weights / math.sqrt(2 * math.pi))


def _panels(low: float, high: float, width: float) -> tuple[Floats, Floats]:
    """Sixteen Gauss-Legendre nodes in each of equal panels no wider than ``width``."""
    count = max(1, math.ceil((high - low) / width))
    node, weight = np.polynomial.legendre.leggauss(16)
    edges = np.linspace(low, high, count + 1)
    half = (high - low) / count / 2
    return ((edges[:-1] + half)[:, None] + half * node).ravel(), np.tile(half * weight, count)
