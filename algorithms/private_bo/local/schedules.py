"""Thresholds and widths of the learners: Theorems 2-4 of Zhou & Tan 2021, and of comparators.

Every β below is multiplied by ``width_multiplier``; 1 is the theorem. The δ and ε̃ of this module
are no privacy parameters: δ is the confidence of the regret bound, ε̃ the dictionary's accuracy.

Chowdhury & Gopalan 2019 set their experiments order-wise like their theorems; the comparators have
the settings of those experiments, for rewards with a bounded second moment. They ask for a bound of
E|y|^{1+α}; the problems give v >= E y², and E|y|^{1+α} <= v^{(1+α)/2} (Lyapunov), so that its
(1+α)-th root is √v for every α.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, TypeAlias

from dpaudit.base import validate
from private_bo.gp import oversampling

MomentOrder: TypeAlias = Annotated[float, validate.fraction]
"""α in (0, 1]: a moment of order 1 + α is bounded."""


def theorem_plays_per_epoch(horizon: int, confidence: float) -> int:
    """The k = ⌈24 ln(4eT/δ)⌉ of Theorem 4.

    >>> theorem_plays_per_epoch(1000, 0.1)
    279
    """
    return math.ceil(24.0 * math.log(4.0 * math.e * horizon / confidence))


@dataclass(frozen=True)
class Constants:
    """What thresholds and widths follow from: public numbers, in the units of the reward.

    Attributes:
        horizon: T, the number of responses at most.
        B: bound of |f|.
        R: bound of the noise of a reward, infinite if there is none.
        v: bound of E y² of a response y.
        c: bound of E (y − f)².
        confidence: δ.
        regularisation: λ.
        width_multiplier: factor on β.
        laplace_scale: ℒ = 2(B+R)/ε of the noise that makes a response private; 0 without any.
        accuracy: ε̃ of the Nyström dictionary.
        moment: α in (0, 1]; by Lyapunov's inequality E|y|^{1+α} <= v^{(1+α)/2}, likewise c.
    """

    horizon: int
    B: float
    R: float
    v: float
    c: float
    confidence: float
    regularisation: float
    width_multiplier: float
    laplace_scale: float = 0.0
    accuracy: float = 0.1
    moment: float = 1.0


@dataclass(frozen=True)
class Schedule:
    """Base of all schedules.

    Attributes:
        constants: what the schedule follows from.
    """

    constants: Constants

    @property
    def oversampling(self) -> float:
        """The q = 6ρ ln(4T/δ)/ε̃² of the Nyström embedding (Theorems 2 and 4)."""
        public = self.constants
        return oversampling(public.accuracy, public.horizon, public.confidence)

    def scaled(self, bias: float, deviation: float) -> float:
        """The width bias + deviation/√λ, times the multiplier."""
        public = self.constants
        return public.width_multiplier * (bias + deviation / math.sqrt(public.regularisation))

    @property
    def feature_bias(self) -> float:
        """B (1 + 1/√(1 - ε̃)), the width that approximate features cost (Theorems 2 and 4)."""
        return self.constants.B * (1.0 + 1.0 / math.sqrt(1.0 - self.constants.accuracy))


class LaplaceFeatureTruncation(Schedule):
    """Theorem 2 (LDP-ATA-GP-UCB): v = B² + R² + 8(B+R)²/ε²."""

    def _log(self, m: int) -> float:
        """ln(4 m_t T/δ); an empty dictionary has no feature to truncate and counts as one."""
        public = self.constants
        return math.log(4.0 * max(m, 1) * public.horizon / public.confidence)

    def threshold(self, t: int, m: int) -> float:
        """b_t = √(v / ln(4 m_t T/δ))."""
        return math.sqrt(self.constants.v / self._log(m))

    def width(self, t: int, m: int) -> float:
        """β_{t+1} = B(1 + 1/√(1 - ε̃)) + 4 √(ln(4 m_t T/δ) v m_t / λ)."""
        return self.scaled(self.feature_bias, 4.0 * math.sqrt(self._log(m) * self.constants.v * m))


class LaplaceTruncation(Schedule):
    """Theorem 3 (LDP-TGP-UCB): K = v = B² + R² + 2ℒ²; ln t stands for ln max(t, 1)."""

    def threshold(self, t: int) -> float:
        """b_t = B + R + ℒ ln t."""
        public = self.constants
        return public.B + public.R + public.laplace_scale * math.log(max(t, 1))

    def width(self, t: int, gain: float) -> float:
        """β_{t+1} = B + (2√2/√λ) b_t √(γ_t + ln(1/δ)) + √(K(ln t + 1)/λ)."""
        public = self.constants
        deviation = math.sqrt(8.0 * (gain - math.log(public.confidence))) * self.threshold(t)
        truncated = math.sqrt(public.v * (math.log(max(t, 1)) + 1.0))
        return self.scaled(public.B, deviation + truncated)


class MedianOfMeans(Schedule):
    """Theorem 4 (MoMA-GP-UCB), and Corollary 1 with c = R² + 8(B+R)²/ε² (LDP-MoMA-GP-UCB)."""

    def width(self, n: int, m: int) -> float:
        """β_{n+1} = B(1 + 1/√(1 - ε̃)) + 3γ/√λ.

        γ = (9 m_n c_α)^{1/(1+α)} n^{(1-α)/(2(1+α))} with c_α = c^{(1+α)/2} (Lemma 10).
        """
        public = self.constants
        order = 1.0 + public.moment
        growth = math.pow(n, (1.0 - public.moment) / (2.0 * order))
        gamma = math.pow(9.0 * m, 1.0 / order) * math.sqrt(public.c) * growth
        return self.scaled(self.feature_bias, 3.0 * gamma)


class FeatureTruncation(Schedule):
    """ATA-GP-UCB (Chowdhury & Gopalan 2019, Section 5)."""

    @property
    def oversampling(self) -> float:
        """The q = ln T/ε̃², at least 1/ε̃² (for T <= 2)."""
        return max(math.log(self.constants.horizon), 1.0) / self.constants.accuracy**2

    def _log(self, m: int) -> float:
        """ln((m + 1) T), which is 0 for an empty dictionary at T = 1: at least ln 2."""
        return math.log(max((m + 1) * self.constants.horizon, 2))

    def _growth(self, t: int) -> float:
        """t^{(1-α)/(2(1+α))}."""
        moment = self.constants.moment
        return math.pow(t, (1.0 - moment) / (2.0 * (1.0 + moment)))

    def threshold(self, t: int, m: int) -> float:
        """b_t = t^{(1-α)/(2(1+α))} √v / ln((m+1)T)^{1/(1+α)}."""
        root = math.pow(self._log(m), 1.0 / (1.0 + self.constants.moment))
        return self._growth(t) * math.sqrt(self.constants.v) / root

    def width(self, t: int, m: int) -> float:
        """β_{t+1} = B√λ + √(m v) ln((m+1)T)^{α/(1+α)} t^{(1-α)/(2(1+α))}."""
        public = self.constants
        tail = math.pow(self._log(m), public.moment / (1.0 + public.moment)) * self._growth(t)
        deviation = math.sqrt(m * public.v) * tail
        return public.width_multiplier * (public.B * math.sqrt(public.regularisation) + deviation)


class RewardTruncation(Schedule):
    """TGP-UCB (Chowdhury & Gopalan 2019, Section 5)."""

    def threshold(self, t: int) -> float:
        """b_t = t^{1/(2(1+α))} √v."""
        public = self.constants
        return math.pow(t, 0.5 / (1.0 + public.moment)) * math.sqrt(public.v)

    def width(self, t: int, gain: float) -> float:
        """β_{t+1} = B√λ + b_t √ln t, with ln 1 = 0 for the first."""
        public = self.constants
        deviation = self.threshold(t) * math.sqrt(math.log(max(t, 1)))
        return public.width_multiplier * (public.B * math.sqrt(public.regularisation) + deviation)


class SubGaussian(Schedule):
    """GP-UCB, without truncation (Durand, Maillard & Pineau 2018, Theorem 2).

    The scale of the noise is R, or √c where the noise is unbounded: no theorem then.
    """

    def threshold(self, t: int) -> float:
        """Infinite: nothing is truncated."""
        return math.inf

    def width(self, t: int, gain: float) -> float:
        """β_{t+1} = B + R √(2(γ_t + ln(1/δ))/λ)."""
        public = self.constants
        noise = public.R if math.isfinite(public.R) else math.sqrt(public.c)
        return self.scaled(public.B, noise * math.sqrt(2.0 * (gain - math.log(public.confidence))))


RewardTruncations: TypeAlias = LaplaceTruncation | RewardTruncation | SubGaussian
"""Of :func:`~private_bo.local.policies.truncated_gp_ucb`: b_t and β_{t+1} by t and the gain."""
FeatureTruncations: TypeAlias = LaplaceFeatureTruncation | FeatureTruncation
"""Of :func:`~private_bo.local.policies.adaptively_truncated_gp_ucb`: by t and m."""
