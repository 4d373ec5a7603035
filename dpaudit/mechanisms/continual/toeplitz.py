"""Toeplitz factorisations: the square root, which is optimal, and buffered ones with its error.

A matrix is its first column, which must not be negative and never increase: then the first steps of
a pattern are the worst, and the sensitivity is exact. A buffered matrix has a handful of buffers,
whose rates are those of least largest error.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.base.fields import Count, Positive
from dpaudit.mechanisms.continual.factorization import Factorization
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


_BLOCK = 64


@dataclass(frozen=True)
class Toeplitz(Factorization):
    """C is a lower-triangular Toeplitz matrix with a non-negative column that never increases.

    The L2 sensitivity is exact for any number of participations: the worst pattern starts at once
    and is as dense as it may be (Kalinin and Lampert 2024, "Banded square root matrix
    factorization for differentially private model training", Theorem 2).
    """

    @abstractmethod
    def encoder_column(self) -> Floats:
        """First column of C, shape (T,): decreasing, from 1."""

    @abstractmethod
    def decoder_column(self) -> Floats:
        """First column of B, shape (T,), from 1."""

    def _l2_sensitivity(self, count: int, gap: int) -> float:
        return distance_of_first(self.encoder_column(), count, gap)

    def _column_sums(self) -> Floats:
        return np.cumsum(self.encoder_column())[::-1]

    def _row_energy(self) -> Floats:
        return np.cumsum(self.decoder_column() ** 2)

    def encoder(self) -> Floats:
        """C from its first column."""
        return lower_toeplitz(self.encoder_column())

    def decoder(self) -> Floats:
        """B from its first column."""
        return lower_toeplitz(self.decoder_column())


def distance_of_first(column: Floats, count: int, gap: int) -> float:
    """How far the first so many steps move C x, of a column that never increases."""
    steps, rows = len(column), -(-len(column) // gap)
    padded = np.zeros((rows, gap))
    padded.flat[:steps] = column
    summed = np.cumsum(padded, axis=0)
    if count < rows:
        summed[count:] -= summed[:-count].copy()
    return float(np.linalg.norm(summed.flat[:steps]))


@dataclass(frozen=True)
class SquareRootToeplitz(Toeplitz):
    """B = C = √A, with coefficients f_k = binom(2k, k)/4^k, those of 1/√(1 − x).

    Fichtenberger, Henzinger and Upadhyay 2023, "Constant matters" (Henzinger, Upadhyay and
    Upadhyay 2023 for the mean error). Its largest error is within an additive constant of the
    least that any factorisation has, (ln T)/π + 1.07 times the noise for μ = 1.

    The noise of a step depends on all node noise so far: the stream keeps O(T) arrays and spends
    O(T) operations a step, by blocks of 64 steps in one matrix product. For long streams take
    :class:`~dpaudit.mechanisms.continual.BufferedToeplitz`.

    >>> tree = SquareRootToeplitz(1024)
    >>> round(tree.max_error(tree.sensitivity()), 3)
    3.273
    """

    kind: ClassVar[str] = "square-root-toeplitz"

    @cached_property
    def _coefficients(self) -> Floats:
        ratios = 1 - 0.5 / np.arange(1, self.steps)
        return np.concatenate([[1.0], np.cumprod(ratios)])

    def encoder_column(self) -> Floats:
        """f_k = f_{k−1} (1 − 1/2k)."""
        return self._coefficients.copy()

    def decoder_column(self) -> Floats:
        """Return that of C, as B = C."""
        return self.encoder_column()


@dataclass(frozen=True)
class BandedToeplitz(Toeplitz):
    """C = √A cut to its first diagonals, and B = A C⁻¹.

    Kalinin and Lampert 2024, "Banded square root matrix factorization for differentially private
    model training". Participations that are at least ``bands`` steps apart move other nodes, so
    that k of them cost √k times one, and may be sampled one by one (see the sampling scheme
    ``cyclic-poisson``).

    Attributes:
        steps: length T of the stream.
        bands: how many diagonals of C are not 0; one is noise on each step alone.
    """

    kind: ClassVar[str] = "banded-toeplitz"
    bands: Count

    @property
    def bandwidth(self) -> int:
        """The bands, of which a short stream has fewer."""
        return min(self.bands, self.steps)

    def encoder_column(self) -> Floats:
        """Coefficients of the square root, then zeros."""
        column = np.zeros(self.steps)
        column[: self.bandwidth] = SquareRootToeplitz(self.bandwidth).encoder_column()
        return column

    def decoder_column(self) -> Floats:
        """The series of 1/((1 − x) C(x))."""
        from scipy.signal import lfilter

        impulse = np.eye(1, self.steps)[0]
        solved = lfilter([1.0], self.encoder_column()[: self.bandwidth], impulse)
        return np.cumsum(np.asarray(solved, dtype=np.float64))


def lower_toeplitz(column: Floats) -> Floats:
    """The lower-triangular Toeplitz matrix with that first column."""
    lag = np.subtract.outer(np.arange(len(column)), np.arange(len(column)))
    return np.where(lag >= 0, column[lag], 0.0)


_MOST_BUFFERS = 16


@dataclass(frozen=True)
class BufferedToeplitz(Toeplitz):
    """C and B = A C⁻¹ are rational in the shift, so that d buffers sample B z exactly.

    Dvijotham, McMahan, Pillutla, Steinke and Thakurta 2024, "Efficient and near-optimal noise
    generation for streaming differential privacy". With θ_j = 1/(1 + p_j) and λ_i = 1/(1 + q_i),

        C(x) = ∏_{i<d} (1 − λ_i x) / ∏_{j≤d} (1 − θ_j x),     B(x) = 1/((1 − x) C(x)).

    Both are then sums of geometric series: C of the d rates p, B of the rates 0 and q and one
    coefficient for the fresh noise. Because the rates interlace, 0 < p₁ < q₁ < p₂ < … < p_d, all
    weights are positive, and the columns of B and C are non-negative and decreasing: the
    sensitivity is exact (see :class:`~dpaudit.mechanisms.continual.toeplitz.Toeplitz`).

    Rates are fields, not results of a fit: a certificate states them.

    Attributes:
        steps: length T of the stream.
        pole_rates: the d rates p; the series of C decay by 1/(1 + p) a step.
        zero_rates: the d − 1 rates q; the buffers of B decay by 1/(1 + q) a step.
    """

    kind: ClassVar[str] = "buffered-toeplitz"
    pole_rates: tuple[Positive, ...]
    zero_rates: tuple[Positive, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        poles, zeros = self.pole_rates, self.zero_rates
        if not 1 <= len(poles) <= _MOST_BUFFERS or len(zeros) != len(poles) - 1:
            raise InputError(
                f"pole_rates has {len(poles)} numbers and zero_rates {len(zeros)}; "
                f"pole_rates needs 1 to {_MOST_BUFFERS}, and zero_rates needs one fewer."
            )
        merged = [*(rate for pair in zip(poles, zeros, strict=False) for rate in pair), poles[-1]]
        if any(low >= high for low, high in pairwise(merged)):
            raise InputError(
                f"pole_rates and zero_rates, taken in turns, are {merged}; they must "
                "interlace, so that this list increases."
            )

    @classmethod
    def fitted(
        cls, steps: int, buffers: int = 5, participations: int = 1, min_separation: int = 1
    ) -> BufferedToeplitz:
        """The rates of the least largest error at a given privacy cost.

        Starts from Zolotarev's rational approximation of 1/√(1 − x), in closed form, and descends
        on the product of sensitivity and largest error. Results are cached.

        Args:
            steps: length T of the stream.
            buffers: number d of buffers, 1 to 16.
            participations: of one participant, at most.
            min_separation: of two participations, at least.

        Raises:
            InputError: if an argument is invalid.

        >>> fitted = BufferedToeplitz.fitted(1024, buffers=4)
        >>> round(fitted.max_error(fitted.sensitivity()), 3)
        3.274
        """
        steps = validate.integer_at_least(1, steps=steps)
        buffers = validate.integer_at_least(1, buffers=buffers)
        if buffers > _MOST_BUFFERS:
            raise InputError(f"buffers is {buffers}; it must be at most {_MOST_BUFFERS}.")
        gap = validate.integer_at_least(1, min_separation=min_separation)
        count = validate.integer_at_least(1, participations=participations)
        count = min(count, 1 + (steps - 1) // gap)
        poles, zeros = fitted_rates(steps, buffers, count, gap)
        return cls(steps, poles, zeros)

    @cached_property
    def weights(self) -> tuple[Floats, Floats, float]:
        """Of the series of C and of B, and B's weight of the fresh noise."""
        return series_weights(np.array(self.pole_rates), np.array(self.zero_rates))

    def encoder_column(self) -> Floats:
        """Sums of geometric series, one for each pole."""
        return geometric(self.weights[0], np.array(self.pole_rates), self.steps)

    def decoder_column(self) -> Floats:
        """Sums of geometric series, one for each buffer, and the fresh noise's own weight."""
        column = geometric(self.weights[1], np.array([0.0, *self.zero_rates]), self.steps)
        column[0] += self.weights[2]
        return column
