"""How the units that take part in an invocation are drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpaudit.errors import InputError
from dpaudit.fields import Count, Kinded, Rate


@dataclass(frozen=True)
class Sampling(Kinded):
    """A sampling scheme; the draw itself stays secret."""

    family: ClassVar[str] = "sampling"
    tag: ClassVar[str] = "scheme"


@dataclass(frozen=True)
class PoissonSampling(Sampling):
    """Every unit takes part independently with probability ``rate``.

    Attributes:
        rate: probability in (0, 1].
    """

    kind: ClassVar[str] = "poisson"
    rate: Rate


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
