"""Gaussian noise under a random sensitivity: the mixture-of-Gaussians mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpaudit import validate
from dpaudit.accounting.amplification.directed import DirectedPair
from dpaudit.errors import InputError
from dpaudit.mechanisms.pairs import Floats

__all__ = ["MixtureGaussianPair"]


@dataclass(frozen=True)
class MixtureGaussianPair(DirectedPair):
    """Σ pᵢ N(cᵢ, σ²) against N(0, σ²), or the reverse.

    It dominates a Gaussian mechanism whose sensitivity is cᵢ with probability pᵢ (Choquette-Choo,
    Ganesh, Steinke and Thakurta 2024, *Privacy amplification for matrix mechanisms*). The loss at
    output x is ln Σ pᵢ exp((2 cᵢ x − cᵢ²) / 2σ²), increasing in x, and is inverted by bisection.

    Attributes:
        sensitivities: the cᵢ ≥ 0.
        probabilities: the pᵢ > 0, of sum 1.
        sigma: standard deviation σ of the noise.
        add: False for the mixture first (a unit leaves), True for the reverse (a unit joins).
    """

    sensitivities: tuple[float, ...]
    probabilities: tuple[float, ...]
    sigma: float
    add: bool = False

    def __post_init__(self) -> None:
        validate.positive(sigma=self.sigma)
        for value in self.sensitivities:
            validate.non_negative(sensitivities=value)
        for value in self.probabilities:
            validate.fraction(probabilities=value)
        if len(self.sensitivities) != len(self.probabilities) or not self.sensitivities:
            raise InputError(
                f"probabilities has {len(self.probabilities)} entries; it must have one for each "
                f"of the {len(self.sensitivities)} sensitivities, at least one."
            )
        total = math.fsum(self.probabilities)
        if abs(total - 1) > 1e-12:
            raise InputError(f"probabilities add up to {total}; they must add up to 1.")

    def above(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """Normal tails beyond the output of that loss."""
        x = self._output(loss)
        return self._tails(x, upper=not self.add)

    def below(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """The complement of :meth:`above`."""
        x = self._output(loss)
        return self._tails(x, upper=self.add)

    def nodes(self, tail: float, count: int) -> Floats:
        """Losses of evenly spaced outputs."""
        from scipy.special import ndtri

        reach = -float(ndtri(max(tail, 1e-300))) * self.sigma
        top = reach if self.add else reach + max(self.sensitivities)
        losses = self._loss(np.linspace(-reach, top, count))
        return np.unique(-losses if self.add else losses)

    @property
    def max_loss(self) -> float:
        """Infinite, but for a unit that joins and may go unseen, or is never seen."""
        if max(self.sensitivities) == 0:
            return 0.0
        unseen = self._probability_of_absence()
        if not self.add or unseen == 0:
            return math.inf
        return -math.log(unseen) * (1 + 1e-15)

    def _probability_of_absence(self) -> float:
        pairs = zip(self.sensitivities, self.probabilities, strict=True)
        return math.fsum(p for c, p in pairs if c == 0)

    def _tails(self, x: Floats, *, upper: bool) -> tuple[Floats, Floats]:
        """(P, Q) of outputs above or below x."""
        from scipy.special import ndtr

        sign = 1.0 if upper else -1.0
        mixed = np.zeros_like(x)
        for c, p in zip(self.sensitivities, self.probabilities, strict=True):
            mixed = mixed + p * ndtr(sign * (c - x) / self.sigma)
        plain = ndtr(-sign * x / self.sigma)
        return (plain, mixed) if self.add else (mixed, plain)

    def _loss(self, x: Floats) -> Floats:
        """The loss of the mixture first at output x."""
        from scipy.special import logsumexp

        c = np.asarray(self.sensitivities)
        exponents = (2 * np.multiply.outer(x, c) - c * c) / (2 * self.sigma**2)
        value: Floats = logsumexp(exponents, b=np.asarray(self.probabilities), axis=-1)
        return value

    def _output(self, loss: ArrayLike) -> Floats:
        """The output x at which the loss crosses the given one (its sign changed for ``add``)."""
        wanted = np.asarray(loss, dtype=np.float64)
        wanted = -wanted if self.add else wanted
        # No component reaches the loss before its own line does, and one has done so by `high`.
        c = np.array([v for v in self.sensitivities if v > 0])
        if c.size == 0:
            return (
                np.where(wanted < 0, -np.inf, np.inf)
                if not self.add
                else np.where(wanted <= 0, -np.inf, np.inf)
            )
        seen = np.array(
            [p for v, p in zip(self.sensitivities, self.probabilities, strict=True) if v > 0]
        )
        finite = np.clip(wanted, -1e200, 1e200)
        # Sensitivities that need an output beyond 1e200 are never told from 0.
        c = np.maximum(c, 1e-100)
        lines = np.divide.outer(finite, c)
        high = (lines - np.log(seen) / c).min(axis=-1) * self.sigma**2 + c.max() / 2
        low = np.minimum(high, lines.min(axis=-1) * self.sigma**2 + c.min() / 2)
        unseen = self._probability_of_absence()
        if unseen > 0:
            # ln(unseen + Σ p e^…) = loss puts a floor under the largest component.
            rest = np.maximum(np.expm1(np.minimum(finite, 30)) + (1 - unseen), 1e-300)
            least = np.where(finite < 30, np.log(rest), finite - 1)
            low = np.minimum(low, (np.divide.outer(least, c)).min(axis=-1) * self.sigma**2)
        for _ in range(80):
            middle = (low + high) / 2
            over = self._loss(middle) > wanted
            low, high = np.where(over, low, middle), np.where(over, middle, high)
        floor = -math.inf if unseen == 0 else math.log(unseen)
        found: Floats = np.where(wanted <= floor, -np.inf, np.where(wanted == np.inf, np.inf, high))
        return found
