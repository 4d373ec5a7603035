"""ε after each of many equal rounds, from one transform."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from dpaudit.accounting.accountant import Interval
from dpaudit.accounting.pld.bounds import ComposedLaw, Tally
from dpaudit.accounting.pld.engine import Grid, plan_grid
from dpaudit.accounting.pld.grid import Composer, discretise, tilt_transform
from dpaudit.accounting.pld.terms import DirectedTerm, directed_terms, is_attained
from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.plan import Invocation

_TOLERANCE = 1.5e-3
_TOGETHER = 512
"""Rounds from which on several share an upper end, those within a part of so many."""


class IncrementalPLD:
    """The privacy of k equal rounds for k = 1, 2, …, each in constant time.

    All rounds share one grid and one transform per mechanism, chosen for the last of them; a round
    multiplies the composed transform by that of a round, and inverts it. Of very many not all are
    inverted: one in between costs at least what the last one did, and at most what the next one
    does. The parameters of the rounds are fixed beforehand: this is a schedule of what a plan
    costs, not an odometer.

    Attributes:
        delta: the δ at which every ε is given.
        horizon: the number of rounds that the grid serves.
    """

    def __init__(self, invocations: Sequence[Invocation], *, horizon: int, delta: float) -> None:
        """Prepare a grid.

        Args:
            invocations: what one round does.
            horizon: how many rounds there may be, at least 1.
            delta: δ in (0, 1).

        Raises:
            UnsupportedError: if an invocation has no dominating pair.
            InputError: if the horizon or δ is out of range.
        """
        self.horizon = validate.integer_at_least(1, horizon=horizon)
        self.delta = validate.open_fraction(delta=delta)
        remove, add = directed_terms(invocations)
        self._round = 0
        self._found = 0, Interval(0.0, 0.0)
        self._least: float | None = 0.0
        self._has_lower_end = is_attained(
            [replace(one, count=one.count * self.horizon) for one in remove]
        )
        self._leave = _Rounds(remove, self.horizon, self.delta, _TOLERANCE)
        self._join: _Rounds | None = None
        if any(a.pair != b.pair for a, b in zip(remove, add, strict=True)):
            # Joining costs less than leaving as a rule; a coarse grid is enough to show that.
            self._join = _Rounds(add, self.horizon, self.delta, 16 * _TOLERANCE)
            self._add = add
            self._coarse = True
            self._joined = (0, 0.0)

    def advance(self) -> Interval:
        """One round more: the interval of ε after it.

        Raises:
            InputError: after the last round of the horizon.
        """
        if self._round == self.horizon:
            raise InputError(f"horizon is {self.horizon}; it must cover every round, so raise it.")
        self._round += 1
        if self._found[0] < self._round:
            self._least = self._found[1].lower
            ahead = min(self._round + self._round // _TOGETHER, self.horizon)
            self._found = ahead, self._after(ahead)
        found = self._found[1]
        if self._round < self._found[0]:
            found = Interval(self._least, found.upper)
        return found if self._has_lower_end else Interval(None, found.upper)

    def _after(self, rounds: int) -> Interval:
        leave = self._leave.after(rounds)
        if self._join is None:
            return leave
        if self._coarse:
            # What some rounds ahead cost is a bound on all rounds until then.
            if self._joined[0] < rounds or self._joined[1] > leave.upper:
                ahead = rounds + (rounds // 20 if self._joined[0] < rounds else 0)
                ahead = min(ahead, self.horizon)
                self._joined = (ahead, self._join.upper_after(ahead))
            if self._joined[1] <= leave.upper:
                return leave
            self._join = _Rounds(self._add, self.horizon, self.delta, _TOLERANCE)
            self._coarse = False
        join = self._join.after(rounds)
        return Interval(max(leave.lower or 0.0, join.lower or 0.0), max(leave.upper, join.upper))

    def __iter__(self) -> Iterator[Interval]:
        """The intervals of the rounds that are left."""
        while self._round < self.horizon:
            yield self.advance()


class _Rounds:
    """One direction: the law after any number of rounds, cheapest one after the other."""

    def __init__(
        self, terms: Sequence[DirectedTerm], horizon: int, delta: float, tolerance: float
    ) -> None:
        self._terms = [term for term in terms if term.pair.max_loss > 0]
        self._delta = delta
        self._done = 0
        self._width = 0.0
        self._grid: Grid | None = None
        kept = math.fsum(t.count * math.log1p(-min(t.pair.infinite, 0.5)) for t in self._terms)
        rest = delta + math.expm1(horizon * kept)
        if not self._terms or rest <= delta * 1e-9:
            return
        whole = [DirectedTerm(term.pair, term.count * horizon) for term in self._terms]
        self._grid = plan_grid(whole, rest, tolerance, from_zero=True)
        if self._grid is None:
            return
        self._frame = self._grid.frame()
        self._composer, self._tally = Composer(self._grid.size), Tally()
        self._parts = []
        for term in self._terms:
            loss = discretise(term.pair, self._grid.spacing, self._grid.tail, self._grid.cut)
            spectrum = tilt_transform(loss, self._grid.spacing, self._grid.tilt, self._grid.size)
            self._parts.append((loss, spectrum, term.count))

    def after(self, rounds: int) -> Interval:
        """The interval of ε."""
        law, upper = self._law_after(rounds)
        if law is None:
            return Interval(0.0, upper)
        found = law.epsilon_lower(self._delta, upper, 0.9 * self._width)
        lower = min(max(found, 0.0), upper)
        self._width = upper - lower
        return Interval(lower, upper)

    def upper_after(self, rounds: int) -> float:
        """The upper end alone."""
        return self._law_after(rounds)[1]

    def _law_after(self, rounds: int) -> tuple[ComposedLaw | None, float]:
        largest = rounds * math.fsum(t.count * t.pair.max_loss for t in self._terms) * (1 + 1e-12)
        if self._grid is None:
            return None, largest
        with np.errstate(under="ignore"):
            for loss, spectrum, count in self._parts:
                self._composer.multiply(spectrum, count * (rounds - self._done))
                self._tally.add(loss, spectrum, count * (rounds - self._done))
            self._done = rounds
            budget = self._tally.budget(self._grid.tilt, *self._grid.ends)
            law = ComposedLaw(self._composer.law(self._grid.first), self._frame, budget)
            return law, min(max(law.epsilon_upper(self._delta), 0.0), largest)
