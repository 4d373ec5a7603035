"""Rates of a buffered Toeplitz factorisation with the least largest error."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from dpaudit.mechanisms.continual.series import series_weights
from dpaudit.mechanisms.pairs import Floats

Rates = tuple[tuple[float, ...], tuple[float, ...]]

_STEP = 1e-30
"""Of a derivative by a complex step, whose error is its square: below any rounding."""
_DIGITS = 5
"""Significant digits of a rate: more would cost nothing and depend on how a processor rounds."""


@lru_cache(maxsize=256)
def fitted_rates(steps: int, buffers: int, count: int, gap: int) -> Rates:
    """Pole and zero rates that minimise :func:`log_error`, from Zolotarev's.

    The search is over the logarithm of the first rate and of the logarithmic gaps between the
    interlaced rates, so that every point of it is a valid factorisation. The minimum is so flat
    that exact derivatives are needed to find it: for one participation the rates, which a plan
    names, then agree between processors, but for a last digit that is rounded the other way.
    """
    from scipy.optimize import Bounds, minimize

    poles, zeros = zolotarev_rates(steps, buffers)
    merged = np.sort(np.concatenate([poles, zeros]))
    logs = np.log(merged)
    start = np.concatenate([logs[:1], np.log(np.diff(logs))])
    reach = np.where(np.arange(len(start)) == 0, 12.0, 3.0)
    # With several participations a buffer may be of no use, and its rates run away: stop early.
    enough = 0.0 if count == 1 else 2e-9

    def objective(point: Floats) -> tuple[float, Floats]:
        aside = point + 1j * _STEP * np.eye(len(point))
        moved = [_log_error(*_rates(row), steps, count, gap) for row in aside]
        return log_error(*_rates(point), steps, count, gap), np.imag(moved) / _STEP

    found = minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=Bounds(start - reach, start + reach),
        options={"maxiter": 150, "maxfun": 6000, "ftol": enough, "gtol": 1e-9},
    )
    best = found.x if found.fun < log_error(poles, zeros, steps, count, gap) else start
    poles, zeros = (_rounded(rates) for rates in _rates(best))
    return tuple(poles.tolist()), tuple(zeros.tolist())


def _rounded(rates: Floats) -> Floats:
    return np.array([float(f"{rate:.{_DIGITS}g}") for rate in rates])


def zolotarev_rates(steps: int, buffers: int) -> tuple[Floats, Floats]:
    """Poles and zeros of the best uniform relative approximation of z^−½ on [1/T, 2], z = 1 − x.

    Zolotarev 1877 by elliptic functions: c_l = (1/T) sc²(l K/2d) with modulus² 1 − 1/2T; odd l
    are the poles and even l the zeros.
    """
    from scipy.special import ellipj, ellipkm1

    low, high = 1 / steps, 2.0
    points = np.arange(1, 2 * buffers) * float(ellipkm1(low / high)) / (2 * buffers)
    sn, cn, _, _ = ellipj(points, 1 - low / high)
    rates = np.asarray(low * (sn / cn) ** 2, dtype=np.float64)
    return rates[::2], rates[1::2]


def log_error(poles: Floats, zeros: Floats, steps: int, count: int, gap: int) -> float:
    """Logarithm of sensitivity times largest error, in closed form: no sum over the steps."""
    return float(_log_error(poles, zeros, steps, count, gap))


def _log_error(poles: Floats, zeros: Floats, steps: int, count: int, gap: int) -> Any:
    """The same, also of complex rates."""
    encoder, decoder, fresh = series_weights(poles, zeros)
    rates = np.log1p(np.concatenate([[0.0], zeros]))
    energy = decoder @ _series(rates, steps) @ decoder + fresh * (fresh + 2 * decoder.sum())
    return np.log(energy * _squared_norm(encoder, poles, steps, count, gap)) / 2


def _squared_norm(weights: Floats, poles: Floats, steps: int, count: int, gap: int) -> Any:
    """‖Σ_{j<count} C[:, j gap]‖²: after each participation the d series go on from a new height."""
    rates = np.log1p(poles)
    heights = weights * _partial(
        np.multiply.outer(np.arange(1, count + 1), rates * gap), rates * gap
    )
    last = heights[-1] @ _series(rates, steps - (count - 1) * gap) @ heights[-1]
    before = np.einsum("ji,ik,jk->", heights[:-1], _series(rates, gap), heights[:-1])
    return last + before


def _series(rates: Floats, length: int) -> Floats:
    """Σ_{k<length} exp(−k (r_i + r_j)) for all pairs of rates."""
    sums = np.add.outer(rates, rates)
    return _partial(sums * length, sums, length)


def _partial(total: Floats, rates: Floats, length: int = 1) -> Floats:
    """(1 − e^−total)/(1 − e^−rate), and the number of terms where the rate is 0."""
    positive = np.where(rates > 0, rates, 1.0)
    sums: Floats = np.where(rates > 0, np.expm1(-total) / np.expm1(-positive), length)
    return sums


def _rates(point: Floats) -> tuple[Floats, Floats]:
    rates = np.exp(np.cumsum(np.concatenate([point[:1], np.exp(point[1:])])))
    return rates[::2], rates[1::2]
