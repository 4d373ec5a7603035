"""Posteriors of Gaussian processes over a finite domain: exact, and by Nyström features.

The exact one is updated by rank one, and the information gain γ_t of what was observed comes with
it. The approximate one is Zhou & Tan 2021, Algorithm 4 (appendix), after Calandriello et al. 2019.
The played points are row numbers of a finite domain, so a point played c times is one candidate of
the dictionary: the text's dictionary is a set, and c independent tries of probability p include the
point with probability 1 - (1 - p)^c.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from scipy.linalg.blas import dger

from dpaudit.base.errors import InputError
from dpaudit.base.validate import finite, integer_at_least, open_fraction, positive
from private_bo.gp.prior import FiniteDomain, Kernel
from private_bo.gp.types import Array, Indices, read_only

_LARGEST_DENSE_DOMAIN = 1024
_FIRST_CAPACITY = 64


class Storage(Enum):
    """What a posterior keeps: memory and time per observation for n points after t observations.

    Attributes:
        AUTOMATIC: ``COVARIANCE`` up to 1024 points, ``ROWS`` above.
        COVARIANCE: the posterior covariance, O(n²) memory and time, whatever t.
        ROWS: one row of n numbers an observation, O(n t) memory and time.
    """

    AUTOMATIC = "automatic"
    COVARIANCE = "covariance"
    ROWS = "rows"


class FinitePosterior(ABC):
    """Mean and variance of f ~ GP(0, k) at every point of a finite domain, given y = f(x) + noise.

    Zhou & Tan 2021, equations (2) and (3), with noise variance λ, updated by conditioning on one
    observation at a time. With c the covariance of f with f(x_t) and s = c_t its variance::

        w = c / sqrt(s + λ),  mean += w (y - mean_t) / sqrt(s + λ),  covariance -= w wᵀ

    To first order a rounding error E of the covariance goes to (I - g e_tᵀ) E (I - g e_tᵀ)ᵀ with
    the gain g = c/(s + λ), a contraction in the posterior's own metric, so errors add up and do
    not grow: 20 000 observations stay within 1e-10 of a fresh solve, and nothing is refreshed.
    A variance that rounding makes negative is set to 0. Work buffers are allocated once.

    >>> from private_bo.gp import SquaredExponential
    >>> posterior = FinitePosterior.of(FiniteDomain.grid(4), SquaredExponential(0.2), 1.0)
    >>> posterior.update(3, 2.0)
    >>> round(float(posterior.mean[3]), 12), round(float(posterior.variance[3]), 12)
    (1.0, 0.5)
    >>> int(posterior.upper_confidence(beta=0.0).argmax())
    3
    """

    def __init__(self, prior_variance: Array, noise_variance: float) -> None:
        self._noise_variance = positive(noise_variance=noise_variance)
        self._size = prior_variance.size
        self._mean = np.zeros(self._size)
        self._variance = np.array(prior_variance, dtype=np.float64)
        self._row = np.empty(self._size)
        self._scratch = np.empty(self._size)
        self._information_gain = 0.0
        self._observations = 0

    @staticmethod
    def of(
        domain: FiniteDomain,
        kernel: Kernel,
        noise_variance: float,
        storage: Storage = Storage.AUTOMATIC,
    ) -> FinitePosterior:
        """The prior over a domain, ready for observations.

        Args:
            domain: the n points.
            kernel: the prior covariance.
            noise_variance: λ > 0, the variance of the likelihood (the regulariser).
            storage: what to keep; see :class:`Storage`.
        """
        if storage is Storage.AUTOMATIC:
            small = domain.size <= _LARGEST_DENSE_DOMAIN
            storage = Storage.COVARIANCE if small else Storage.ROWS
        if storage is Storage.COVARIANCE:
            return _CovariancePosterior(domain.kernel_matrix(kernel), noise_variance)
        return _RowPosterior(domain, kernel, noise_variance)

    @property
    def mean(self) -> Array:
        """Posterior mean at every point, (n,): a read-only view that later updates change."""
        return read_only(self._mean.view())

    @property
    def variance(self) -> Array:
        """Posterior variance at every point, (n,), >= 0: a read-only view that updates change."""
        return read_only(self._variance.view())

    @property
    @abstractmethod
    def covariance(self) -> Array:
        """Posterior covariance, (n, n): read-only, and later updates may change it."""

    @property
    def information_gain(self) -> float:
        """½ ln det(I + K_t/λ) in nats, as the running sum of ½ ln(1 + σ²_{t-1}(x_t)/λ)."""
        return self._information_gain

    def update(self, index: int, y: float) -> None:
        """Condition on the observation ``y`` of the point ``index``.

        Args:
            index: row number of the point, 0 <= index < n.
            y: the (private, possibly truncated) response, in the units of f.

        Raises:
            InputError: if there is no such point or ``y`` is not finite; nothing is changed.
        """
        integer_at_least(0, self._size - 1, index=index)
        finite(y=y)
        variance = float(self._variance[index])
        deviation = math.sqrt(variance + self._noise_variance)
        residual = (y - float(self._mean[index])) / deviation
        self._condition(index, deviation)
        np.multiply(self._row, residual, out=self._scratch)
        self._mean += self._scratch
        self._information_gain += 0.5 * math.log1p(variance / self._noise_variance)
        self._observations += 1

    def upper_confidence(self, beta: float) -> Array:
        """Mean + beta · standard deviation at every point, (n,); the next call overwrites it."""
        scores = self._scratch
        np.sqrt(self._variance, out=scores)
        scores *= beta
        scores += self._mean
        return scores

    @abstractmethod
    def _condition(self, index: int, deviation: float) -> None:
        """Put cov(f, f(x_index)) / deviation into ``_row`` and take it off the covariance."""


class _CovariancePosterior(FinitePosterior):
    """Keeps the posterior covariance (n, n) and takes w wᵀ off it in place."""

    def __init__(self, prior: Array, noise_variance: float) -> None:
        super().__init__(prior.diagonal(), noise_variance)
        # BLAS updates in place only what is in Fortran order.
        self._covariance = np.array(prior, dtype=np.float64, order="F")

    @property
    def covariance(self) -> Array:
        """A view of what is kept."""
        return read_only(self._covariance.view())

    def _condition(self, index: int, deviation: float) -> None:
        covariance = self._covariance
        np.divide(covariance[:, index], deviation, out=self._row)
        dger(-1.0, self._row, self._row, a=covariance, overwrite_a=1)
        np.maximum(covariance.diagonal(), 0.0, out=self._variance)


class _RowPosterior(FinitePosterior):
    """Keeps the rows w of W, with covariance K - WᵀW; asks the kernel for one column a step."""

    def __init__(self, domain: FiniteDomain, kernel: Kernel, noise_variance: float) -> None:
        super().__init__(kernel.diagonal(domain.points), noise_variance)
        self._domain = domain
        self._kernel = kernel
        self._rows = np.empty((_FIRST_CAPACITY, domain.size))

    @property
    def covariance(self) -> Array:
        """K - WᵀW, computed at each call."""
        rows = self._rows[: self._observations]
        return read_only(self._domain.kernel_matrix(self._kernel) - rows.T @ rows)

    def _condition(self, index: int, deviation: float) -> None:
        played = self._observations
        if played == self._rows.shape[0]:
            grown = np.empty((2 * played, self._size))
            grown[:played] = self._rows
            self._rows = grown
        row = self._row
        rows = self._rows[:played]
        np.dot(rows[:, index], rows, out=row)
        np.subtract(self._domain.kernel_columns(self._kernel, [index])[:, 0], row, out=row)
        row /= deviation
        self._rows[played] = row
        np.square(row, out=self._scratch)
        self._variance -= self._scratch
        np.maximum(self._variance, 0.0, out=self._variance)


def variance_ratio(accuracy: float) -> float:
    """ρ = (1 + ε̃)/(1 - ε̃): an ε̃-accurate dictionary has σ̃² within a factor ρ of σ²."""
    value = open_fraction(accuracy=accuracy)
    return (1.0 + value) / (1.0 - value)


def oversampling(accuracy: float, horizon: int, confidence: float) -> float:
    """The q = 6 ρ ln(4 T/δ)/ε̃² that makes every dictionary ε̃-accurate (Zhou & Tan 2021, Theorem 2).

    Args:
        accuracy: ε̃ in (0, 1), the accuracy of the dictionary (not a privacy parameter).
        horizon: T >= 1, the number of embeddings.
        confidence: δ in (0, 1), the probability that one of them is not accurate.

    >>> round(oversampling(accuracy=0.1, horizon=1000, confidence=0.1), 1)
    7770.9
    """
    ratio = variance_ratio(accuracy)
    rounds = integer_at_least(1, horizon=horizon)
    return 6.0 * ratio * math.log(4.0 * rounds / open_fraction(confidence=confidence)) / accuracy**2


@dataclass(frozen=True)
class NystromEmbedding:
    """Features of every point of the domain.

    Attributes:
        dictionary: row numbers of the dictionary's points, ascending and distinct.
        features: φ̃(x) of every point, (n, m); m = 0 if the dictionary is empty.
        residual: k(x, x) - ‖φ̃(x)‖² at every point, (n,), >= 0: what the features do not see.
    """

    dictionary: Indices
    features: Array
    residual: Array

    @property
    def dimension(self) -> int:
        """The number of features m."""
        return int(self.features.shape[1])


@dataclass(eq=False)
class NystromEmbedder:
    """Draws dictionaries and embeds the domain; keeps the last embedding, as dictionaries repeat.

    Attributes:
        domain: the n points.
        kernel: the prior covariance.
    """

    domain: FiniteDomain
    kernel: Kernel
    _prior: Array = field(init=False, repr=False)
    _last: NystromEmbedding | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        self._prior = self.kernel.diagonal(self.domain.points)

    def sample(
        self, counts: Indices, variance: Array, q: float, rng: np.random.Generator
    ) -> NystromEmbedding:
        """Draw a dictionary from the played points and embed the domain (Algorithm 4).

        Args:
            counts: how often each point has been played, (n,).
            variance: σ̃² of every point before this embedding, (n,) (the prior's at first).
            q: oversampling; a play of x enters with probability min(q σ̃²(x), 1). May be inf.
            rng: source of the draw, which has no privacy role.

        Raises:
            InputError: if the arrays do not fit the domain or ``q`` is not above 0.
        """
        if np.shape(counts) != self._prior.shape or np.shape(variance) != self._prior.shape:
            raise InputError(
                f"counts and variance have shapes {np.shape(counts)} and {np.shape(variance)}; "
                f"both must have one entry for each of the {self.domain.size} points."
            )
        if not q > 0.0:
            raise InputError(f"q is {q!r}; it must be above 0.")
        played = np.flatnonzero(counts)
        return self.embed(played[_drawn(counts[played], variance[played], q, rng)])

    def embed(self, dictionary: Indices) -> NystromEmbedding:
        """The features (K_D^{1/2})^† k_D(x) of every point for a given dictionary.

        Args:
            dictionary: row numbers of domain points; repetitions add nothing and are dropped.
        """
        distinct = np.unique(np.asarray(dictionary, dtype=np.intp))
        if self._last is not None and np.array_equal(self._last.dictionary, distinct):
            return self._last
        columns = self.domain.kernel_columns(self.kernel, distinct)
        features = columns @ _inverse_root(columns[distinct])
        residual = self._prior - np.einsum("ij,ij->i", features, features)
        self._last = NystromEmbedding(
            dictionary=distinct,
            features=read_only(features),
            residual=read_only(np.maximum(residual, 0.0)),
        )
        return self._last


def _drawn(
    counts: Indices, variance: Array, q: float, rng: np.random.Generator
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which of the distinct played points enter, each after ``counts`` independent tries."""
    with np.errstate(invalid="ignore"):  # q = inf at variance 0
        single = np.minimum(np.nan_to_num(q * variance, nan=0.0), 1.0)
    # A sure play skips ln(0); the uniform draw is below 1 always.
    sure = single >= 1.0
    tries = np.where(sure, 0.0, single)
    included = np.where(sure, 1.0, -np.expm1(counts * np.log1p(-tries)))
    return np.asarray(rng.random(included.size) < included)


def _inverse_root(gram: Array) -> Array:
    """(K_D^{1/2})^†, eigenvalues below rounding taken as 0."""
    size = gram.shape[0]
    if size == 0:
        return np.empty((0, 0))
    values, vectors = np.linalg.eigh(gram)
    kept = values > values[-1] * size * np.finfo(np.float64).eps
    vectors = vectors[:, kept]
    return np.asarray(vectors / np.sqrt(values[kept]) @ vectors.T)


@dataclass(frozen=True)
class NystromPosterior:
    """Ridge regression on the features of the plays so far, from one Cholesky factor of Ṽ.

    Ṽ = Σ_τ φ̃(x_τ) φ̃(x_τ)ᵀ + λ I = L Lᵀ. Algorithms that need the rows u_i of Ṽ^{-1/2} Φ̃ᵀ may
    take those of L⁻¹ Φ̃ᵀ instead: the proofs use only that u_iᵀu_i <= 1 and that the rows turn
    sums of payoffs into the norm of Ṽ⁻¹, which holds for every root of Ṽ⁻¹.

    Attributes:
        whitened: L⁻¹ φ̃(x) of every point, (m, n): column x_τ holds u_{·τ}.
        variance: σ̃²(x) = k(x, x) - ‖φ̃‖² + λ φ̃ᵀ Ṽ⁻¹ φ̃ of every point, (n,), >= 0.
    """

    whitened: Array
    variance: Array

    @classmethod
    def fit(
        cls, embedding: NystromEmbedding, counts: Indices, noise_variance: float
    ) -> NystromPosterior:
        """Regress on ``counts[x]`` plays of every point x.

        Args:
            embedding: features of the n points.
            counts: how often each point has been played, (n,).
            noise_variance: λ > 0.
        """
        from scipy.linalg.blas import dtrsm

        regulariser = positive(noise_variance=noise_variance)
        if embedding.dimension == 0:
            empty = np.empty((0, embedding.residual.size))
            return cls(empty, embedding.residual)
        played = np.flatnonzero(counts)
        weights: Array = np.sqrt(counts[played].astype(np.float64))
        weighted = embedding.features[played] * weights[:, np.newaxis]
        moment: Array = weighted.T @ weighted
        moment.flat[:: moment.shape[0] + 1] += regulariser
        factor = np.asarray(np.linalg.cholesky(moment), dtype=np.float64)
        whitened = dtrsm(1.0, factor, embedding.features.T, lower=1)
        explained = np.einsum("ij,ij->j", whitened, whitened)
        variance = embedding.residual + regulariser * explained
        return cls(whitened, variance)
