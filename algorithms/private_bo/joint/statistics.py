"""What one user contributes, how far a replacement moves it, how sums are read, and how much noise.

The lemmas of Dubey 2021 stand here as they are printed; :class:`Encoding` says what is really
released, on which noise is calibrated.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self

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

    def narrow(self, size: int) -> Self:
        """The same for the first features alone, in the same units."""
        return replace(self, size=size)


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
        if not self.has_matrix:
            return column
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
        matrix = total[:-1, :-1] / self.matrix_weight
        vector = total[:-1, -1] * math.sqrt(2)
        noise = deviation / self.matrix_weight / math.sqrt(2)
        return Sums(rounds, vector, matrix, deviation, noise)


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
