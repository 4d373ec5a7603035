"""What one user contributes, how far a replacement moves it, and what is learnt from noisy sums.

The lemmas of Dubey 2021 stand here as they are printed; :class:`Encoding` says what is really
released, on which noise is calibrated. From the sums, :class:`Learner` makes a mean and a width:
post-processing, with no privacy cost.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from dpaudit.base.errors import InputError
from dpaudit.base.fields import Checked, Count, Finite, Interval, NonNegative
from dpaudit.mechanisms import BinaryTree, BufferedToeplitz, HonakerTree, SquareRootToeplitz
from dpaudit.mechanisms.continual import Factorization
from private_bo.gp.types import Array


class Noise(StrEnum):
    """Which noise is added."""

    TIGHT = "tight"
    """The least that an accountant certifies for the claim, on the statistics that are used."""
    PAPER = "paper"
    """As the paper's lemma has it, whatever it costs; of Lemma 2, as its proof derives it."""
    PRINTED = "printed"
    """As the statement of Lemma 2 prints it: σ where the proof has σ²."""


class ContinualNoise(StrEnum):
    """How noise is correlated over the rounds."""

    BINARY_TREE = "binary-tree"
    HONAKER_TREE = "honaker-tree"
    SQUARE_ROOT = "square-root"
    BUFFERED = "buffered"

    def factorization(self, steps: int) -> Factorization:
        """The factorisation for a stream of that length; trees do without their root."""
        if self is ContinualNoise.BINARY_TREE:
            return BinaryTree(steps)
        if self is ContinualNoise.HONAKER_TREE:
            return HonakerTree(steps)
        if self is ContinualNoise.SQUARE_ROOT or steps < 4:
            return SquareRootToeplitz(steps)
        return BufferedToeplitz.fitted(steps)


def lemma_2_sigma(
    epsilon: float,
    delta: float,
    *,
    steps: int,
    bound: float,
    variance: float = 0.0,
    printed: bool = False,
) -> float:
    """σ of Lemma 2: σ² = 16 n (1 + B² + 2ρ² ln(8T/β)) ln(10/β)²/α², n = 1 + ⌈log₂T⌉.

    Args:
        epsilon: α.
        delta: β.
        steps: T.
        bound: B.
        variance: ρ² of rewards with Gaussian noise. Without, as Section 6.1 has it for bounded
            rewards, there is no logarithm.
        printed: whether that is σ itself, as the statement prints it; by the proof it is σ².

    >>> round(lemma_2_sigma(10.0, 0.1, steps=1024, bound=1.0), 2)
    8.64
    """
    square = 1 + bound**2 + 2 * variance * math.log(8 * steps / delta)
    sigma = math.sqrt(16 * _levels(steps) * square) * math.log(10 / delta) / epsilon
    return sigma**2 if printed else sigma


def lemma_3_shift(sigma: float, *, steps: int, size: int, confidence: float) -> float:
    """Λ of Lemma 3: σ √2n (4√m + 2 ln(2T/ζ))."""
    tail = 2 * math.log(2 * steps / confidence)
    return sigma * math.sqrt(2 * _levels(steps)) * (4 * math.sqrt(size) + tail)


def lemma_6_shift(sigma_x: float, *, steps: int, size: int, confidence: float) -> float:
    """λ_min of Lemma 6: σ_X √T (4√m + 2 ln(2T/ζ))."""
    tail = 2 * math.log(2 * steps / confidence)
    return sigma_x * math.sqrt(steps) * (4 * math.sqrt(size) + tail)


def _levels(steps: int) -> int:
    """The n = 1 + ⌈log₂T⌉ nodes of the tree that a user is in."""
    return 1 + math.ceil(math.log2(steps)) if steps > 1 else 1


def noise_norm(deviation: float, *, steps: int, size: int, confidence: float) -> float:
    """A bound of the spectral norm of symmetric Gaussian noise in a round.

    The expected norm is at most 2√m times the off-diagonal deviation (Sudakov–Fernique), and the
    norm is Lipschitz in the entries, so that it exceeds that by √2 √(2 ln(2T/ζ)) deviations with
    probability at most ζ/2T: the actual law in place of Lemma 3.
    """
    return deviation * (2 * math.sqrt(size) + 2 * math.sqrt(math.log(2 * steps / confidence)))


def lemma_5_sigmas(
    epsilon: float, delta: float, *, bound: float, size: int
) -> tuple[float, float, float]:
    """σ_X, σ_u and L of Lemma 5.

    σ_X² = 8 ln(5/2β)/α², σ_u² = 8 L² ln(5/β)/α², L² = B² + 2 ln(8m/β), the lemma's
    high-probability bound of |y|².
    """
    largest = math.sqrt(bound**2 + 2 * math.log(8 * size / delta))
    sigma_x = math.sqrt(8 * math.log(2.5 / delta)) / epsilon
    sigma_u = largest * math.sqrt(8 * math.log(5 / delta)) / epsilon
    return sigma_x, sigma_u, largest


FREE_WEIGHT = 8.0**-0.5
"""The largest weight of φφᵀ beside (y − ½)φ that leaves the sensitivity at 1."""


@dataclass(frozen=True, eq=False)
class Sums:
    """Noisy sums over the users so far, with the law of their noise. Free of private data.

    Attributes:
        rounds: how many users are counted.
        vector: Σ v φ with noise, (m,).
        matrix: Σ φφᵀ with noise, symmetric (m, m); None where it is not released.
        vector_noise: standard deviation of the noise of an entry of ``vector``.
        matrix_noise: of an off-diagonal entry of ``matrix``; a diagonal one has √2 times that.
    """

    rounds: int
    vector: Array
    matrix: Array | None
    vector_noise: float
    matrix_noise: float


@dataclass(frozen=True)
class Encoding(ABC):
    """What one user contributes to the sums. Base of dataclasses.

    Attributes:
        size: m, the number of features.
    """

    size: Count

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Shape of one contribution."""

    @abstractmethod
    def encode(self, phi: Array, reward: float) -> Array:
        """The contribution of a user with features φ (m,) and that reward."""

    @property
    @abstractmethod
    def sensitivity(self) -> float:
        """Largest Euclidean distance of the contributions of two users, rounded up."""

    @abstractmethod
    def decode(self, total: Array, rounds: int, deviation: float) -> Sums:
        """The sums in a noisy total.

        Args:
            total: sum of contributions and noise.
            rounds: how many contributions.
            deviation: standard deviation of the noise along every unit vector.
        """


@dataclass(frozen=True)
class Statistics(Checked, Encoding):
    """Base of contributions to the matrix of Algorithm 2, line 8: symmetric, of side m + 1.

    Attributes:
        reward_range: (low, high) of the rewards, public.
    """

    reward_range: Interval = (0.0, 1.0)

    @property
    def has_matrix(self) -> bool:
        """Whether φφᵀ is released."""
        return True

    @property
    def shape(self) -> tuple[int, ...]:
        """(m + 1, m + 1), or (m,) where no matrix is released."""
        return (self.size + 1, self.size + 1) if self.has_matrix else (self.size,)

    def value(self, reward: float) -> float:
        """The v that stands for a reward within the range."""
        return reward

    @property
    def values(self) -> tuple[float, float]:
        """The range of v: at the least and at the largest reward."""
        return self.value(self.reward_range[0]), self.value(self.reward_range[1])


@dataclass(frozen=True)
class CentredStatistics(Statistics):
    """w φφᵀ beside v φ, with v the reward scaled to [−½, ½] (or [0, 1]) and without v².

    For two users with features at an angle of cosine k and values v, v', the squared distance is

        w² (2 − 2k²) + v² + v'² − 2 v v' k,

    largest for unit norms, at extreme values, and at k = −v v'/2w² or an end of the range of k.
    For v = ±½ and w² <= 1/8 it is 1 whatever k is, as without φφᵀ: the matrix costs nothing.

    The symmetric matrix [[wφφᵀ, vφ/√2], [·, 0]] has the same norm, and symmetric noise is isotropic
    on it.

    Attributes:
        matrix_weight: w; 0 leaves the matrix out.
        centred: whether v is in [−½, ½] rather than in [0, 1].
        least_product: a lower bound of φᵀφ' over all points, such as 0 less the feature error for a
            kernel that is not negative; −1 holds always.
    """

    matrix_weight: NonNegative = FREE_WEIGHT
    centred: bool = True
    least_product: Finite = -1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not -1 <= self.least_product <= 1:
            raise InputError(f"least_product is {self.least_product}; it must be within [-1, 1].")

    @property
    def has_matrix(self) -> bool:
        """Whether the weight is positive."""
        return self.matrix_weight > 0

    def value(self, reward: float) -> float:
        """The reward on the scale of the range."""
        low, high = self.reward_range
        scaled = min(1.0, max(0.0, (reward - low) / (high - low)))
        return scaled - 0.5 if self.centred else scaled

    def encode(self, phi: Array, reward: float) -> Array:
        """[[wφφᵀ, vφ/√2], [·, 0]], or vφ alone."""
        column = self.value(reward) * phi
        return self._joined(phi, column) if self.has_matrix else column

    def _joined(self, phi: Array, column: Array) -> Array:
        block = np.zeros(self.shape)
        np.multiply(phi[:, None], phi, out=block[:-1, :-1])  # exactly symmetric
        block[:-1, :-1] *= self.matrix_weight
        block[:-1, -1] = block[-1, :-1] = column / math.sqrt(2)
        return block

    @property
    def sensitivity(self) -> float:
        """The root of the largest squared distance."""
        return math.sqrt(self._largest_square()) * (1 + 1e-15)

    def _largest_square(self) -> float:
        square = self.matrix_weight**2
        worst = 0.0
        for v, w in itertools.product(self.values, repeat=2):
            peak = -v * w / (2 * square) if square > 0 else math.copysign(1.0, -v * w)
            k = min(1.0, max(self.least_product, peak))
            worst = max(worst, square * (2 - 2 * k * k) + v * v + w * w - 2 * v * w * k)
        return worst

    def decode(self, total: Array, rounds: int, deviation: float) -> Sums:
        """Undo the weights; the noise is scaled with them."""
        if not self.has_matrix:
            return Sums(rounds, total, None, deviation, math.inf)
        noise = deviation / self.matrix_weight / math.sqrt(2)
        return Sums(rounds, *self._parted(total), deviation, noise)

    def _parted(self, total: Array) -> tuple[Array, Array]:
        """Vector and matrix."""
        return total[:-1, -1] * math.sqrt(2), total[:-1, :-1] / self.matrix_weight


@dataclass(frozen=True)
class PaperStatistics(Statistics):
    """[φ; y][φ; y]ᵀ, as Algorithm 2 of Dubey 2021 inserts it, with the unused y² in the corner.

    Two rank-one matrices of squared norm at most L² = 1 + max y² differ by at most √2 L² (reached
    for orthogonal vectors), or by less where no two [φ; y] can be orthogonal; √2 L² is declared.
    """

    def encode(self, phi: Array, reward: float) -> Array:
        """The outer product (line 8)."""
        low, high = self.reward_range
        column = np.append(phi, min(high, max(low, reward)))
        return np.asarray(np.outer(column, column))

    @property
    def sensitivity(self) -> float:
        """√2 L² = √2 (1 + max y²)."""
        largest = max(abs(end) for end in self.reward_range)
        return math.sqrt(2) * (1 + largest**2) * (1 + 1e-15)

    def decode(self, total: Array, rounds: int, deviation: float) -> Sums:
        """The blocks of the matrix."""
        noise = deviation / math.sqrt(2)
        return Sums(rounds, total[:-1, -1], total[:-1, :-1], noise, noise)


_CAUTION = 2.0
"""How much of the matrix's squared deviation must be more than noise before any of it is used: the
share of the noise itself fluctuates, and noise in V costs more than coarseness."""


class Estimate(StrEnum):
    """How V and θ follow from noisy sums."""

    SHRUNK = "shrunk"
    """Bayesian, under the known law of the noise; Σ shrunk to its public trace as far as needed."""
    PROJECTED = "projected"
    """Σ projected on the positive cone, plus λ."""
    SHIFTED = "shifted"
    """Σ shifted by twice a bound of the noise's norm, plus λ, as in Algorithm 1."""


class Width(StrEnum):
    """What the exploration bonus is a multiple of."""

    POSTERIOR = "posterior"
    """The standard deviation of the belief."""
    THEOREM = "theorem"
    """β_t^½ σ_t of Theorem 1."""


@dataclass(frozen=True, eq=False)
class Belief:
    """Mean θᵀΦ(x) and squared width Φ(x)ᵀWΦ(x).

    Attributes:
        theta: θ, (m,).
        root: R with W = R Rᵀ, (m, m).
    """

    theta: Array
    root: Array

    def scores(self, features: Array) -> Array:
        """Mean plus width of each row of features (n, m), shape (n,)."""
        return np.asarray(features @ self.theta + np.linalg.norm(features @ self.root, axis=1))


@dataclass(frozen=True)
class Learner:
    """The estimator and its constants, all public: fields as of the algorithm, and these.

    Attributes:
        reward_variance: ρ², of a value around its mean (¼ at most in a range of length 1).
        prior_variance: of f, in units of the values.
        feature_error: uniform error of the features.
        shift: Λ; None for the norm of the noise of the round.
    """

    size: int
    steps: int
    estimate: Estimate
    width: Width
    width_multiplier: float
    regularisation: float
    reward_variance: float
    prior_variance: float
    confidence: float
    norm_bound: float
    feature_error: float
    shift: float | None = None

    def belief(self, sums: Sums | None) -> Belief:
        """The belief after these sums; the prior without any."""
        if sums is None or sums.rounds == 0:
            spread = math.sqrt(self.prior_variance) * self.width_multiplier
            return Belief(np.zeros(self.size), spread * np.eye(self.size))
        if self.estimate is Estimate.SHRUNK:
            return self._shrunk(sums)
        return self._ridge(sums)

    # -- the law of the noise --------------------------------------------------------------------

    def _shrunk(self, sums: Sums) -> Belief:
        """The posterior of θ ~ N(0, τ²I) given u = Σθ + N(0, ρ²Σ + s²I), in Σ's eigenbasis.

        With s = 0 it is the usual posterior with λ = ρ²/τ².
        """
        values, vectors = self._spectrum(sums)
        spread = self.reward_variance * values + sums.vector_noise**2
        precision = values**2 / spread + 1 / self.prior_variance
        theta = vectors @ (values / spread / precision * (vectors.T @ sums.vector))
        return Belief(theta, vectors * self._bonus(sums, values, 1 / precision))

    def _spectrum(self, sums: Sums) -> tuple[Array, Array]:
        """Eigenpairs of a shrunk Σ.

        Features have about unit norm, so the trace of Σ is known to be about t. Towards (t/m) I the
        released matrix is shrunk by the share of its squared deviation that its known noise makes
        up (Ledoit & Wolf 2004, with the noise known instead of estimated).
        """
        prior = sums.rounds / self.size
        identity = np.eye(self.size)
        if sums.matrix is None:
            return np.full(self.size, prior), identity
        deviation = sums.matrix - prior * identity
        total = float(np.square(deviation).sum())
        noise = self.size * (self.size + 1) * sums.matrix_noise**2
        share = max(0.0, 1.0 - _CAUTION * noise / total) if total > 0 else 0.0
        if share == 0.0:
            return np.full(self.size, prior), identity
        values, vectors = np.linalg.eigh(prior * identity + share * deviation)
        return np.maximum(values, 1e-3 * prior), vectors

    # -- Algorithm 1 -----------------------------------------------------------------------------

    def _ridge(self, sums: Sums) -> Belief:
        """V = Σ̃ + λI and θ = V⁻¹ũ (line 7), with Σ̃'s noise made positive by shift or projection."""
        matrix = np.zeros((self.size, self.size)) if sums.matrix is None else sums.matrix
        values, vectors = np.linalg.eigh(matrix)
        lift = 2 * self._noise_norm(sums) if self.estimate is Estimate.SHIFTED else 0.0
        values = np.maximum(values + lift, 0.0) + self.regularisation
        theta = vectors @ ((vectors.T @ sums.vector) / values)  # line 7
        return Belief(theta, vectors * self._bonus(sums, values, self.reward_variance / values))

    def _noise_norm(self, sums: Sums) -> float:
        """Λ: a bound of the spectral norm of the matrix's noise."""
        if self.shift is not None:
            return self.shift
        noise = sums.vector_noise if sums.matrix is None else sums.matrix_noise
        return noise_norm(noise, steps=self.steps, size=self.size, confidence=self.confidence)

    # -- widths ----------------------------------------------------------------------------------

    def _bonus(self, sums: Sums, values: Array, variances: Array) -> Array:
        """Deviations along the eigenvectors, times the multiplier (and β^½ of line 8)."""
        factor = self.width_multiplier
        if self.width is Width.THEOREM:
            factor *= self.theorem_factor(sums, values)
        return np.asarray(factor * np.sqrt(variances))

    def theorem_factor(self, sums: Sums, values: Array) -> float:
        """β_t^½ of Theorem 1, with λ_min = Λ, λ_max = 3Λ, and κ of Lemma 3 for the actual noise.

        Args:
            sums: for t and the noise.
            values: eigenvalues of V.
        """
        rho = math.sqrt(self.reward_variance)
        low = max(self._noise_norm(sums), 1e-12)
        kappa = (
            sums.vector_noise
            * math.sqrt(1 / low)
            * (math.sqrt(self.size) + math.sqrt(2 * math.log(2 * self.steps / self.confidence)))
        )
        gain = float(np.log(values / (self.regularisation + low)).clip(min=0.0).sum())
        return (
            self.norm_bound * math.sqrt(3 * low / self.reward_variance + 1)
            + sums.rounds * self.norm_bound * self.feature_error / (rho * math.sqrt(low))
            + kappa / rho
            + math.sqrt(gain + 2 * math.log(2 / self.confidence))
        )
