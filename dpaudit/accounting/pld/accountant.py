"""The accountant of privacy loss distributions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.accounting.accountant import Accountant, AccountantName, Composition, Interval
from dpaudit.accounting.pld.direction import Direction
from dpaudit.accounting.pld.incremental import IncrementalPLD
from dpaudit.accounting.pld.terms import DirectedTerm, directed_terms, is_attained
from dpaudit.mechanisms.pairs import Floats
from dpaudit.plan import Invocation

_FEW_ROUNDS = 8
"""So many are composed one by one; more go through one grid."""


class PLDComposition(Composition):
    """Composed dominating pairs, both directions of the relation; the worse one counts.

    Every interval is rigorous: see :mod:`dpaudit.accounting.pld.bounds` for the two ends.

    Attributes:
        has_lower_end: whether what is composed may cost as much as its pairs.
    """

    def __init__(
        self, remove: Sequence[DirectedTerm], add: Sequence[DirectedTerm] | None = None
    ) -> None:
        self._directions = {"remove": Direction(remove)}
        if add is not None:
            self._directions["add"] = Direction(add)
        self.has_lower_end = is_attained(remove)

    def epsilon(self, delta: float) -> Interval:
        """The least ε at δ, the worse of both directions.

        To join costs less than to leave for most sampled mechanisms, and a coarse law shows it.
        """
        return self._largest(
            [one.epsilon(delta) for one, coarse in self._consulted(delta) if not coarse]
        )

    def delta(self, epsilon: float) -> Interval:
        """The least δ at ε, the worse of both directions."""
        return self._largest([one.delta(epsilon) for one in self._directions.values()])

    def epsilons_near(self, delta: float, deltas: ArrayLike) -> Floats:
        """Upper ends of ε at any δ, all from the laws that answer :meth:`epsilon` at ``delta``.

        Valid at each and as tight at ``delta`` itself; far from it looser, but at no further cost.

        Args:
            delta: δ of the laws, in [0, 1).
            deltas: δ in [0, 1), shape (n,).

        Returns:
            ε, shape (n,).
        """
        asked = np.asarray(deltas, dtype=np.float64)
        worst = [one.epsilons_near(delta, asked, coarse=c) for one, c in self._consulted(delta)]
        return np.asarray(np.maximum.reduce(worst), dtype=np.float64)

    def delta_near(self, delta: float, epsilon: float) -> float:
        """The upper end of δ at ``epsilon`` from the laws that answer :meth:`epsilon` at δ."""
        return max(one.delta_near(delta, epsilon, coarse=c) for one, c in self._consulted(delta))

    def work(self, delta: float) -> int:
        """Grid points of all distinct pairs, for a law at δ."""
        return max(one.work(delta) for one in self._directions.values())

    def _largest(self, intervals: Sequence[Interval]) -> Interval:
        lower = max(interval.lower or 0.0 for interval in intervals)
        upper = max(interval.upper for interval in intervals)
        return Interval(lower if self.has_lower_end else None, upper)

    def _consulted(self, delta: float) -> list[tuple[Direction, bool]]:
        """The directions, and whether :meth:`epsilon` asks their coarse law alone."""
        leave = self._directions["remove"]
        join = self._directions.get("add")
        if join is None:
            return [(leave, False)]
        cost = leave.epsilon(delta).upper
        enough = join.largest <= cost or join.epsilon(delta, coarse=True).upper <= cost
        return [(leave, False), (join, enough)]

    @property
    def native(self) -> Mapping[str, Any]:
        """Spacing, size, tilt, truncation and wrap-around of every grid used, by direction."""
        return {"directions": {name: one.native() for name, one in self._directions.items()}}


class PLDAccountant(Accountant):
    """Numerical composition of dominating pairs (Zhu, Dong and Wang 2022, Theorem 10).

    For fixed mechanisms, or such as are chosen adaptively from a set with the same dominating pair
    at each step; parameters that depend on earlier outputs need a filter.
    """

    kind: ClassVar[str] = AccountantName.PLD

    def compose(self, invocations: Sequence[Invocation]) -> PLDComposition:
        """Compose the directed pairs of the invocations, equal ones merged.

        Raises:
            UnsupportedError: if an invocation has no dominating pair.
        """
        return compose_terms(*directed_terms(invocations))

    def epsilon_after_rounds(
        self, invocations: Sequence[Invocation], delta: float, rounds: ArrayLike
    ) -> Floats:
        """ε after each number of rounds, on one grid for all of them where many are asked for."""
        asked = np.asarray(rounds, dtype=np.float64)
        if delta == 0 or asked.size <= _FEW_ROUNDS:
            return super().epsilon_after_rounds(invocations, delta, asked)
        every = IncrementalPLD(invocations, horizon=int(asked.max()), delta=delta)
        curve = np.array([interval.upper for interval in every], dtype=np.float64)
        found: Floats = curve[asked.astype(np.int64) - 1]
        return found


def compose_terms(remove: Sequence[DirectedTerm], add: Sequence[DirectedTerm]) -> PLDComposition:
    """The composition of directed pairs given as such."""
    symmetric = all(a.pair == b.pair for a, b in zip(remove, add, strict=True))
    return PLDComposition(remove) if symmetric else PLDComposition(remove, add)
