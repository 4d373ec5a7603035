"""How much noise: the lemmas of Dubey 2021, and calibration on what is really released."""

from __future__ import annotations

import math
from enum import StrEnum

from dpaudit.mechanisms import BinaryTree, BufferedToeplitz, HonakerTree, SquareRootToeplitz
from dpaudit.mechanisms.continual import Factorization


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
