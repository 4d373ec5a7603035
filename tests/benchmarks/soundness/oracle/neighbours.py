"""Neighbours of every sampling scheme, mechanism and relation, whose outputs are enumerated.

Each is a pair of data sets that the declaration allows, so that what it costs is a lower bound of
every guarantee. Where the relation lets a unit be replaced, and nothing bounds what one adds, the
others hear whether it is drawn: it and its neighbour add far more than all others, or differ from
a sample without them in what the mechanism does not bound.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import mpmath as mp
import numpy as np
from scipy.special import comb
from scipy.stats import binom

from tests.benchmarks.soundness.oracle.laws import FiniteLaw, Floats, Law
from tests.benchmarks.soundness.oracle.outputs import SUMS, outputs

Weights = dict[float, float]
Branch = tuple[Weights, Weights]
"""How far the outputs are moved in either data set, where the branch is known to be taken."""

_LEAST, _SEEN, _MOST_DRAWS = 1e-290, 3, 12
_ROUNDING = 1e-11


def scheme(use: Any) -> tuple[Any, ...]:
    """How units of the use are drawn, and its facts."""
    if use.rate is not None:
        return "poisson", use.rate
    if use.subset is not None:
        return "subset", *use.subset
    return use.drawn or ("poisson", 1.0)


def branches(use: Any, relation: str) -> list[Branch]:
    """What one use makes of two neighbours, but for allocated units that are absent in one."""
    kind, *facts = scheme(use)
    absent = relation == "add-remove" or (relation == "zero-out" and use.kind in SUMS)
    nothing: Weights = {0.0: 1.0}
    if kind == "subset" or kind == "taken":
        rate = facts[0] / facts[1]
        if (relation == "zero-out" and absent) or relation == "replace-one":
            return [(_drawn(rate), nothing)]
        return [(_drawn(rate, 2.0), nothing)] if absent else _known(_drawn(rate))
    if kind in ("rows", "again"):
        times, rate = (facts[1], facts[0]) if kind == "rows" else (facts[0], 1 / facts[1])
        both = 2.0 if kind == "again" and relation == "add-remove" else 1.0
        weights = _binomial(times, rate, both)
        common = absent or (kind == "again" and relation == "replace-one")
        return [(weights, nothing)] if common else _known(weights)
    if kind == "allocated":
        return [({1.0: 1.0}, nothing)]
    rate = facts[0]
    if kind == "truncated":
        alone, among, full = _fitting(*facts)
        if relation == "replace-one":  # who is in a full sample takes the place of one alike
            crowded = {1.0: among, 0.0: max(full - among, 0.0)}
            left = {0.0: max(1 - full - alone, 0.0)}
            return [({1.0: alone}, {0.0: alone}), (left, left), (crowded, {0.0: full})]
        rate = alone + among
    if kind == "replaced" and use.kind in SUMS:
        half = _drawn(rate, 0.5)
        return [(half, nothing if absent else {-move: w for move, w in half.items()})]
    return [(_drawn(rate), nothing)] if absent else _known(_drawn(rate))


def _drawn(rate: float, step: float = 1.0) -> Weights:
    return {step: rate, 0.0: 1 - rate} if rate < 1 else {step: 1.0}


def _binomial(times: int, rate: float, step: float) -> Weights:
    """Of many draws those that are most likely; all others count as none."""
    number = np.arange(1, times + 1)
    weights = binom.pmf(number, times, rate)
    kept = np.argsort(-weights)[:_MOST_DRAWS]
    found = {step * float(number[at]): float(weights[at]) for at in kept if weights[at] > 1e-250}
    return {0.0: float(binom.pmf(0, times, rate)), **found}


def _fitting(rate: float, most: int, units: int) -> tuple[float, float, float]:
    """That a unit is drawn beside fewer than fit, or is in a full sample; and that one is full."""
    if most >= units:
        return rate, 0.0, 0.0
    full = float(binom.sf(most - 1, units - 1, rate))
    return rate * (1 - full), most / units * float(binom.sf(most, units, rate)) * (1 - 1e-9), full


def _known(weights: Weights) -> list[Branch]:
    """Both hear how often the unit is drawn; what it adds differs by a step each time."""
    return [({move: w}, {0.0: w}) for move, w in weights.items()]


def law(use: Any, relation: str, way: int) -> Law | None:
    """The loss of one use, or of an epoch, from one data set to its neighbour (0) or back (1)."""
    kind, *facts = scheme(use)
    epoch = kind == "allocated" and (
        relation == "add-remove" or (relation == "zero-out" and use.kind in SUMS)
    )
    pairs = branches(use, relation)
    moves = sorted({move for pair in pairs for side in pair for move in side} | {0.0})
    if max(moves) * use.shift > 1e12 or use.facts.get("epsilon", 1.0) > 100:
        return None
    made = outputs(use.kind, use.facts, use.shift, moves, few=epoch)
    if epoch:
        times = facts[1] if len(facts) > 1 else 1
        p, q = _allocated(made.masses[moves.index(1.0)], made.masses[moves.index(0.0)],
                          facts[0], times)  # fmt: skip
        seen = min(_SEEN, facts[0])
        ends = _outer([made.ends.astype(float)] * seen, np.maximum) > 0
    else:
        p, q = (
            np.concatenate([
                sum(w * made.masses[moves.index(move)] for move, w in pair[side].items())
                for pair in pairs
            ])
            for side in (0, 1)
        )  # fmt: skip
        ends = np.tile(made.ends, len(pairs))
    return _finite(*((p, q) if way == 0 else (q, p)), ends)


def _outer(rows: Sequence[Floats], function: Any = np.multiply) -> Floats:
    """All products of one of each."""
    found = rows[0]
    for row in rows[1:]:
        found = function.outer(found, row).ravel()
    return found


def _allocated(drawn: Floats, rest: Floats, steps: int, times: int) -> tuple[Floats, Floats]:
    """The first few releases of an epoch, in which a unit is in so many of all."""
    seen = min(_SEEN, steps)
    p = np.zeros(len(rest) ** seen)
    for places in itertools.product((0, 1), repeat=seen):
        held = sum(places)
        if held <= times and times - held <= steps - seen:
            share = comb(steps - seen, times - held, exact=True) / comb(steps, times, exact=True)
            p += share * _outer([drawn if place else rest for place in places])
    return p, _outer([rest] * seen)


def _finite(p: Floats, q: Floats, ends: Floats) -> FiniteLaw | None:
    """Losses a bit lowered, so that rounded masses cost no more than the true ones."""
    both = (p > _LEAST) & (q > _LEAST)
    lonely = (p > _LEAST) & ~both
    losses = np.log(p[both]) - np.log(q[both])
    far = lonely & ~ends  # the other has mass here, below the floats
    losses = np.append(losses, np.log(p[far]) + 640.0)
    masses = np.append(p[both], p[far])
    losses -= _ROUNDING * (1 + np.abs(losses))
    infinite = float(p[lonely & ends].sum())
    infinite = infinite * (1 - 1e-9) if infinite > 1e-12 else 0.0
    order = np.argsort(losses, kind="stable")
    losses, masses = losses[order], masses[order]
    if not masses.size or float(np.abs(losses).max()) < 1e-9:
        return None
    with np.errstate(over="ignore"):
        other = masses * np.exp(-losses)
    return FiniteLaw(losses, masses, other, infinite, float(q[~both].sum()))


def facts_of(use: Any, relation: str) -> dict[str, Any] | None:
    """Count, laws of both ways and largest losses, for a cost; None where there are none."""
    ways = [law(use, relation, way) for way in (0, 1)]
    if ways[0] is None or ways[1] is None:
        return None
    count = use.count
    if use.drawn is not None and use.drawn[0] == "allocated":
        count = use.count // use.drawn[1]
        absent = relation == "add-remove" or (relation == "zero-out" and use.kind in SUMS)
        if not absent:
            count *= use.drawn[2] if len(use.drawn) > 2 else 1
    infinite = max(one.infinite for one in ways) > 0
    top = mp.inf if infinite else mp.mpf(max(one.largest for one in ways))
    return {
        "count": count,
        "lower": lambda _: ways[0],
        "upper": None,
        "curves": None,
        "range": (top if math.isfinite(top) or infinite else mp.inf, mp.inf),
        "scheme": "drawn",
        "neighbours": (ways[0], ways[1]),
    }
