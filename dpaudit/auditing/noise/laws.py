"""Exact tests of drawn noise against a declared law.

A mechanism turns every draw into its *tail*, the declared probability of noise at least as large,
and its sign (:class:`~dpaudit.mechanisms.Tails`). Under the declared law tails are independent and
uniform, so that

* the sum of −ln tail is Gamma(n, 1) (for Gaussian noise, the sum of squares is χ² with n degrees of
  freedom): the most powerful test of a wrong scale, and
* the signed tails follow the uniform law, which Kolmogorov's test checks for any other difference.

Both are exact at every n; the smaller p-value is doubled for there being two.
"""

from __future__ import annotations

import math

import numpy as np

from dpaudit.mechanisms import Tails


def p_value(tails: Tails) -> float:
    """The smaller of both p-values, doubled."""
    return min(1.0, 2 * min(scale_p_value(tails), shape_p_value(tails)))


def scale_p_value(tails: Tails) -> float:
    """Two-sided exact p-value of the scale."""
    from scipy.stats import chi2, gamma

    if tails.normal is not None:
        freedom, total = tails.normal.size, float(np.square(tails.normal).sum())
        sides = chi2.cdf(total, freedom), chi2.sf(total, freedom)
    else:
        with np.errstate(divide="ignore"):
            total = float(-np.log(tails.tails).sum())
        sides = gamma.cdf(total, tails.tails.size), gamma.sf(total, tails.tails.size)
    return min(1.0, 2 * float(min(sides)))


def shape_p_value(tails: Tails) -> float:
    """Kolmogorov's test of the signed tails."""
    from scipy.stats import kstest

    signed = np.where(tails.positive, 1 - tails.tails / 2, tails.tails / 2)
    return float(kstest(signed, "uniform").pvalue)


def scale_ratio(tails: Tails) -> float | None:
    """Estimated scale over the declared one; None where a law has no scale."""
    if tails.normal is not None:
        return math.sqrt(float(np.square(tails.normal).mean()))
    return float(tails.sizes.mean()) if tails.sizes.size else None
