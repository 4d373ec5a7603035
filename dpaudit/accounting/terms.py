"""A ledger in normal form: each distinct mechanism once, with its count, in a fixed order."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from dpaudit.errors import UnsupportedError
from dpaudit.mechanisms import (
    ApproximateBlackBox,
    DominatingPair,
    FinitePair,
    Mechanism,
    approximate_pair,
)
from dpaudit.plan import (
    AddRemove,
    FixedSizeSampling,
    Invocation,
    PoissonSampling,
    Relation,
    ReplaceOne,
    Sampling,
    ZeroOut,
)

__all__ = ["Amplification", "Scheme", "Term", "amplification", "round_up", "terms", "up"]


Use = tuple[Mechanism, float, Sampling | None, Relation]


class Scheme(Enum):
    """A sampling scheme together with the relation for which its amplification is proved."""

    POISSON = "Poisson sampling, a unit present or absent"
    FIXED_SIZE = "a subset of fixed size, a unit replaced"


@dataclass(frozen=True)
class Amplification:
    """A scheme and the probability, rounded up, that a unit takes part."""

    scheme: Scheme
    rate: float


@dataclass(frozen=True)
class Term:
    """``count`` uses of one pair.

    Attributes:
        invocation: the first of the invocations that were merged, for messages; its ``count``,
            ``at`` and ``group`` are not to be used.
        pair: its dominating pair, without infinite losses that are paid for by ``slack``.
        amplification: how a unit is sampled, or None.
        count: number of uses.
        slack: probability, for all uses together, of a loss that the pair leaves out.
    """

    invocation: Invocation
    pair: DominatingPair
    amplification: Amplification | None
    count: int
    slack: Fraction = Fraction(0)

    @property
    def sampled_epsilon(self) -> Fraction | float:
        """The pure ε of one use after sampling, exact where it is rational, else rounded up.

        Sampling with probability q gives ln(1 + q(e^ε − 1)), both under Poisson sampling for
        add-remove and zero-out and for subsets of fixed size under replace-one (Balle, Barthe and
        Gaboardi 2018, Theorems 8 and 9).
        """
        epsilon = self.pair.pure_epsilon
        if self.amplification is None or epsilon == 0 or epsilon == math.inf:
            return epsilon
        return min(epsilon, _amplified(self.amplification.rate, as_float(epsilon)))


def terms(invocations: Iterable[Invocation]) -> tuple[Term, ...]:
    """Merge equal invocations; the result does not depend on their order.

    Raises:
        UnsupportedError: if one has no dominating pair, or a sampling scheme without a theorem for
            its relation; the message names it.
    """
    counts: dict[Use, int] = {}
    first: dict[Use, Invocation] = {}
    for invocation in invocations:
        if invocation.sensitivity == 0:
            continue
        use = use_of(invocation)
        counts[use] = counts.get(use, 0) + invocation.count
        first.setdefault(use, invocation)
    return tuple(_term(first[use], counts[use]) for use in sorted(counts, key=repr))


def use_of(invocation: Invocation) -> Use:
    """All of an invocation that decides the privacy of one use."""
    return invocation.mechanism, invocation.sensitivity, invocation.sampling, invocation.relation


def _term(invocation: Invocation, count: int) -> Term:
    drawn = amplification(invocation)
    mechanism = invocation.mechanism
    if isinstance(mechanism, ApproximateBlackBox):
        share = Fraction(1 if drawn is None else drawn.rate)
        slack = Fraction(mechanism.delta) * share * count
        return Term(invocation, approximate_pair(mechanism.epsilon), drawn, count, slack)
    try:
        pair = mechanism.pair(invocation.sensitivity)
    except UnsupportedError as error:
        raise UnsupportedError(f"{invocation.describe()}: {error}") from None
    return Term(invocation, pair, drawn, count)


def amplification(invocation: Invocation) -> Amplification | None:
    """How sampling amplifies one use; None where every unit takes part.

    Raises:
        UnsupportedError: if no theorem covers the scheme under the relation.
    """
    sampling, relation = invocation.sampling, invocation.relation
    if sampling is None:
        return None
    if isinstance(sampling, PoissonSampling):
        if sampling.rate == 1:
            return None
        if isinstance(relation, AddRemove | ZeroOut):
            return Amplification(Scheme.POISSON, sampling.rate)
    if isinstance(sampling, FixedSizeSampling):
        if sampling.size == sampling.population:
            return None
        if isinstance(relation, ReplaceOne):
            rate = round_up(Fraction(sampling.size, sampling.population))
            return Amplification(Scheme.FIXED_SIZE, rate)
    raise UnsupportedError(
        f"{invocation.describe()} has {sampling.kind} sampling under {relation}; it is accounted "
        "for as poisson under add-remove or zero-out, and as fixed-size under replace-one."
    )


def _amplified(rate: float, epsilon: float) -> float:
    """ln(1 + q(e^ε − 1)), rounded up; no ε overflows it."""
    if epsilon > 700:
        return up(epsilon + math.log(rate) + math.exp(-epsilon) / rate, 4)
    return up(math.log1p(rate * math.expm1(epsilon)), 4)


def unbounded(parts: Sequence[Term]) -> list[str]:
    """What has no pure ε."""
    return [part.invocation.describe() for part in parts if part.pair.pure_epsilon == math.inf]


def finite_parts(pair: DominatingPair) -> FinitePair | None:
    """The pair as finitely many losses without infinite ones, where it is so."""
    return pair if isinstance(pair, FinitePair) and pair.p_infinite == 0 else None


def up(value: float, steps: int = 1) -> float:
    """``steps`` floats above a positive value; zero and infinity stay."""
    for _ in range(steps):
        value = math.nextafter(value, math.inf) if 0 < value < math.inf else value
    return value


def as_float(value: Fraction | float) -> float:
    """The value rounded up, infinity where it is too large."""
    return round_up(value) if isinstance(value, Fraction) else value


def round_up(value: Fraction) -> float:
    """The least float that is not below an exact number.

    >>> round_up(10 * Fraction(1, 20))
    0.5
    """
    try:
        rounded = float(value)
    except OverflowError:
        return math.inf
    return math.nextafter(rounded, math.inf) if Fraction(rounded) < value else rounded
