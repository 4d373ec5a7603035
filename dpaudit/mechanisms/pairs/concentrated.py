"""A pair of which only concentration is known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.base.errors import UnsupportedError
from dpaudit.base.fields import NonNegative
from dpaudit.mechanisms.pairs.base import DominatingPair, Floats


@dataclass(frozen=True)
class ConcentratedPair(DominatingPair):
    """A pair of which only a bound on its Rényi divergences is known: at most α ρ.

    Attributes:
        rho: ρ of zero-concentrated differential privacy.
    """

    has_law: ClassVar[bool] = False
    rho: NonNegative

    def above(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """Unknown.

        Raises:
            UnsupportedError: always.
        """
        raise UnsupportedError("ρ-zCDP alone does not give the law of the privacy loss.")

    def below(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """Unknown.

        Raises:
            UnsupportedError: always.
        """
        return self.above(loss)

    def renyi(self, orders: ArrayLike) -> Floats:
        """α ρ (Bun and Steinke 2016, Definition 1.1)."""
        with np.errstate(over="ignore"):
            return np.asarray(orders, dtype=np.float64) * self.rho

    @property
    def pure_epsilon(self) -> Fraction | float:
        """Unknown, hence infinite."""
        return math.inf if self.rho > 0 else Fraction(0)

    @property
    def zcdp_rho(self) -> float:
        """ρ itself."""
        return self.rho
