"""A ledger in normal form: each distinct mechanism once, with its count, in a fixed order.

Every accountant and filter begins with these terms. Uses are merged where mechanism, sensitivity,
sampling and relation agree, never where they are only alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from dpaudit.accounting.amplification import (
    Amplification,
    DirectedPair,
    PlainPair,
    amplification,
    cover,
)
from dpaudit.accounting.amplification.poisson import SharesAmplification, is_location
from dpaudit.base.errors import UnsupportedError
from dpaudit.mechanisms import DominatingPair, Mechanism
from dpaudit.mechanisms.rounding import round_up
from dpaudit.plan import AddRemove, FixedSizeSampling, Invocation, Relation, Sampling

Use = tuple[Mechanism, float, Sampling | None, Relation]


@dataclass(frozen=True)
class Term:
    """``count`` uses of one pair.

    Attributes:
        invocation: the first of the invocations that were merged, as a theorem covers it; its
            ``count``, ``at`` and ``group`` are not to be used.
        pair: its dominating pair, without infinite losses that are paid for by ``slack``.
        amplification: how a unit is sampled, or None.
        count: number of uses.
        slack: probability, for all uses together, of a loss that the pair leaves out.
        is_attained: whether what is declared may cost as much as its pair at each ε, so that a
            lower end of the pair's is one of its own; several uses need a pair that is attained.
    """

    invocation: Invocation
    pair: DominatingPair
    amplification: Amplification | None
    count: int
    slack: Fraction = Fraction(0)
    is_attained: bool = True

    @property
    def sampled_epsilon(self) -> Fraction | float:
        """The pure ε of one use after sampling, exact where it is rational, else rounded up."""
        epsilon = self.pair.pure_epsilon
        return epsilon if self.amplification is None else self.amplification.epsilon(epsilon)


def terms(invocations: Iterable[Invocation]) -> tuple[Term, ...]:
    """Merge equal invocations; the result does not depend on their order.

    Raises:
        UnsupportedError: if one has no dominating pair, or a sampling scheme without a theorem for
            its relation; the message names it.
    """
    return tuple(whole(one, count) for one, count in merged(invocations) if one.sensitivity > 0)


def merged(invocations: Iterable[Invocation]) -> list[tuple[Invocation, int]]:
    """The first of each set of invocations, or parts of them, that cost the same; and how many."""
    counts: dict[Use, int] = {}
    first: dict[Use, Invocation] = {}
    for invocation in invocations:
        for part, times in _parts(invocation):
            use = use_of(part)
            counts[use] = counts.get(use, 0) + invocation.count * times
            first.setdefault(use, part)
    return [(first[use], counts[use]) for use in sorted(counts, key=repr)]


def _parts(whole: Invocation) -> list[tuple[Invocation, int]]:
    if whole.sampling is not None or not whole.sensitivity or not whole.mechanism.composed_of():
        return [(whole, 1)]
    whole.mechanism.pair(whole.sensitivity)  # which refuses what is no sensitivity of the whole
    return [
        (replace(whole, mechanism=own, sensitivity=moved, contribution=None), times)
        for own, moved, times in whole.mechanism.composed_of()
    ]


def use_of(invocation: Invocation) -> Use:
    """All of an invocation that decides the privacy of one use."""
    return invocation.mechanism, invocation.sensitivity, invocation.sampling, invocation.relation


def whole(declared: Invocation, count: int) -> Term:
    """So many uses of one invocation, by its own pair, as :func:`terms`."""
    invocation = cover(declared)
    drawn = amplification(invocation.sampling, invocation)
    try:
        pair, failure = invocation.mechanism.pair_and_failure(invocation.sensitivity)
    except UnsupportedError as error:
        raise UnsupportedError(f"{invocation.describe()}: {error}") from None
    count = count * invocation.count // declared.count
    if drawn is not None:
        count = drawn.uses(count)
    share = Fraction(1 if drawn is None else drawn.rate)
    slack = Fraction(failure) * share * count
    return Term(invocation, pair, drawn, count, slack, costs_as_its_pair(declared))


def costs_as_its_pair(declared: Invocation) -> bool:
    """Tell whether one use may cost as much as its pair, and is not merely dominated by it."""
    mechanism, sampling = declared.mechanism, declared.sampling
    if not mechanism.is_tight or not (sampling is None or mechanism.tight_in_samples):
        return False
    instead = cover(declared)
    drawn = amplification(instead.sampling, instead)
    taken = isinstance(sampling, FixedSizeSampling) and sampling.size < sampling.population
    taken = taken and declared.relation == AddRemove() and is_location(declared)
    if taken or isinstance(drawn, SharesAmplification):
        return True  # those who give their places to the unit may be as far from it as can be
    return instead == declared and (drawn is None or drawn.is_attained)


def directed(invocation: Invocation) -> tuple[DirectedPair, DirectedPair]:
    """The (remove, add) pairs that dominate one use of an invocation, as :func:`directed_uses`."""
    return directed_uses(invocation, 1)[:2]


def directed_uses(invocation: Invocation, count: int) -> tuple[DirectedPair, DirectedPair, int]:
    """The (remove, add) pairs of so many uses of an invocation, and how many of them they are.

    Unsampled mechanisms have a symmetric pair, given twice.

    Raises:
        UnsupportedError: if no theorem gives a pair; the sentence names the invocation and says
            what would.
    """
    declared, invocation = invocation.count, cover(invocation)
    count = count * invocation.count // declared
    drawn = amplification(invocation.sampling, invocation)
    try:
        pair = invocation.mechanism.pair(invocation.sensitivity)
    except UnsupportedError as error:
        raise UnsupportedError(f"{invocation.describe()}: {error}") from None
    if drawn is None:
        return PlainPair(pair), PlainPair(pair), count
    return *drawn.directed(pair), drawn.uses(count)


def attained(parts: Sequence[Term]) -> bool:
    """Tell whether the invocations may cost as much as the pairs of all parts."""
    return all(part.is_attained for part in parts)


def slack_of(parts: Sequence[Term]) -> Fraction:
    """Probability of the losses that the pairs of all parts leave out."""
    return sum((part.slack for part in parts), Fraction(0))


def require_law(pair: DominatingPair) -> None:
    """Refuse to sample a pair of which only a bound is known.

    Raises:
        UnsupportedError: if its law is unknown.
    """
    if not pair.has_law:
        raise UnsupportedError("sampling needs the whole law of its loss, not only a bound on ρ.")


def unbounded(parts: Sequence[Term]) -> list[str]:
    """Descriptions of the invocations that have no pure ε."""
    return [part.invocation.describe() for part in parts if part.pair.pure_epsilon == math.inf]


def pure_sum(parts: Sequence[Term]) -> float:
    """The sum of pure ε, rounded up; infinity where there is none."""
    return math.inf if unbounded(parts) else round_up(pure_total(parts))


def pure_total(parts: Sequence[Term]) -> Fraction:
    """The sum of pure ε of parts that have one."""
    costs = (Fraction(part.sampled_epsilon) * part.count for part in parts)
    return sum(costs, Fraction(0))
