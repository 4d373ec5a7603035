"""How the units that take part in an invocation are drawn.

Invocations name a scheme, the ledger draws it, and accountants look its amplification up by its
class. A scheme amplifies nothing where no theorem is registered for it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpaudit.base.errors import InputError
from dpaudit.base.fields import Count, Kinded, Positive, Rate


@dataclass(frozen=True)
class Sampling(Kinded):
    """A sampling scheme; the draw itself stays secret."""

    family: ClassVar[str] = "sampling"
    tag: ClassVar[str] = "scheme"

    @property
    def inclusion(self) -> float:
        """The probability that what is drawn, a unit or a row of one, is in a sample."""
        return 1.0

    @property
    def touching(self) -> float:
        """The probability that a unit, or any of its rows, is in a sample."""
        return self.inclusion


@dataclass(frozen=True)
class PoissonSampling(Sampling):
    """Every unit, or every row of it, takes part independently with probability ``rate``.

    A stream is one release: who is drawn takes part in all of it, and nobody else does.

    Attributes:
        rate: probability in (0, 1].
        rows: how many rows one unit holds at most, each drawn on its own; the declared sensitivity
            is then that of one row. One where not given.
        contribution: the largest norm of what one unit adds, or one row of it: the change where it
            is left out of a sample. Under replace-one nothing is amplified without it.
    """

    kind: ClassVar[str] = "poisson"
    rate: Rate
    rows: Count | None = None
    contribution: Positive | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rows == 1:
            self._set("rows", None)

    @property
    def inclusion(self) -> float:
        """The rate."""
        return self.rate

    @property
    def touching(self) -> float:
        """1 − (1 − q)^rows."""
        if self.rate == 1 or not self.rows:
            return self.rate
        return -math.expm1(self.rows * math.log1p(-self.rate))


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
        """Size over population."""
        return self.size / self.population


@dataclass(frozen=True)
class TruncatedPoissonSampling(Sampling):
    """As Poisson sampling, but of more than ``size`` drawn units a uniform subset of that size.

    Attributes:
        rate: probability in (0, 1] to be drawn.
        size: how many take part at most.
        population: how many units there are, in the larger one of the neighbours.
        contribution: the largest norm of what one unit adds; under replace-one nothing is amplified
            without it.
    """

    kind: ClassVar[str] = "truncated-poisson"
    rate: Rate
    size: Count
    population: Count
    contribution: Positive | None = None

    @property
    def inclusion(self) -> float:
        """At most the rate."""
        return self.rate


@dataclass(frozen=True)
class WithReplacementSampling(Sampling):
    """So many times one of all units, each time any of them; a unit drawn twice counts twice.

    The declared sensitivity is that of one place in the sample.

    Attributes:
        size: how many draws, at least 1.
        population: how many units there are, in the larger one of the neighbours.
    """

    kind: ClassVar[str] = "with-replacement"
    size: Count
    population: Count

    @property
    def inclusion(self) -> float:
        """1 − (1 − 1/n)^size."""
        if self.population == 1:
            return 1.0
        return -math.expm1(self.size * math.log1p(-1 / self.population))


_MOST_SHARES = 100
"""Each takes a fifth of a second to account."""


@dataclass(frozen=True)
class MixtureSampling(Sampling):
    """Every unit adds a share of its part that is drawn on its own, or nothing.

    Of Gaussian noise the mixtures of Choquette-Choo, Ganesh, Steinke and Thakurta (2024, *Privacy
    amplification for matrix mechanisms*). Nothing is known of the draw but its law, which is
    public and the same whatever was released before.

    Attributes:
        shares: of the declared sensitivity, each in (0, 1].
        rates: the probability of each share, together at most 1; the rest is that of nothing.
    """

    kind: ClassVar[str] = "mixture"
    shares: tuple[Rate, ...]
    rates: tuple[Rate, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not len(self.shares) == len(self.rates) > 0:
            raise InputError(
                f"rates has {len(self.rates)} entries and shares {len(self.shares)}; give one rate "
                "for every share."
            )
        if len(self.shares) > _MOST_SHARES:
            raise InputError(
                f"shares has {len(self.shares)} entries; at most {_MOST_SHARES} are allowed, so "
                "round some of them up to others."
            )
        if sum(map(Fraction, self.rates)) > 1 + Fraction(1, 10**12):
            raise InputError(f"rates add up to {math.fsum(self.rates):g}; it must be at most 1.")

    @property
    def inclusion(self) -> float:
        """The sum of the rates."""
        return min(math.fsum(self.rates), 1.0)


@dataclass(frozen=True)
class CyclicPoissonSampling(Sampling):
    """Groups of units take turns, and each unit of the one in turn takes part with ``rate``.

    The steps are those of a stream (a continual mechanism); its participations are a unit's turns.
    Which group a unit is in stays the same, and does not depend on any data. Of more drawn units
    than ``size`` a uniform subset of that size takes part, where it is given.

    Attributes:
        rate: probability in (0, 1] of a unit of the group that is in turn.
        groups: how many there are: a unit may take part at every so many-th step.
        size: how many take part in a step at most.
        population: how many units each group has, in the larger one of the neighbours; given with
            the size.
    """

    kind: ClassVar[str] = "cyclic-poisson"
    rate: Rate
    groups: Count
    size: Count | None = None
    population: Count | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.size is None) != (self.population is None):
            raise InputError("size and population are those of a group; give both or none.")

    @property
    def inclusion(self) -> float:
        """The rate, at the steps of the unit's group."""
        return self.rate


@dataclass(frozen=True)
class RandomAllocation(Sampling):
    """Every unit takes part in ``times`` of every ``steps`` releases, drawn on its own.

    Attributes:
        steps: how many releases an epoch has; the count is to be a multiple of it.
        times: in how many of them a unit takes part, any set of so many being as likely as another.
            One where not given.
    """

    kind: ClassVar[str] = "random-allocation"
    steps: Count
    times: Count | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.times or 1) > self.steps:
            raise InputError(f"times is {self.times}; it must be at most the steps, {self.steps}.")
        if self.times == 1:
            self._set("times", None)

    @property
    def inclusion(self) -> float:
        """Times over steps."""
        return (self.times or 1) / self.steps
