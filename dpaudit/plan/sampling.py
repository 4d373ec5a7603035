"""How the units that take part in an invocation are drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import InputError, UnsupportedError
from dpaudit.fields import Count, Kinded, Rate

__all__ = ["Coins", "FixedSizeSampling", "PoissonSampling", "Sampling"]


class Coins(Protocol):
    """Secret randomness that samples are drawn with."""

    def events(self, probability: float, shape: tuple[int, ...]) -> NDArray[np.bool_]:
        """Independent events of that probability."""

    def below(self, bound: int) -> int:
        """One uniform integer in 0…bound − 1."""


@dataclass(frozen=True)
class Sampling(Kinded):
    """A sampling scheme; the draw itself stays secret."""

    family: ClassVar[str] = "sampling"
    tag: ClassVar[str] = "scheme"

    @property
    def inclusion(self) -> float:
        """The probability of one unit to be in a sample; 1 where that is not known."""
        return 1.0

    def draw(self, units: int, coins: Coins) -> list[int]:
        """The places, in ascending order, of those of so many units that take part.

        Raises:
            UnsupportedError: if the scheme does not say how it draws.
            InputError: if there are not as many units as declared.
        """
        raise UnsupportedError(f"{self.kind} sampling does not say how it draws; define draw.")


@dataclass(frozen=True)
class PoissonSampling(Sampling):
    """Every unit takes part independently with probability ``rate``.

    Attributes:
        rate: probability in (0, 1].
    """

    kind: ClassVar[str] = "poisson"
    rate: Rate

    @property
    def inclusion(self) -> float:
        """The rate."""
        return self.rate

    def draw(self, units: int, coins: Coins) -> list[int]:
        """One event for each unit."""
        return np.flatnonzero(coins.events(self.rate, (units,))).tolist()


@dataclass(frozen=True)
class FixedSizeSampling(Sampling):
    """A uniform subset of ``size`` of the ``population`` units, without replacement.

    Attributes:
        size: how many take part, at least 1.
        population: how many there are, at least ``size``.
    """

    kind: ClassVar[str] = "fixed-size"
    size: Count
    population: Count

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.size > self.population:
            raise InputError(
                f"size is {self.size}; it must be at most the population, {self.population}."
            )

    @property
    def inclusion(self) -> float:
        """The share of the population."""
        return self.size / self.population

    def draw(self, units: int, coins: Coins) -> list[int]:
        """Every subset of the size is as likely, by so many steps of a shuffle (Fisher and Yates).

        Raises:
            InputError: if the units are not the declared population.
        """
        if units != self.population:
            raise InputError(
                f"units are not the declared population of {self.population}; name each of them."
            )
        places = list(range(units))
        for first in range(self.size):
            other = first + coins.below(units - first)
            places[first], places[other] = places[other], places[first]
        return sorted(places[: self.size])
