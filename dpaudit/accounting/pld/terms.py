"""Directed pairs with their counts: what privacy loss distributions compose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpaudit.accounting.amplification import DirectedPair
from dpaudit.accounting.terms import costs_as_its_pair, directed_uses, merged
from dpaudit.plan import Invocation


@dataclass(frozen=True)
class DirectedTerm:
    """One directed pair and how often it is used.

    Attributes:
        pair: the pair of one use.
        count: number of uses.
        as_declared: whether what is declared may cost as much as the pair.
    """

    pair: DirectedPair
    count: int
    as_declared: bool = True


def directed_terms(
    invocations: Sequence[Invocation],
) -> tuple[list[DirectedTerm], list[DirectedTerm]]:
    """Remove and add terms of the invocations; equal mechanisms, equally used, become one.

    Raises:
        UnsupportedError: if an invocation has no dominating pair; it names which.
    """
    remove, add = [], []
    for one, count in merged(invocations):
        leave, join, uses = directed_uses(one, count)
        known = costs_as_its_pair(one)
        remove.append(DirectedTerm(leave, uses, known))
        add.append(DirectedTerm(join, uses, known))
    return remove, add


def is_attained(terms: Sequence[DirectedTerm]) -> bool:
    """Tell whether neighbours may cost what the composed law does, so that it has a lower end."""
    costly = [term for term in terms if term.pair.max_loss > 0]
    alone = sum(term.count for term in costly) <= 1
    return all(term.as_declared and (alone or term.pair.is_attained) for term in costly)
