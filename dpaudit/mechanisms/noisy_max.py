"""Report noisy max and permute-and-flip: the index of the largest noisy utility."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpaudit.mechanisms.choice import Choice, Noise


@dataclass(frozen=True)
class PermuteAndFlip(Choice):
    """Takes the first candidate, in random order, of a coin of exp(ε (u − max u)/2Δ).

    McKenna and Sheldon 2020. It is report noisy max with exponential noise (Ding et al. 2021, *The
    permute-and-flip mechanism is identical to report-noisy-max with exponential noise*).

    Attributes:
        monotonic: whether one unit moves all utilities in the same direction, if at all, so that
            half the noise will do.
    """

    kind: ClassVar[str] = "permute-and-flip"
    monotonic: bool = False

    @property
    def law(self) -> Noise:
        """Exponential noise has just this law."""
        return Noise.EXPONENTIAL

    @property
    def span(self) -> int:
        """1 for monotonic utilities, else 2."""
        return 1 if self.monotonic else 2


@dataclass(frozen=True)
class NoisyMax(PermuteAndFlip):
    """Chooses the index of the largest utility with noise of scale 2Δ/ε; no noisy value leaves.

    Dwork and Roth 2014, Section 3.3. With exponential noise it is permute-and-flip (Ding et al.
    2021), and with Gumbel noise the exponential mechanism, which is better concentrated.

    Attributes:
        noise: its law.
    """

    kind: ClassVar[str] = "noisy-max"
    noise: Noise = Noise.LAPLACE

    @property
    def law(self) -> Noise:
        """The noise."""
        return self.noise
