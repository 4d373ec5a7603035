"""Thresholds and widths of the non-private algorithms, for rewards with a bounded second moment.

Chowdhury & Gopalan 2019 set their experiments order-wise like their theorems; these are the
settings of those experiments. They ask for a bound of E|y|^{1+α}; the problems give v >= E y², and
E|y|^{1+α} <= v^{(1+α)/2} (Lyapunov), so that its (1+α)-th root is √v for every α.
"""

from __future__ import annotations

import math

from private_bo.local.schedules import Schedule


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
