"""The least valid ε of all accountants.

``guarantee`` asks it where no accountant is named. It asks those of this package alone, and a
minimum of valid bounds is valid only as each holds at every point.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.accounting.accountant import Accountant, AccountantName, Composition, Interval
from dpaudit.accounting.terms import Term, terms
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.mechanisms.pairs import Floats
from dpaudit.mechanisms.rounding import as_float
from dpaudit.plan import Invocation

_ORDER = (
    AccountantName.PURE,
    AccountantName.GAUSSIAN,
    AccountantName.ZCDP,
    AccountantName.RDP,
    AccountantName.MOMENTS,
    AccountantName.BOUNDED_RANGE,
)
"""Closed forms first: at a tie the first one is named. The PLD follows."""

_GAIN = 2e-3
_SMALL_DELTA = 1e-9
_CURVE_USES = 10**6
"""Each point of a curve needs a grid of its own, which takes long for more uses than that."""


@dataclass(frozen=True, eq=False)
class BestComposition(Composition):
    """The compositions of all accountants that apply; each of them is valid at every point.

    Attributes:
        compositions: by accountant, closed forms first.
        refusals: why the others do not apply.
        uses: how many uses are composed.
    """

    compositions: Mapping[str, Composition]
    refusals: Mapping[str, str]
    uses: int = 1

    def epsilon(self, delta: float) -> Interval:
        """The least upper end, and the greatest lower end."""
        return _least(list(self.compared(delta).values()))

    def delta(self, epsilon: float) -> Interval:
        """The least upper end, and the greatest lower end."""
        return _least([each.delta(epsilon) for each in self.compositions.values()])

    def epsilons(self, deltas: ArrayLike) -> Floats:
        """The least of all upper ends at each δ; the PLD is asked where it can gain 0.2 %.

        From large δ to small, as the lower end at one δ is a lower end at all smaller ones.
        """
        asked = np.asarray(deltas, dtype=np.float64)
        found: Floats = np.minimum.reduce([each.epsilons(asked) for each in self._closed])
        pld = self.compositions.get(AccountantName.PLD)
        if pld is None or (self.uses > _CURVE_USES and asked.ndim > 0):
            return found
        flat, floor = found.reshape(-1).copy(), 0.0
        for at in np.argsort(-asked, axis=None):
            delta = float(asked.reshape(-1)[at])
            if flat[at] > floor * (1 + _GAIN) and not self._is_settled(delta):
                interval = pld.epsilon(delta)
                flat[at] = min(flat[at], interval.upper)
                floor = max(floor, interval.lower or 0.0)
        epsilons: Floats = flat.reshape(asked.shape)
        return epsilons

    def deltas(self, epsilons: ArrayLike) -> Floats:
        """The least of all upper ends at each ε; the PLD is asked where δ is above 1e-9."""
        asked = np.asarray(epsilons, dtype=np.float64)
        found: Floats = np.minimum.reduce([each.deltas(asked) for each in self._closed])
        pld = self.compositions.get(AccountantName.PLD)
        if pld is None or (self.uses > _CURVE_USES and asked.ndim > 0):
            return found
        flat = found.reshape(-1).copy()
        for at in np.flatnonzero(flat > _SMALL_DELTA):
            flat[at] = min(flat[at], pld.delta(float(asked.reshape(-1)[at])).upper)
        deltas: Floats = flat.reshape(asked.shape)
        return deltas

    def compared(self, delta: float) -> dict[str, Interval]:
        """ε of every accountant that applies; the PLD where the answer is not settled."""
        return {
            name: each.epsilon(delta)
            for name, each in self.compositions.items()
            if name != AccountantName.PLD
            or len(self.compositions) == 1
            or not self._is_settled(delta)
        }

    def winner(self, delta: float) -> str:
        """Whose ε is the least at δ, a closed form where it is as good."""
        compared = self.compared(delta)
        least = min(interval.upper for interval in compared.values())
        return next(name for name, each in compared.items() if each.upper <= least)

    @property
    def native(self) -> Mapping[str, Any]:
        """The native parameters of each composition, by accountant."""
        return {str(name): dict(each.native) for name, each in self.compositions.items()}

    @property
    def _closed(self) -> list[Composition]:
        """All but the PLD, where there is another."""
        others = [each for name, each in self.compositions.items() if name != AccountantName.PLD]
        return others or list(self.compositions.values())

    def _is_settled(self, delta: float) -> bool:
        """At δ = 0 a pure sum is the answer."""
        return delta == 0 and AccountantName.PURE in self.compositions


class BestAccountant(Accountant):
    """Asks every accountant of this package that has a theorem for the ledger.

    Those of other packages are asked by their name alone: whoever takes one at its word says so.
    """

    kind: ClassVar[str] = AccountantName.BEST

    def compose(self, invocations: Sequence[Invocation]) -> BestComposition:
        """Compose by each; the PLD is left out where a closed form is exact.

        Raises:
            UnsupportedError: if no accountant applies; it names the invocation.
        """
        composed: dict[str, Composition] = {}
        refused: dict[str, str] = {}
        for accountant in _participants():
            name = accountant.kind
            if name == AccountantName.PLD and any(each.is_exact for each in composed.values()):
                refused[name] = "a closed form is exact."
                continue
            if name == AccountantName.PLD and any(map(_is_beyond_floats, terms(invocations))):
                refused[name] = "its losses are too large for floats."
                continue
            try:
                composed[name] = accountant.compose(invocations)
            except UnsupportedError as error:
                refused[name] = str(error)
        if not composed:
            raise UnsupportedError(next(iter(refused.values())))
        uses = sum(each.count for each in invocations)
        return BestComposition(composed, refused, uses)


def _participants() -> list[Accountant]:
    """The accountants that take part, closed forms first."""
    return [Accountant.named(name)() for name in (*_ORDER, AccountantName.PLD)]


def _is_beyond_floats(part: Term) -> bool:
    """Tell whether the largest loss is finite, yet above all floats, so that no grid holds it."""
    exact = part.pair.pure_epsilon
    return exact < math.inf and as_float(exact) == math.inf


def _least(intervals: Sequence[Interval]) -> Interval:
    upper = min(each.upper for each in intervals)
    lowers = [each.lower for each in intervals if each.lower is not None]
    lower = max(lowers) if lowers else None
    if lower is not None and lower > upper and not math.isclose(lower, upper, rel_tol=1e-9):
        raise InputError(f"accountants disagree: one proves {upper}, another at least {lower}.")
    return Interval(None if lower is None else min(lower, upper), upper)
