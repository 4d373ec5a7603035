"""Nyström features over a finite domain and the approximate posterior they give.

Zhou & Tan 2021, Algorithm 4 (appendix), after Calandriello et al. 2019. The played points are
row numbers of a finite domain, so a point played c times is one candidate of the dictionary: the
text's dictionary is a set, and c independent tries of probability p include the point with
probability 1 - (1 - p)^c.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from dpaudit.errors import InputError
from dpaudit.validate import integer_at_least, open_fraction, positive
from private_bo.gp.domains import FiniteDomain
from private_bo.gp.kernels import Kernel
from private_bo.gp.types import Array, Indices, read_only


class Coordinates(Enum):
    """The basis of the feature space; inner products of features are the same in both.

    Attributes:
        SYMMETRIC: (K_D^{1/2})^† k_D(x) as the text has it, one feature a dictionary point.
        SPECTRAL: the same in the eigenbasis of K_D, one feature an eigenvalue above rounding.
            On smooth kernels that is far fewer (about 15 instead of 100 on the unit interval),
            and every confidence width that grows with the dimension m is smaller.
    """

    SYMMETRIC = "symmetric"
    SPECTRAL = "spectral"


def variance_ratio(accuracy: float) -> float:
    """ρ = (1 + ε̃)/(1 - ε̃): an ε̃-accurate dictionary has σ̃² within a factor ρ of σ².

    Raises:
        InputError: if ``accuracy`` ε̃ (not a privacy parameter) is outside (0, 1).
    """
    value = open_fraction(accuracy=accuracy)
    return (1.0 + value) / (1.0 - value)


def oversampling(accuracy: float, horizon: int, confidence: float) -> float:
    """The q = 6 ρ ln(4 T/δ)/ε̃² that makes every dictionary ε̃-accurate (Zhou & Tan 2021, Theorem 2).

    Args:
        accuracy: ε̃ in (0, 1), the accuracy of the dictionary (not a privacy parameter).
        horizon: T >= 1, the number of embeddings.
        confidence: δ in (0, 1), the probability that one of them is not accurate.

    Raises:
        InputError: if an argument is outside its range.

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
        coordinates: basis of the feature space.
    """

    domain: FiniteDomain
    kernel: Kernel
    coordinates: Coordinates = Coordinates.SYMMETRIC
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
        features = columns @ _inverse_root(columns[distinct], self.coordinates)
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


def _inverse_root(gram: Array, coordinates: Coordinates) -> Array:
    """A matrix A with A Aᵀ = K_D^†, eigenvalues below rounding taken as 0."""
    size = gram.shape[0]
    if size == 0:
        return np.empty((0, 0))
    values, vectors = np.linalg.eigh(gram)
    kept = values > values[-1] * size * np.finfo(np.float64).eps
    vectors = vectors[:, kept]
    scaled = vectors / np.sqrt(values[kept])
    root: Array = scaled if coordinates is Coordinates.SPECTRAL else scaled @ vectors.T
    return root


@dataclass(frozen=True)
class NystromPosterior:
    """Ridge regression on the features of the plays so far, from one Cholesky factor of Ṽ.

    Ṽ = Σ_τ φ̃(x_τ) φ̃(x_τ)ᵀ + λ I = L Lᵀ. Algorithms that need the rows u_i of Ṽ^{-1/2} Φ̃ᵀ may
    take those of L⁻¹ Φ̃ᵀ instead: the proofs use only that u_iᵀu_i <= 1 and that the rows turn
    sums of payoffs into the norm of Ṽ⁻¹, which holds for every root of Ṽ⁻¹.

    Attributes:
        embedding: the features.
        factor: L, lower triangular, (m, m).
        whitened: L⁻¹ φ̃(x) of every point, (m, n): column x_τ holds u_{·τ}.
        variance: σ̃²(x) = k(x, x) - ‖φ̃‖² + λ φ̃ᵀ Ṽ⁻¹ φ̃ of every point, (n,), >= 0.
        noise_variance: λ.
    """

    embedding: NystromEmbedding
    factor: Array
    whitened: Array
    variance: Array
    noise_variance: float

    @classmethod
    def fit(
        cls, embedding: NystromEmbedding, counts: Indices, noise_variance: float
    ) -> NystromPosterior:
        """Regress on ``counts[x]`` plays of every point x.

        Args:
            embedding: features of the n points.
            counts: how often each point has been played, (n,).
            noise_variance: λ > 0.

        Raises:
            InputError: if ``noise_variance`` is not positive.
        """
        from scipy.linalg.blas import dtrsm

        regulariser = positive(noise_variance=noise_variance)
        if embedding.dimension == 0:
            empty = np.empty((0, embedding.residual.size))
            return cls(embedding, np.empty((0, 0)), empty, embedding.residual, regulariser)
        played = np.flatnonzero(counts)
        weights: Array = np.sqrt(counts[played].astype(np.float64))
        weighted = embedding.features[played] * weights[:, np.newaxis]
        moment: Array = weighted.T @ weighted
        moment.flat[:: moment.shape[0] + 1] += regulariser
        factor = np.asarray(np.linalg.cholesky(moment), dtype=np.float64)
        whitened = dtrsm(1.0, factor, embedding.features.T, lower=1)
        explained = np.einsum("ij,ij->j", whitened, whitened)
        variance = embedding.residual + regulariser * explained
        return cls(embedding, factor, whitened, variance, regulariser)

    def solve(self, right: Array) -> Array:
        """Ṽ⁻¹ ``right`` for a vector (m,) or a matrix (m, k) of right-hand sides."""
        from scipy.linalg import cho_solve

        if self.embedding.dimension == 0:
            return np.zeros_like(right)
        return np.asarray(cho_solve((self.factor, True), right, check_finite=False))
