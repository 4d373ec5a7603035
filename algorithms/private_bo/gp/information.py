"""The maximum information gain γ_t of a finite domain, bounded by the greedy algorithm."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpaudit.base.validate import integer_at_least
from private_bo.gp.domains import FiniteDomain
from private_bo.gp.kernels import Kernel
from private_bo.gp.posterior import FinitePosterior
from private_bo.gp.types import Array, read_only


@dataclass(frozen=True)
class InformationGain:
    """Bounds of γ_t = max ½ ln det(I + K_A/λ) over all |A| = t (points may repeat), in nats.

    Attributes:
        greedy: gain of the greedy choice of t points for t = 1, ..., T, (T,): γ_t is at least that.
        upper: an upper bound of γ_t, (T,).
    """

    greedy: Array
    upper: Array


def greedy_information_gain(
    domain: FiniteDomain, kernel: Kernel, noise_variance: float, steps: int
) -> InformationGain:
    """Bracket the maximum information gain for t = 1, ..., ``steps``.

    The greedy algorithm takes the point of largest posterior variance. The gain is monotone and
    submodular, so γ_t <= greedy_t · e/(e-1) (Nemhauser, Wolsey & Fisher 1978; Krause & Guestrin
    2005), and, after any s greedy points, γ_t <= greedy_s + t · (largest next gain). The upper
    bound is the least of these. Repetitions are allowed, so it covers sets and sequences alike.

    Args:
        domain: the n points.
        kernel: the prior covariance.
        noise_variance: λ > 0.
        steps: T >= 1.

    Raises:
        InputError: if ``steps`` is not a positive integer or ``noise_variance`` is not positive.
    """
    horizon = integer_at_least(1, steps=steps)
    posterior = FinitePosterior.of(domain, kernel, noise_variance)
    gains = np.empty(horizon + 1)
    for step in range(horizon + 1):
        point = int(posterior.variance.argmax())
        gains[step] = 0.5 * math.log1p(float(posterior.variance[point]) / noise_variance)
        posterior.update(point, 0.0)
    greedy = np.cumsum(gains[:-1])
    before = np.concatenate([[0.0], greedy])
    sizes = np.arange(1, horizon + 1)
    marginal = np.array([float(np.min(before + size * gains)) for size in sizes])
    upper = np.minimum(greedy * (math.e / (math.e - 1.0)), marginal)
    return InformationGain(greedy=read_only(greedy), upper=read_only(upper))
