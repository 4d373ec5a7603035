"""Parameters of the non-private algorithms, for rewards with a bounded second moment.

Chowdhury & Gopalan 2019 set their experiments order-wise like their theorems; these are the
settings of those experiments. They ask for a bound of E|y|^{1+α}; the problems give v >= E y², and
E|y|^{1+α} <= v^{(1+α)/2} (Lyapunov), so that its (1+α)-th root is √v for every α.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["FeatureTruncation", "RewardTruncation", "SubGaussian"]


@dataclass(frozen=True)
class FeatureTruncation:
    """ATA-GP-UCB.

    Attributes:
        B: bound of the function.
        v: bound of E y².
        moment: α in (0, 1].
        horizon: T.
        accuracy: ε̃ of the dictionary.
        regularisation: λ.
        width_multiplier: factor on β.
    """

    B: float
    v: float
    moment: float
    horizon: int
    accuracy: float
    regularisation: float
    width_multiplier: float

    @property
    def oversampling(self) -> float:
        """The q = ln T/ε̃², at least 1/ε̃² (for T <= 2)."""
        return max(math.log(self.horizon), 1.0) / self.accuracy**2

    def _log(self, m: int) -> float:
        # ln((m + 1) T) is 0 for an empty dictionary at T = 1.
        return math.log(max((m + 1) * self.horizon, 2))

    def _growth(self, t: int) -> float:
        return math.pow(t, (1.0 - self.moment) / (2.0 * (1.0 + self.moment)))

    def threshold(self, t: int, m: int) -> float:
        """b_t = t^{(1-α)/(2(1+α))} √v / ln((m+1)T)^{1/(1+α)}."""
        root = math.pow(self._log(m), 1.0 / (1.0 + self.moment))
        return self._growth(t) * math.sqrt(self.v) / root

    def width(self, t: int, m: int) -> float:
        """β_{t+1} = B√λ + √(m v) ln((m+1)T)^{α/(1+α)} t^{(1-α)/(2(1+α))}."""
        tail = math.pow(self._log(m), self.moment / (1.0 + self.moment)) * self._growth(t)
        deviation = math.sqrt(m * self.v) * tail
        return self.width_multiplier * (self.B * math.sqrt(self.regularisation) + deviation)


@dataclass(frozen=True)
class RewardTruncation:
    """TGP-UCB.

    Attributes:
        B: bound of the function.
        v: bound of E y².
        moment: α in (0, 1].
        regularisation: λ.
        width_multiplier: factor on β.
    """

    B: float
    v: float
    moment: float
    regularisation: float
    width_multiplier: float

    def threshold(self, t: int) -> float:
        """b_t = t^{1/(2(1+α))} √v."""
        return math.pow(t, 0.5 / (1.0 + self.moment)) * math.sqrt(self.v)

    def width(self, t: int, gain: float) -> float:
        """β_{t+1} = B√λ + b_t √ln t, with ln 1 = 0 for the first."""
        deviation = self.threshold(t) * math.sqrt(math.log(max(t, 1)))
        return self.width_multiplier * (self.B * math.sqrt(self.regularisation) + deviation)


@dataclass(frozen=True)
class SubGaussian:
    """GP-UCB, without truncation (Durand, Maillard & Pineau 2018, Theorem 2).

    Attributes:
        B: bound of the function's norm.
        deviation: sub-Gaussian scale of the noise.
        confidence: δ.
        regularisation: λ.
        width_multiplier: factor on β.
    """

    B: float
    deviation: float
    confidence: float
    regularisation: float
    width_multiplier: float

    def threshold(self, t: int) -> float:
        """Infinite: nothing is truncated."""
        return math.inf

    def width(self, t: int, gain: float) -> float:
        """β_{t+1} = B + R √(2(γ_t + ln(1/δ))/λ)."""
        log = gain - math.log(self.confidence)
        noise = self.deviation * math.sqrt(2.0 * log / self.regularisation)
        return self.width_multiplier * (self.B + noise)
