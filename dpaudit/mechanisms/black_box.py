"""Releases of which only the privacy is known, as it is claimed or as another library proves it."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.base.fields import Name, NonNegative, Probability
from dpaudit.base.validate import shown
from dpaudit.mechanisms.base import Mechanism, Norm, changes, checked_sensitivity
from dpaudit.mechanisms.pairs import (
    ConcentratedPair,
    DominatingPair,
    FinitePair,
    approximate_pair,
    costless_pair,
)
from dpaudit.mechanisms.pairs.finite import profile_masses
from dpaudit.mechanisms.rounding import round_up

Sampler = Callable[[NDArray[Any], np.random.Generator], NDArray[Any]]
Check = Callable[[NDArray[Any]], object]
UNKNOWN_EPSILON = 1e9
"""Stated where nobody says what a release costs, which no claim survives."""


def _curve(**given: Any) -> tuple[tuple[float, float], ...]:
    """Pairs of an ε of at least 0 and a δ below 1."""
    ((name, value),) = given.items()
    pairs: tuple[tuple[float, float], ...] = ()
    with suppress(TypeError, ValueError):
        pairs = tuple((float(epsilon), float(delta)) for epsilon, delta in value)
    if not pairs or not all(0 <= e < math.inf and 0 <= d < 1 for e, d in pairs):
        wanted = "at least one pair of an ε of at least 0 and a δ in [0, 1)"
        raise InputError(f"{name} is {shown(value)}; it must be {wanted}.")
    return pairs


@dataclass(frozen=True)
class Opaque(Mechanism):
    """A randomised release with a stated (ε, δ) and no accountant proof.

    Attributes:
        label: what it is, for people.
        epsilon: the ε that its author states for one use.
        delta: the δ that its author states for one use.
        sampler: draws one release of a value; not serialised, so that a plan stays data. Without
            it the mechanism can be declared but not run.
        check: raises InputError for a value that must not be released, so that a ledger refuses it
            before it charges anything; not serialised either.
    """

    kind: ClassVar[str] = "opaque"
    norm: ClassVar[Norm] = Norm.CHANGE
    is_black_box: ClassVar[bool] = True
    label: Name
    epsilon: NonNegative
    delta: Probability = 0.0
    sampler: Sampler | None = field(default=None, compare=False, repr=False)
    check: Check | None = field(default=None, compare=False, repr=False)

    @property
    def is_unknown(self) -> bool:
        """Whether nobody states what it costs, nor how far neighbours move a value."""
        return self.epsilon >= UNKNOWN_EPSILON

    def pair(self, sensitivity: float) -> DominatingPair:
        """None but for equal data, which cost nothing whatever the mechanism.

        Raises:
            UnsupportedError: always for neighbours that differ.
        """
        if checked_sensitivity(sensitivity) == 0:
            return costless_pair()
        raise UnsupportedError(
            f"opaque mechanism {shown(self.label)} states a claim without a proof; no accountant "
            "can certify it."
        )

    def prepare(self, value: ArrayLike) -> NDArray[Any]:
        """Finite numbers that pass the check.

        Raises:
            InputError: if they do not.
        """
        array = super().prepare(value)
        if self.check is not None:
            self.check(array)
        return array


@dataclass(frozen=True)
class StatedNoise(Opaque):
    """Noise of another library, of which no theorem here speaks: what it states is taken down.

    Values are compared with the sensitivity that the library noised them for; the rest is as for
    any opaque mechanism.
    """

    kind: ClassVar[str] = "stated-noise"
    norm: ClassVar[Norm] = Norm.L1


@dataclass(frozen=True)
class BlackBox(Mechanism):
    """A release whose input changes or does not, and which cannot be sampled."""

    norm: ClassVar[Norm] = Norm.CHANGE
    is_black_box: ClassVar[bool] = True

    def pair(self, sensitivity: float) -> DominatingPair:
        """The pair of a changed input; an unchanged one costs nothing.

        Raises:
            InputError: if the sensitivity is neither 0 nor 1.
        """
        return self._changed() if changes(sensitivity, self.kind) else costless_pair()

    @abstractmethod
    def _changed(self) -> DominatingPair:
        """The pair of a changed input."""


@dataclass(frozen=True)
class PureBlackBox(BlackBox):
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

    def strength(self, sensitivity: float) -> tuple[Hashable, Fraction | float]:
        """ε: the pair is a post-processing of any with a larger one."""
        return (), self.pair(sensitivity).pure_epsilon


@dataclass(frozen=True)
class ApproximateBlackBox(BlackBox):
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

    def pair_and_failure(self, sensitivity: float) -> tuple[DominatingPair, float]:
        """The pair of ε alone, and δ (Kairouz, Oh and Viswanath 2015, Theorem 3.3)."""
        if not changes(sensitivity, self.kind):
            return costless_pair(), 0.0
        return approximate_pair(self.epsilon), self.delta


@dataclass(frozen=True)
class ProfileBlackBox(BlackBox):
    """Any release with a proved δ at each of several ε, as another library's accountant gives it.

    Attributes:
        curve: proved (ε, δ) for neighbouring inputs, in any order; more of them are never worse.
    """

    kind: ClassVar[str] = "profile-black-box"
    curve: Annotated[tuple[tuple[float, float], ...], _curve]

    @property
    def is_tight(self) -> bool:
        """Not at every ε: a convex curve through the points may lie below."""
        return False

    def pair_and_failure(self, sensitivity: float) -> tuple[DominatingPair, float]:
        """The pair of the last ε alone, and its δ, so that at just that δ it is the ε."""
        delta, epsilon = min((delta, epsilon) for epsilon, delta in self.curve)
        if not delta:
            return self.pair(sensitivity), 0.0
        return ApproximateBlackBox(epsilon, delta).pair_and_failure(sensitivity)

    def _changed(self) -> DominatingPair:
        epsilons, deltas = np.array(self.curve).T
        pure = min((epsilon for epsilon, delta in self.curve if not delta), default=math.inf)
        at_zero = min((delta for epsilon, delta in self.curve if not epsilon), default=1.0)
        bound = None if pure == math.inf else Fraction(pure)
        return FinitePair(*profile_masses(epsilons, deltas, at_zero, pure), bound)


@dataclass(frozen=True)
class ConcentratedBlackBox(BlackBox):
    """Any (ξ, ρ)-zCDP release: its Rényi divergences of order α are at most ξ + αρ.

    One that is so but for a probability δ (approximate zCDP, Definition 8.1 of Bun and Steinke
    2016) is this and an approximate black box of (0, δ) in one plan.

    Attributes:
        rho: its proved ρ for neighbouring inputs.
        xi: its ξ (Bun and Steinke 2016, Definition 1.1); none where not given.
    """

    kind: ClassVar[str] = "concentrated-black-box"
    rho: NonNegative
    xi: NonNegative | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.xi:
            self._set("xi", None)

    def _changed(self) -> DominatingPair:
        return ConcentratedPair(self.rho, self.xi or 0.0)

    def for_group(self, size: int) -> Self | None:
        """k²ρ (Bun and Steinke 2016, Proposition 1.9), rounded up; with ξ nothing is known here."""
        return None if self.xi else type(self)(round_up(Fraction(self.rho) * size * size))


def steps_apart(
    epsilon: Fraction | float, delta: Fraction | float, size: int
) -> PureBlackBox | ApproximateBlackBox:
    """Bound any (ε, δ)-private release for data that many neighbouring steps apart.

    kε from a pure ε; (kε, δ(e^kε − 1)/(e^ε − 1)) from an (ε, δ) (Vadhan 2017, Lemma 2.2).

    Raises:
        UnsupportedError: if ε is infinite, or δ grows to 1.
    """
    if epsilon == math.inf:
        raise UnsupportedError(
            "no theorem for groups of units covers it, because it has no pure ε."
        )
    grown = round_up(Fraction(epsilon) * size)
    if not delta:
        return PureBlackBox(grown)
    growth = sum(math.exp(min(step * float(epsilon), 700)) for step in range(size)) * (1 + 1e-12)
    total = float(delta) * growth * (1 + 1e-12)
    if not total < 1:
        raise UnsupportedError(f"its δ grows to 1 for {size} units.")
    return ApproximateBlackBox(grown, total)
