"""Releases of which only the proved privacy is known, as from another library."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.errors import InputError, UnsupportedError
from dpaudit.fields import NonNegative, Probability
from dpaudit.mechanisms.base import Mechanism, Norm, checked_sensitivity
from dpaudit.mechanisms.pairs import DominatingPair, Floats, approximate_pair

__all__ = ["ApproximateBlackBox", "ConcentratedBlackBox", "ConcentratedPair", "PureBlackBox"]


@dataclass(frozen=True)
class _BlackBox(Mechanism):
    """What black boxes share: the input changes or it does not, and nothing can be sampled."""

    norm: ClassVar[Norm] = Norm.CHANGE

    def pair(self, sensitivity: float) -> DominatingPair:
        """The pair of a changed input; an unchanged one costs nothing.

        Raises:
            InputError: if the sensitivity is neither 0 nor 1.
        """
        changed = checked_sensitivity(sensitivity)
        if changed not in (0.0, 1.0):
            raise InputError(f"sensitivity is {sensitivity}; {self.kind} takes 0 or 1.")
        return self._changed() if changed else approximate_pair(0.0)

    @abstractmethod
    def _changed(self) -> DominatingPair:
        """The pair of a changed input."""

    def _refuse(self) -> NoReturn:
        raise UnsupportedError(
            f"{self.kind} declares only its privacy; run the library that it stands for."
        )

    def _sample(self, values: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        self._refuse()

    def log_density(self, outputs: ArrayLike, value: ArrayLike) -> Floats:
        """Unknown.

        Raises:
            UnsupportedError: always.
        """
        self._refuse()


@dataclass(frozen=True)
class PureBlackBox(_BlackBox):
    """Any ε-private release, accounted by the pair that dominates all of them.

    Attributes:
        epsilon: its proved ε for neighbouring inputs.

    >>> PureBlackBox(0.5).pair(1).pure_epsilon
    Fraction(1, 2)
    """

    kind: ClassVar[str] = "pure-black-box"
    epsilon: NonNegative

    def _changed(self) -> DominatingPair:
        return approximate_pair(self.epsilon)


@dataclass(frozen=True)
class ApproximateBlackBox(_BlackBox):
    """Any (ε, δ)-private release, accounted by the pair that dominates all of them.

    Attributes:
        epsilon: its proved ε for neighbouring inputs.
        delta: its proved δ at that ε.
    """

    kind: ClassVar[str] = "approximate-black-box"
    epsilon: NonNegative
    delta: Probability

    def _changed(self) -> DominatingPair:
        return approximate_pair(self.epsilon, self.delta)


@dataclass(frozen=True)
class ConcentratedBlackBox(_BlackBox):
    """Any ρ-zCDP release.

    Attributes:
        rho: its proved ρ for neighbouring inputs.
    """

    kind: ClassVar[str] = "concentrated-black-box"
    rho: NonNegative

    def _changed(self) -> DominatingPair:
        return ConcentratedPair(self.rho)


@dataclass(frozen=True)
class ConcentratedPair(DominatingPair):
    """A pair of which only a bound on its Rényi divergences is known: at most α ρ."""

    rho: float

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
