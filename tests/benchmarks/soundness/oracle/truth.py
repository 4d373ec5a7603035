"""What a case costs: δ(ε) from below and from above, by the sharpest method that applies."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import mpmath as mp
import numpy as np
from scipy.special import gammaln

from tests.benchmarks.soundness.oracle import closed, datasets
from tests.benchmarks.soundness.oracle.closed import Curve
from tests.benchmarks.soundness.oracle.costs import Cost, cost, expanded
from tests.benchmarks.soundness.oracle.laws import BeyondGridError, FiniteLaw, Floats, Law
from tests.benchmarks.soundness.oracle.sampled import finite
from tests.benchmarks.soundness.oracle.transform import Composition, Part, any_of

_LEAST_DELTA = 1e-250
_MOST_ATOMS = 20_000
_MOST_DRAWS = 2 * 10**6
_SIZES = (2**14, 2**16, 2**18, 2**22)
_WIDTH = 0.02


def truth(case: Any, delta: float, deep: bool = True) -> Curve | None:
    """The curve of a case, sharp near δ; None where no method follows.

    Args:
        case: as of :mod:`tests.benchmarks.soundness.uses`.
        delta: where it is to be sharp.
        deep: whether transforms may take several seconds.
    """
    if case.dataset:
        return datasets.curve(case)
    curves = [_sequential(uses, case, delta, deep) for uses in touched(case)]
    if any(one is None for one in curves):
        return None
    known = [one for one in curves if one is not None]
    return Curve(
        lambda e: max(one.lower(e) for one in known),
        lambda e: max(one.upper(e) for one in known),
        " ".join(sorted({one.method for one in known})),
    )


def touched(case: Any) -> list[list[Any]]:
    """The uses that one unit can touch: all, those of its group, of two that it moves between."""
    everyone = [use for use in case.uses if use.group is None]
    names = sorted({use.group for use in case.uses if use.group is not None})
    moves = case.relation in ("replace-one", "metric-ball")
    own = {name: [use for use in case.uses if use.group == name] for name in names}
    moving = [name for name in names if own[name][0].by_value and moves]
    sets = [own[name] for name in names if name not in moving]
    sets += [own[a] + own[b] for a, b in itertools.combinations(moving, 2)]
    sets += [own[moving[0]]] if len(moving) == 1 else []
    return [everyone + one for one in sets] or [everyone]


def _sequential(uses: Sequence[Any], case: Any, delta: float, deep: bool) -> Curve | None:
    parts = [part for use in uses for part in expanded(use)]
    found = [cost(use, case) for use in parts if use.shift > 0]
    if any(one is None for one in found):
        return None
    costs = [one for one in found if one is not None]
    if not costs:
        return Curve(lambda e: 0.0, lambda e: 0.0, "nothing")
    if delta == 0:
        return _pure(costs)
    if all(one.square is not None and not one.scheme for one in costs):
        return _gaussian(costs)
    if len(costs) == 1 and costs[0].count == 1 and costs[0].single is not None:
        return costs[0].single
    if delta < _LEAST_DELTA:
        return None
    try:
        return _composed(costs, delta, deep)
    except BeyondGridError:
        return None


def _gaussian(costs: Sequence[Cost]) -> Curve:
    lower = sum((one.count * one.square[0] for one in costs if one.square), Fraction(0))
    upper = sum((one.count * one.square[1] for one in costs if one.square), Fraction(0))
    rho = any(one.concentrated for one in costs)
    above = closed.concentrated_delta if rho else closed.gaussian_delta
    return Curve(
        partial(closed.gaussian_delta, lower),
        partial(above, upper / 2 if rho else upper),
        "closed",
    )


def _pure(costs: Sequence[Cost]) -> Curve:
    """δ(ε) > 0 below the sum of the largest losses, and 0 from there on."""
    least = mp.fsum(one.count * one.largest[0] for one in costs)
    most = mp.fsum(one.count * one.largest[1] for one in costs)

    def curve(total: mp.mpf, epsilon: float, side: int, below: float) -> float:
        with mp.workdps(50):
            return below if epsilon < total * (1 - side * mp.mpf(10) ** -40) else 0.0

    return Curve(lambda e: curve(least, e, 1, 5e-324), lambda e: curve(most, e, -1, 1.0), "closed")


def _composed(costs: Sequence[Cost], delta: float, deep: bool) -> Curve:
    """The worse of both directions, from above and from below."""
    made: dict[tuple[Part, ...], Curve] = {}

    def ends(laws: Sequence[Law], way: int, least: bool) -> Curve:
        parts = tuple(
            (one.directed(law, way, least=least), one.count)
            for one, law in zip(costs, laws, strict=True)
        )
        if parts not in made:
            made[parts] = _few(parts) or _transformed(parts, delta, deep)
        return made[parts]

    ways = (0, 1) if any(one.scheme in ("poisson", "subset", "drawn") for one in costs) else (0,)
    above = [one.upper for one in costs if one.upper is not None]
    uppers = []
    if len(above) == len(costs):
        uppers = [ends(above, way, least=False) for way in ways]
    top = max((closed.least_epsilon(one.upper, delta, 1.0) for one in uppers), default=math.inf)
    share = top / sum(one.count for one in costs)
    lowers = [ends([one.lower(share) for one in costs], way, least=True) for way in ways]
    return Curve(
        lambda e: max(one.lower(e) for one in lowers),
        lambda e: max((one.upper(e) for one in uppers), default=1.0),
        " ".join(sorted({one.method for one in made.values()})),
    )


def _few(parts: Sequence[Part]) -> Curve | None:
    """Exactly, where all losses are few, or one of two is drawn again and again."""
    tables = [(law, count) for (any_law, count) in parts if (law := finite(any_law)) is not None]
    if len(tables) < len(parts):
        return None
    (law, count), *others = tables
    if not others and (law.losses.size == 1 or (law.losses.size == 2 and count <= _MOST_DRAWS)):
        return _binomial(law, count)
    if max(count for _, count in tables) > 60:
        return None
    atoms = math.prod(law.losses.size**count for law, count in tables)
    return _enumerated(tables) if atoms <= _MOST_ATOMS else None


def _binomial(law: FiniteLaw, count: int) -> Curve:
    """Sums of one of two losses."""
    sure = any_of([(count, law.infinite)])
    with np.errstate(divide="ignore"):
        logs = np.maximum(np.log(law.p), -1e6)
    if law.losses.size == 1:
        return _summed(count * law.losses, np.exp(count * logs), sure, 1e-12)
    j = np.arange(count + 1.0)
    log_mass = gammaln(count + 1) - gammaln(j + 1) - gammaln(count - j + 1)
    log_mass += (count - j) * logs[0] + j * logs[1]
    kept = log_mass > -745
    losses = (count - j) * law.losses[0] + j * law.losses[1]
    error = 1e-15 * (count * math.log(count + 1) + count * float(np.abs(logs).max()) + 100)
    return _summed(losses[kept], np.exp(log_mass[kept]), sure, error)


def _enumerated(tables: Sequence[tuple[FiniteLaw, int]]) -> Curve:
    """All sums of losses."""
    losses, masses = np.zeros(1), np.ones(1)
    for law, count in tables:
        for _ in range(count):
            losses = np.add.outer(losses, law.losses).ravel()
            masses = np.multiply.outer(masses, law.p).ravel()
    sure = any_of((count, law.infinite) for law, count in tables)

    return _summed(losses, masses, sure, 1e-12)


def _summed(losses: Floats, masses: Floats, sure: float, error: float) -> Curve:
    """The curve of a table of losses, whose masses are right but for a relative error."""
    wide = 1e-14 * (1 + float(np.abs(losses).max()))  # of the losses, as sums of floats

    def curve(epsilon: float) -> float:
        return float(masses @ -np.expm1(np.minimum(epsilon - losses, 0.0))) + sure

    def lower(epsilon: float) -> float:
        return curve(epsilon + wide) * (1 - error)

    def upper(epsilon: float) -> float:
        return min(1.0, curve(epsilon - wide) * (1 + error) + 1e-300)

    return Curve(lower, upper, "enumeration")


def _transformed(parts: Sequence[Part], delta: float, deep: bool) -> Curve:
    """On as many points as it takes for the two ends to be near each other."""
    for size in _SIZES if deep else _SIZES[:3]:
        found = Composition(parts, delta, size)
        if found.width < (_WIDTH / 10 if deep else _WIDTH):
            break
    return Curve(found.lower, found.upper, "transform")
