"""One direction of a relation: intervals for ε and δ, with composed laws kept for reuse."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np

from dpaudit.accounting.accountant import Interval
from dpaudit.accounting.amplification.base import SMALLEST_DELTA
from dpaudit.accounting.pld.bounds import ComposedLaw
from dpaudit.accounting.pld.cumulants import Cumulants
from dpaudit.accounting.pld.engine import (
    LARGEST_LOSS,
    MOST_INFINITE,
    TRUNCATION,
    Grid,
    compose_on,
    plan_grid,
    points_on,
)
from dpaudit.accounting.pld.grid import UNIT
from dpaudit.accounting.pld.terms import DirectedTerm
from dpaudit.mechanisms.pairs import Floats

_TOLERANCE = 5e-4
_COARSE = 100.0
_MANY = 256
_REFINABLE = 2**17
_REFINEMENTS = 3
_GIVEN_UP = (1e-2, 0.2)
"""Shares of δ, in the middle of a decade, that rare losses may take where they are in the way."""
_PLAIN = 500.0
"""Up to here e^ε meets no tail that floats hold badly."""
_NEAR = 1e-12
"""How near the two ends of a single use come to each other."""
_GRID_DELTA = 1e-6
"""Where a curve is centred that has no δ of its own."""


class Direction:
    """The composition of one directed pair after another.

    One law is computed for each decade of δ that is asked for, so that answers within a decade come
    from one curve and are exactly monotone.
    """

    def __init__(self, terms: Sequence[DirectedTerm]) -> None:
        self._terms = [term for term in terms if term.pair.max_loss > 0]
        self._laws: dict[tuple[int, bool], ComposedLaw | None] = {}
        self._grids: dict[tuple[int, bool], Grid | None] = {}
        self._infinite = _any((term.pair.infinite, term.count) for term in self._terms)
        sure = _any((term.pair.truly_infinite, term.count) for term in self._terms)
        self._truly_infinite = sure * (1 - 1e-12)
        self._largest = math.fsum(term.count * term.pair.max_loss for term in self._terms)

    @property
    def largest(self) -> float:
        """The largest loss, rounded up."""
        return self._largest * (1 + 1e-14)

    def work(self, delta: float) -> int:
        """Grid points of all distinct terms, for a law at δ."""
        rest = delta - self._infinite if delta > self._infinite else _GRID_DELTA
        if not self._terms or not _within_reach(self._terms):
            return 0
        grid = self._grid(math.floor(math.log10(max(rest, SMALLEST_DELTA))))
        return 0 if grid is None else points_on(grid, self._terms)

    def epsilon(self, delta: float, *, coarse: bool = False) -> Interval:
        """The least ε at δ, more quickly and less tightly if ``coarse``."""
        settled = self._known_without_law(delta)
        if settled is not None:
            return settled
        law = self._law_for(delta, coarse=coarse)
        lower, upper = 0.0, self._upper(law, delta)
        if law is not None:
            lower = min(max(law.epsilon_lower(delta, upper), 0.0), upper)
        alone = [term.count for term in self._terms] == [1]
        if alone and upper < _PLAIN and delta > math.exp(-_PLAIN / 4):
            upper = self._sharpened(lower, upper, delta)
        return Interval(lower, upper)

    def _sharpened(self, lower: float, upper: float, delta: float) -> float:
        """The upper end of a single use by its own curve."""
        for _ in range(64):
            if upper - lower <= _NEAR * upper:
                break
            middle = (lower + upper) / 2
            if self._once(middle) > delta:
                lower = middle
            else:
                upper = middle
        return upper

    def _once(self, epsilon: float) -> float:
        """δ of a single use by its own curve, plus what the difference of its tails is off by.

        Where δ is below the last place of the loss, a threshold may be off by more than that.
        """
        pair = self._terms[0].pair
        epsilon *= 1 - 16 * UNIT
        p = float(pair.above(epsilon)[0])
        rounding = 2.0**-48 * p * (1 - math.log(max(p, 1e-300)))
        return float(pair.delta(epsilon)) * (1 + 1e-12) + rounding

    def epsilons_near(self, delta: float, deltas: Floats, *, coarse: bool) -> Floats:
        """Upper ends of ε at any δ, from the one law for ``delta``."""
        law = self._law_for(delta if delta > self._infinite else _GRID_DELTA, coarse=coarse)
        found = []
        for one in deltas:
            settled = self._known_without_law(float(one))
            found.append(self._upper(law, float(one)) if settled is None else settled.upper)
        return np.array(found, dtype=np.float64)

    def delta_near(self, delta: float, epsilon: float, *, coarse: bool) -> float:
        """The upper end of δ at ``epsilon``, from the one law for ``delta``."""
        if not self._terms:
            return 0.0
        law = self._law_for(delta if delta > self._infinite else _GRID_DELTA, coarse=coarse)
        return min(self._total_variation, 1.0 if law is None else law.delta_upper(epsilon))

    def _known_without_law(self, delta: float) -> Interval | None:
        """The least ε at δ where no law is needed to tell."""
        if delta < self._truly_infinite:
            return Interval(math.inf, math.inf)
        if self._total_variation <= delta:
            return Interval(0.0, 0.0)
        if delta == 0 and self._infinite == 0:
            return Interval(self._largest * (1 - 1e-14), self._largest * (1 + 1e-14))
        return None

    def _upper(self, law: ComposedLaw | None, delta: float) -> float:
        """The upper end of ε at δ from a law, and from the largest loss."""
        largest = self.largest
        if law is None or delta - self._infinite * (1 + 1e-12) < SMALLEST_DELTA:
            return largest
        return min(largest, max(law.epsilon_upper(delta), 0.0))

    def _law_for(self, delta: float, *, coarse: bool) -> ComposedLaw | None:
        rest = delta - self._infinite * (1 + 1e-12)
        if rest < SMALLEST_DELTA or not self._terms:
            return None
        return self._law(math.log10(rest), coarse=coarse)

    def delta(self, epsilon: float) -> Interval:
        """The least δ at ε."""
        least = self._truly_infinite
        if not self._terms or epsilon >= self.largest:
            return Interval(least, min(self._infinite * (1 + 1e-12), 1.0))
        upper = self._total_variation
        if not _within_reach(self._terms):
            return Interval(least, upper)
        # Of the Chernoff bound, about what is left of it in fact.
        _, log_delta = Cumulants.of(self._terms, 1e-18).tilt_for_epsilon(epsilon)
        if not math.isfinite(log_delta):
            return Interval(least, upper)
        smallest = math.log10(SMALLEST_DELTA)
        guess = min(max((log_delta - 2.0) / math.log(10), smallest), -0.05)
        lower = least
        for _ in range(2):
            law = self._law(guess)
            if law is not None:
                upper = min(upper, max(law.delta_upper(epsilon), 5e-324))
                lower = min(max(lower, law.delta_lower(epsilon)), upper)
            # A law for quite another δ may be loose: what it has found points to a better one.
            better = min(max(math.log10(max(upper, 1e-300)), smallest), -0.05)
            if upper - lower <= 1e-2 * upper or math.floor(better) == math.floor(guess):
                break
            guess = better
        return Interval(lower, upper)

    def native(self) -> dict[str, object]:
        """Grids that were used, by decade of δ."""
        return {
            f"1e{decade}": {
                "spacing": law.spacing,
                "size": law.size,
                "tilt": law.theta,
                "truncation": law.budget.displaced,
                "wrap_around": law.budget.above + law.budget.below,
            }
            for (decade, _), law in sorted(self._laws.items())
            if law is not None
        }

    @cached_property
    def _total_variation(self) -> float:
        """A bound on δ(0): the uses agree in all with the product of the probabilities of each."""
        each = [(term.pair.total_variation, term.count) for term in self._terms]
        if sum(count for _, count in each) == 1:
            return each[0][0]
        agree = math.fsum(n * math.log1p(-one) if one < 1 else -math.inf for one, n in each)
        return min(-math.expm1(agree) * (1 + 1e-12), 1.0)

    @property
    def _tolerance(self) -> float:
        """Of very many distinct terms, each of which takes time, the lower end is less tight."""
        return _TOLERANCE if len(self._terms) <= _MANY else 4 * _TOLERANCE

    def _law(self, log10_delta: float, *, coarse: bool = False) -> ComposedLaw | None:
        decade = math.floor(log10_delta)
        if (decade, coarse) not in self._laws:
            grid = self._grid(decade, coarse=coarse)
            with np.errstate(under="ignore"):
                law = None if grid is None else compose_on(grid, self._terms)
                if not (law is None or grid is None or coarse):
                    law = self._refined(law, grid, _middle(decade))
            self._laws[decade, coarse] = law
        return self._laws[decade, coarse]

    def _grid(self, decade: int, *, coarse: bool = False) -> Grid | None:
        """The grid that serves a decade of δ."""
        if (decade, coarse) not in self._grids:
            tolerance = self._tolerance * (_COARSE if coarse else 1)
            with np.errstate(under="ignore"):
                grid = plan_grid(self._terms, _middle(decade), tolerance)
            self._grids[decade, coarse] = grid
        return self._grids[decade, coarse]

    def _refined(self, law: ComposedLaw, grid: Grid, delta: float) -> ComposedLaw:
        """A law whose interval at δ has about the wanted width, if this one's has not.

        A loss that is large and rare makes a grid coarse beside a small ε, and its tilt one under
        which rounding errors are large there. If it is rarer than δ it is given up, that is, taken
        for infinite; then the grid is refined to the ε that was found.
        """
        at, best, truncation = delta + self._infinite, law, TRUNCATION
        for share in _GIVEN_UP:
            if self._narrow(best, at):
                return best
            smaller = plan_grid(self._terms, delta, self._tolerance, truncation=share)
            if smaller is not None and smaller.anchor < grid.anchor / 2:
                law = compose_on(smaller, self._terms)
                if law.epsilon_upper(at) < best.epsilon_upper(at):
                    grid, best, truncation = smaller, law, share
        for _ in range(_REFINEMENTS):
            if self._narrow(best, at) or grid.size > _REFINABLE:
                break
            upper = best.epsilon_upper(at)
            share = min(max(upper, 1e-4) / grid.anchor, 1.0) if 0 < grid.anchor < math.inf else 1.0
            tolerance = self._tolerance / 16 * share
            finer = plan_grid(self._terms, delta, tolerance, truncation=truncation)
            if finer is None or finer.spacing >= grid.spacing:
                break
            grid, law = finer, compose_on(finer, self._terms)
            best = min(best, law, key=lambda one: one.epsilon_upper(at))
        return best

    def _narrow(self, law: ComposedLaw, delta: float) -> bool:
        """Tell whether a law's interval at δ has about the wanted width."""
        upper = law.epsilon_upper(delta)
        width = upper - law.epsilon_lower(delta, upper)
        return width <= 5 * self._tolerance * max(upper, 1e-3)


def _middle(decade: int) -> float:
    """The δ in the middle of a decade."""
    return float(min(10.0 ** (decade + 0.5), 0.9))


def _any(each: Iterable[tuple[float, int]]) -> float:
    """The probability of at least one of independent events, given with their numbers."""
    return -math.expm1(math.fsum(n * math.log1p(-min(one, 1 - 1e-16)) for one, n in each))


def _within_reach(terms: Sequence[DirectedTerm]) -> bool:
    """Tell whether there are losses small enough for a grid at all."""
    if any(term.pair.infinite > MOST_INFINITE for term in terms):
        return False
    return all(float(np.abs(term.pair.nodes(1e-18, 2)).max()) < LARGEST_LOSS for term in terms)
