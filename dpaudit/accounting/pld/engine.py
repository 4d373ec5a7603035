"""From directed pairs and counts to a composed law: the choice of tilt, window and spacing.

A loss that is used n times is composed in two stages where n is large: √n uses on a fine grid, the
law of which is then moved to a coarser grid and used √n times. Both steps of the coupling D keep
its three facts, their variance proxies add up, and both grids need only n^(1/4) times the points of
a single use instead of n^(1/2). What wraps around or is rounded in the first stage is a signed
measure of known total; it is carried as ``excess``, and Chernoff bounds speak of the law without.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpaudit.accounting.pld.bounds import ComposedLaw, Frame, Tally
from dpaudit.accounting.pld.cumulants import Cumulants, Window
from dpaudit.accounting.pld.grid import (
    UNIT,
    Composer,
    GridLoss,
    Tilt,
    discretise,
    drift,
    log_mgf,
    split_atoms,
    tilt_transform,
)
from dpaudit.accounting.pld.terms import DirectedTerm

LARGEST_SIZE = 2**21
"""Most grid points of a composed law; beyond it the grid becomes coarser, the interval wider."""

LARGEST_LOSS = 2.0**40
"""Losses beyond it are not accounted for: no ε of that size means anything."""

MOST_INFINITE = 1 - 1e-9
"""A loss that is infinite with more than this probability has no finite part to speak of."""

TRUNCATION = 1e-9
"""The share of δ that truncation may take where nothing is said."""

_LEAST_SPACING = 1e-150
_MOST_CELLS = 2**19
_NEGLIGIBLE = 50.0
"""Minus the logarithm of a tilted mass that is none."""
_COARSEST = 50.0
"""Where masses that are no atoms of the grid differ more from point to point, it tells nothing."""
_STAGED = 256
"""Counts from which on composition takes two stages."""


@dataclass(frozen=True)
class Grid:
    """Where and under which tilt a composition is computed.

    Attributes:
        spacing: distance h of grid points.
        first: grid index of the window's first point.
        size: number N of grid points.
        tilt: exponents of the tilt and of the Chernoff bounds.
        anchor: the loss that matters, about ε.
        tail: P-mass that each single loss may lose at either end.
        cut: losses below it weigh nothing under the tilt.
        fine: spacing of the first of two stages; None where there is only one.
    """

    spacing: float
    first: int
    size: int
    tilt: Tilt
    anchor: float
    tail: float
    cut: float = -math.inf
    fine: float | None = None

    @property
    def ends(self) -> tuple[float, float]:
        """The first loss of the window and the first beyond it."""
        return self.first * self.spacing, (self.first + self.size) * self.spacing

    def frame(self) -> Frame:
        """The window as laws use it."""
        return Frame(self.first, self.size, self.spacing, self.tilt.theta, self.anchor)


def plan_grid(
    terms: Sequence[DirectedTerm],
    delta: float,
    tolerance: float,
    *,
    from_zero: bool = False,
    truncation: float = TRUNCATION,
) -> Grid | None:
    """A grid on which ε(δ) is within about ``tolerance`` (relative) of its true value.

    Args:
        terms: the composition.
        delta: the finite part of δ, above 0.
        tolerance: relative width to aim for.
        from_zero: whether the window must contain 0, and all terms be used in one stage, so that
            the grid serves any smaller number of uses too.
        truncation: share of δ that all losses together may lose at either end.

    Returns:
        None where the losses are so large that there is no point in a finite ε, or so small that
        floats do not hold their squares, and their sum is as good; or where no grid is fine enough,
        or no finite loss is left.
    """
    if any(term.pair.infinite > MOST_INFINITE for term in terms):
        return None
    uses = math.fsum(term.count for term in terms)
    tail = max(delta * truncation / uses, 1e-290)
    ends = np.array([term.pair.nodes(tail, 2)[[0, -1]] for term in terms])
    if not float(np.abs(ends).max()) < LARGEST_LOSS:
        return None
    cumulants = Cumulants.of(terms, tail)
    theta, epsilon = cumulants.tilt_for_delta(math.log(delta))
    value, mean, variance = cumulants.tilted(theta)
    if not math.isfinite(value) or not abs(mean) < LARGEST_LOSS:
        return None
    window = cumulants.window(theta, epsilon)
    cut = -(_NEGLIGIBLE + math.log(uses)) / window.theta
    reach = float(np.abs(np.maximum(ends, cut)).max())
    deviation = math.sqrt(variance)
    target = tolerance * max(epsilon, 0.1 * deviation)
    widest = 0.05 if tolerance < 5e-3 else 0.1
    spread = min(math.sqrt(target / (4 * (1 + theta))), widest * deviation)
    window = replace(window, bottom=min(window.bottom, epsilon)).spread_by(spread)
    bottom, top = window.bottom, window.top
    if from_zero:
        bottom = min(bottom, -12 * spread)
    tilt = Tilt(window.theta, window.down, window.up)
    least = max(top - bottom, 2 * reach) / LARGEST_SIZE
    spacing = 2 * spread / math.sqrt(uses)
    if not max(spacing, least) > _LEAST_SPACING:
        return None
    aligned = _aligned_spacing(terms, max(spacing, least), least)
    fine = None
    on_lattice = all(_on_lattice(term, aligned) for term in terms)
    staged = math.fsum(_stages(term.count)[1] + _stages(term.count)[2] for term in terms)
    if staged < 0.3 * uses and not from_zero and not on_lattice:
        fine = _aligned_spacing(terms, max(spacing / 2, 2 * reach / _MOST_CELLS), 0.0)
        wish = max(0.85 * 2 * spread / math.sqrt(staged), least)
        aligned = _aligned_spacing(terms, wish, least)
    spacing = max(aligned, least)
    if fine is not None and not window.theta * spacing < _COARSEST:
        return None
    size = _fast_size(math.ceil((top - bottom) / spacing) + 4)
    return Grid(spacing, math.floor(bottom / spacing) - 1, size, tilt, epsilon, tail, cut, fine)


def compose_on(grid: Grid, terms: Sequence[DirectedTerm]) -> ComposedLaw:
    """The composed law of the terms on that grid."""
    composer, tally = Composer(grid.size), Tally()
    for term in terms:
        for loss, count in losses_on(grid, term):
            spectrum = tilt_transform(loss, grid.spacing, grid.tilt, grid.size)
            composer.multiply(spectrum, count)
            tally.add(loss, spectrum, count)
    budget = tally.budget(grid.tilt, *grid.ends)
    return ComposedLaw(composer.law(grid.first), grid.frame(), budget)


def points_on(grid: Grid, terms: Sequence[DirectedTerm]) -> int:
    """Estimate the grid points that are computed to compose the terms."""
    points = float(grid.size * len(terms))
    for term in terms:
        spacing = grid.spacing
        if grid.fine is not None and term.count >= _STAGED:
            inner = DirectedTerm(term.pair, math.isqrt(term.count))
            spacing, size, _ = _inner(grid, grid.fine, inner, 1)
            points += size
        low, high = np.maximum(term.pair.nodes(grid.tail, 2)[[0, -1]], grid.cut)
        points += (high - low) / spacing if term.pair.atoms() is None else 0.0
    return int(points)


def losses_on(grid: Grid, term: DirectedTerm) -> list[tuple[GridLoss, int]]:
    """Choose what to compose on the grid for one term: losses and how often each is used."""
    if grid.fine is None or term.count < _STAGED:
        return [(discretise(term.pair, grid.spacing, grid.tail, grid.cut), term.count)]
    inner, outer, rest = _stages(term.count)
    parts = [(_bundle(grid, grid.fine, DirectedTerm(term.pair, inner), outer), outer)]
    if rest:
        parts.append((discretise(term.pair, grid.spacing, grid.tail, grid.cut), rest))
    return parts


def _stages(count: int) -> tuple[int, int, int]:
    """(inner, outer, rest) with inner × outer + rest = count."""
    if count < _STAGED:
        return 1, count, 0
    inner = math.isqrt(count)
    return inner, count // inner, count % inner


def _bundle(grid: Grid, fine: float, term: DirectedTerm, uses: int) -> GridLoss:
    """All uses of a term as one loss, composed on the fine grid and moved to the coarse one."""
    fine, size, window = _inner(grid, fine, term, uses)
    first = math.floor(window.bottom / fine) - 1
    tilt = Tilt(grid.tilt.theta, window.down, window.up)
    single = discretise(term.pair, fine, grid.tail, grid.cut)
    spectrum = tilt_transform(single, fine, tilt, size)
    composer, tally = Composer(size), Tally()
    composer.multiply(spectrum, term.count)
    tally.add(single, spectrum, term.count)
    law = composer.law(first)
    budget = tally.budget(tilt, first * fine, (first + size) * fine)
    points = fine * np.arange(first, first + size, dtype=np.float64)
    untilted = budget.log_mgf - tilt.theta * points
    # Masses are at most one: where a tilted one is below e^−700, what was computed is an error.
    masses = np.where(untilted < 700, np.maximum(law.masses, 0.0), 0.0)
    masses *= np.exp(np.minimum(untilted, 700.0))
    # Below the cut the tilted law has no mass; to raise it there keeps the coarse grid small.
    cut = max(grid.cut, float(points[-1]) - 2 * LARGEST_SIZE * grid.spacing)
    raised = float(masses[points < cut].sum())
    start, coarse, moved, _ = split_atoms(np.maximum(points, cut), masses, grid.spacing)
    return GridLoss(
        first=start,
        masses=coarse,
        infinite=budget.infinite,
        truly_infinite=budget.truly_infinite,
        displaced=budget.displaced,
        moved=moved,
        lift=budget.lift + 8 * UNIT * float(np.abs(points).max()),
        variance=budget.spread**2 + grid.spacing**2 / 4,
        drift=budget.drift + drift(grid.spacing),
        raised=raised,
        excess=law.total_error + budget.above + budget.below + 1e-290,
        carried=budget.moved,
        relative=budget.relative,
        chernoff=(
            _chernoff(grid, fine, single, term.count, grid.tilt.theta - grid.tilt.down),
            _chernoff(grid, fine, single, term.count, grid.tilt.theta + grid.tilt.up),
        ),
    )


def _inner(grid: Grid, fine: float, term: DirectedTerm, uses: int) -> tuple[float, int, Window]:
    """Spacing, size and window of the first stage."""
    cumulants = Cumulants.of([term], grid.tail)
    window = cumulants.window_at(grid.tilt.theta, math.log(uses))
    # A small loss beside large ones: a cell must not be wider than the loss itself.
    deviation = math.sqrt(cumulants.tilted(grid.tilt.theta)[2] / term.count)
    reach = float(np.abs(np.maximum(term.pair.nodes(grid.tail, 2), grid.cut)).max())
    fine = min(fine, max(deviation / 8, 2 * reach / _MOST_CELLS) or fine)  # but of no loss but 0
    window = window.spread_by(fine * math.sqrt(term.count) / 2)
    size = _fast_size(math.ceil((window.top - window.bottom) / fine) + 4)
    if size > 2 * LARGEST_SIZE:
        fine *= size / (2 * LARGEST_SIZE)
        size = 2 * LARGEST_SIZE
    return fine, size, window


def _chernoff(grid: Grid, fine: float, loss: GridLoss, count: int, exponent: float) -> float:
    """Ln of the moment generating function after both stages, from above."""
    step = abs(exponent) * drift(grid.spacing) + (exponent * grid.spacing) ** 2 / 8
    return count * log_mgf(loss, fine, exponent) + step


def _aligned_spacing(terms: Sequence[DirectedTerm], spacing: float, least: float) -> float:
    """A spacing near the wanted one on which the atoms of as many losses as possible lie."""
    spans = {term.pair.span: 0.0 for term in terms if term.pair.span}
    if not spans:
        return spacing
    for term in terms:
        if term.pair.span:
            spans[term.pair.span] += term.count
    smallest = min(span for span in spans if span)
    if smallest >= least and all(_on_lattice(term, smallest) for term in terms):
        return smallest
    frequent = max((count, span) for span, count in spans.items() if span)[1]
    if frequent < spacing:
        return spacing
    whole = frequent / math.ceil(frequent / spacing)
    return whole if whole >= least else frequent / math.floor(frequent / spacing)


def _on_lattice(term: DirectedTerm, span: float) -> bool:
    atoms = term.pair.atoms()
    if atoms is None:
        return False
    ratio = atoms[0] / span
    return bool((np.abs(ratio - np.rint(ratio)) <= 32 * UNIT * np.abs(ratio)).all())


def _fast_size(least: int) -> int:
    """The least even 2^a 3^b 5^c of at least that size, and at least 256."""
    least = max(least, 256)
    best = 1 << (least - 1).bit_length()
    for factor in (3, 5, 9, 15):
        size = factor << max((least - 1) // factor, 1).bit_length()
        best = min(best, size) if size >= least else best
    return best
