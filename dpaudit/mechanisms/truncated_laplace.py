"""Laplace noise with an end: no error is ever larger than a public bound."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.base.fields import Positive
from dpaudit.mechanisms.additive import AdditiveNoise
from dpaudit.mechanisms.base import Norm, checked_sensitivity, single_entry
from dpaudit.mechanisms.inversion import first_float
from dpaudit.mechanisms.laplace import least_scale
from dpaudit.mechanisms.pairs import (
    DominatingPair,
    Floats,
    LaplacePair,
    TruncatedLaplacePair,
    costless_pair,
    vast_pair,
)

_SHORTEST = 2.0**-30


@dataclass(frozen=True)
class TruncatedLaplace(AdditiveNoise):
    """Adds noise of density ∝ e^(−|x|/b) on [−B, B] to one number.

    Geng, Ding, Guo and Kumar 2020, *Tight analysis of privacy and utility tradeoff in approximate
    differential privacy*. Neighbours s apart are told for certain with a δ that no ε removes.

    Attributes:
        scale: b, with which ε is s/b.
        bound: B, the largest size of the noise; neighbours further than 2B apart are told always.

    >>> noise = TruncatedLaplace.calibrated(epsilon=1.0, delta=1e-6, sensitivity=1.0)
    >>> round(noise.bound, 3), float(noise.pair(1.0).delta(1.0)) <= 1e-6
    (13.664, True)
    """

    kind: ClassVar[str] = "truncated-laplace"
    norm: ClassVar[Norm] = Norm.L1
    real_valued: ClassVar[bool] = True
    scale: Positive
    bound: Positive

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.bound / self.scale >= _SHORTEST:
            raise InputError(
                f"bound is {self.bound}; it must be at least scale / 2^30, {self.scale * _SHORTEST}"
                "."
            )

    @classmethod
    def calibrated(cls, *, epsilon: float, delta: float, sensitivity: float) -> TruncatedLaplace:
        """The least scale of that ε, and with it the least bound of that δ.

        (e^ε − 1)/(2(e^(B/b) − 1)) = δ (Geng et al. 2020, Theorem 1).

        Raises:
            InputError: if ε or the sensitivity is not above 0, δ is not between 0 and 1/2, or no
                float is so large a scale or bound.
        """
        if not validate.open_fraction(delta=delta) < 0.5:
            raise InputError(f"delta is {delta}; it must be below 1/2.")
        shift = validate.positive(sensitivity=sensitivity)
        scale = least_scale(Fraction(shift), epsilon)
        e = float(min(Fraction(shift) / Fraction(scale), Fraction(10) ** 300))
        end = e + math.log1p(-math.expm1(-e) * (0.5 / delta - 1))

        def holds(bound: float) -> bool:
            enough = bound > shift and bound / scale >= _SHORTEST
            return enough and cls(scale, bound).pair_and_failure(shift)[1] <= delta

        bound = first_float(holds, max(scale * end, shift) * (1 + 1e-9))
        if bound / scale < _SHORTEST:
            raise InputError(f"epsilon is {epsilon:g}; it is too small for so large a delta.")
        return cls(scale, bound)

    # -- privacy ---------------------------------------------------------------------------------

    def pair(self, sensitivity: float) -> DominatingPair:
        """The law of that shift itself; as the density is log-concave, a longer one dominates."""
        shift, scale = Fraction(checked_sensitivity(sensitivity)), Fraction(self.scale)
        if not shift:
            return costless_pair()
        if shift >= 2 * Fraction(self.bound):
            return vast_pair()
        return TruncatedLaplacePair(shift / scale, Fraction(self.bound) / scale)

    def pair_and_failure(self, sensitivity: float) -> tuple[DominatingPair, float]:
        """A Laplace pair, and the probability p of infinite loss, for shifts up to the bound.

        What is left of P and Q is dominated: with t = e^(x/2), a = e^(−e/2) and w = e^(−u) it has
        δ(x) = (2(1 − ta) − w(1/a² − t²))/(2 − w(1 + 1/a²)). That is at most 1 − ta, the curve of
        Laplace noise, if (1 − ta)(1 + ta) ≥ (1 − ta)(1 + a²), which holds for −e ≤ x ≤ e.
        """
        pair = self.pair(sensitivity)
        if not isinstance(pair, TruncatedLaplacePair) or pair.ratio > pair.end:
            return pair, 0.0
        return LaplacePair(pair.ratio), pair.infinite

    # -- release ---------------------------------------------------------------------------------

    def prepare(self, value: ArrayLike) -> NDArray[Any]:
        """One finite number."""
        return single_entry(super().prepare(value), self.kind)

    # -- law -------------------------------------------------------------------------------------

    @property
    def noise_scale(self) -> float:
        """Scale b."""
        return self.scale

    def log_noise_density(self, noise: Floats) -> Floats:
        """−|n|/b − ln 2b(1 − e^(−B/b)) within the bound."""
        whole = math.log(2 * self.scale) + math.log(-math.expm1(-self.bound / self.scale))
        size = np.abs(noise)
        return np.where(size <= self.bound, -size / self.scale - whole, -np.inf)
