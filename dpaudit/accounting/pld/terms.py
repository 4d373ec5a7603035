"""Directed pairs with their counts: what privacy loss distributions compose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpaudit.accounting.amplification import DirectedPair
from dpaudit.accounting.terms import directed, merged
from dpaudit.plan import Invocation

__all__ = ["DirectedTerm", "directed_terms", "is_attained"]


@dataclass(frozen=True)
class DirectedTerm:
    """One directed pair and how often it is used.

    Attributes:
        pair: the pair of one use.
        count: number of uses.
    """

    pair: DirectedPair
    count: int


def directed_terms(
    invocations: Sequence[Invocation],
) -> tuple[list[DirectedTerm], list[DirectedTerm]]:
    """Remove and add terms of the invocations; equal mechanisms, equally used, become one.

    Raises:
        UnsupportedError: if an invocation has no dominating pair; it names which.
    """
    found = [(directed(one), count) for one, count in merged(invocations)]
    return (
        [DirectedTerm(pairs[0], count) for pairs, count in found],
        [DirectedTerm(pairs[1], count) for pairs, count in found],
    )


def is_attained(terms: Sequence[DirectedTerm]) -> bool:
    """Whether neighbours cost what the composed law does, so that it has a lower end."""
    costly = [term for term in terms if term.pair.max_loss > 0]
    alone = sum(term.count for term in costly) <= 1
    return alone or all(term.pair.is_attained for term in costly)
