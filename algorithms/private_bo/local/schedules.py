"""The parameters of Theorems 2-4 of Zhou & Tan 2021, with one documented scale on the widths.

Every β below is multiplied by ``width_multiplier``; 1 is the theorem. B bounds the function, R the
noise, both in the units of the reward; λ is the regulariser, δ the confidence of the regret bound
(not a privacy parameter), ε̃ the accuracy of the dictionary (not a privacy parameter).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpaudit.errors import InputError
from private_bo.gp import oversampling

__all__ = [
    "LaplaceFeatureTruncation",
    "LaplaceTruncation",
    "MedianOfMeans",
    "epochs_of",
    "theorem_plays_per_epoch",
]


def theorem_plays_per_epoch(horizon: int, confidence: float) -> int:
    """The k = ⌈24 ln(4eT/δ)⌉ of Theorem 4.

    >>> theorem_plays_per_epoch(1000, 0.1)
    279
    """
    return math.ceil(24.0 * math.log(4.0 * math.e * horizon / confidence))


def epochs_of(steps: int, plays: int) -> int:
    """N = ⌊T/k⌋.

    Raises:
        InputError: if there is not one whole epoch.
    """
    if steps < plays:
        raise InputError(
            f"steps is {steps}; it must be at least the number of plays per epoch, {plays}."
        )
    return steps // plays


def _function_width(bound: float, accuracy: float) -> float:
    """B (1 + 1/√(1 - ε̃)), what approximate features cost."""
    return bound * (1.0 + 1.0 / math.sqrt(1.0 - accuracy))


@dataclass(frozen=True)
class LaplaceFeatureTruncation:
    """Theorem 2, for responses y + Laplace(ℒ).

    Attributes:
        B: bound of the function.
        R: bound of the noise.
        laplace_scale: ℒ = 2(B+R)/ε.
        horizon: T.
        confidence: δ.
        accuracy: ε̃.
        regularisation: λ.
        width_multiplier: factor on β.
    """

    B: float
    R: float
    laplace_scale: float
    horizon: int
    confidence: float
    accuracy: float
    regularisation: float
    width_multiplier: float

    @property
    def second_moment(self) -> float:
        """The v = B² + R² + 8(B+R)²/ε² = B² + R² + 2ℒ², which bounds E ȳ²."""
        return self.B**2 + self.R**2 + 2.0 * self.laplace_scale**2

    @property
    def oversampling(self) -> float:
        """The q = 6ρ ln(4T/δ)/ε̃²."""
        return oversampling(self.accuracy, self.horizon, self.confidence)

    def _log(self, m: int) -> float:
        # An empty dictionary has no feature to truncate; one is the least the logarithm takes.
        return math.log(4.0 * max(m, 1) * self.horizon / self.confidence)

    def threshold(self, t: int, m: int) -> float:
        """b_t = √(v / ln(4 m_t T/δ))."""
        return math.sqrt(self.second_moment / self._log(m))

    def width(self, t: int, m: int) -> float:
        """β_{t+1} = B(1 + 1/√(1 - ε̃)) + 4 √(ln(4 m_t T/δ) v m_t / λ)."""
        deviation = 4.0 * math.sqrt(self._log(m) * self.second_moment * m / self.regularisation)
        return self.width_multiplier * (_function_width(self.B, self.accuracy) + deviation)


@dataclass(frozen=True)
class LaplaceTruncation:
    """Theorem 3, for responses y + Laplace(ℒ); ln t stands for ln max(t, 1).

    Attributes:
        B: bound of the function.
        R: bound of the noise.
        laplace_scale: ℒ = 2(B+R)/ε.
        confidence: δ.
        regularisation: λ.
        width_multiplier: factor on β.
    """

    B: float
    R: float
    laplace_scale: float
    confidence: float
    regularisation: float
    width_multiplier: float

    def threshold(self, t: int) -> float:
        """b_t = B + R + ℒ ln t."""
        return self.B + self.R + self.laplace_scale * math.log(max(t, 1))

    def width(self, t: int, gain: float) -> float:
        """β_{t+1} = B + (2√2/√λ) b_t √(γ_t + ln(1/δ)) + √(K(ln t + 1)/λ), K = B² + R² + 2ℒ²."""
        deviation = math.sqrt(8.0 * (gain - math.log(self.confidence))) * self.threshold(t)
        moment = self.B**2 + self.R**2 + 2.0 * self.laplace_scale**2
        bias = math.sqrt(moment * (math.log(max(t, 1)) + 1.0))
        return self.width_multiplier * (
            self.B + (deviation + bias) / math.sqrt(self.regularisation)
        )


@dataclass(frozen=True)
class MedianOfMeans:
    """Theorem 4, for noise with second moment c.

    Attributes:
        B: bound of the function.
        c: bound of E η² (private version: R² + 8(B+R)²/ε² = R² + 2ℒ²).
        moment: α in (0, 1]; E|η|^{1+α} <= c^{(1+α)/2} by Lyapunov's inequality.
        horizon: T.
        confidence: δ.
        accuracy: ε̃.
        regularisation: λ.
        width_multiplier: factor on β.
    """

    B: float
    c: float
    moment: float
    horizon: int
    confidence: float
    accuracy: float
    regularisation: float
    width_multiplier: float

    @property
    def oversampling(self) -> float:
        """The q = 6ρ ln(4T/δ)/ε̃²."""
        return oversampling(self.accuracy, self.horizon, self.confidence)

    def width(self, n: int, m: int) -> float:
        """β_{n+1} = B(1 + 1/√(1 - ε̃)) + 3γ/√λ.

        γ = (9 m_n c_α)^{1/(1+α)} n^{(1-α)/(2(1+α))} with c_α = c^{(1+α)/2} (Lemma 10).
        """
        order = 1.0 + self.moment
        growth = math.pow(n, (1.0 - self.moment) / (2.0 * order))
        gamma = math.pow(9.0 * m, 1.0 / order) * math.sqrt(self.c) * growth
        deviation = 3.0 * gamma / math.sqrt(self.regularisation)
        return self.width_multiplier * (_function_width(self.B, self.accuracy) + deviation)
