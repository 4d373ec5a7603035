"""Neighbours of data that nobody gave: patterns of numbers.

They are those with which wrong selections are found: one entry moves, all do, or some go up and the
others down (Ding et al. 2018, Table 1; Lyu, Su and Li 2017 for the sparse vector).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from dpaudit.plan import AddRemove, MetricBall, Relation, ZeroOut
from dpaudit.project import AuditPair

SIZES = (1, 2, 5, 10)
REACH = (0.05, 1000.0)
PLACES = (*range(-10, 11), *(sign * round(12 * 1.6**k) for k in range(10) for sign in (-1, 1)))


def patterns(relation: Relation | None, constants: Iterable[float] = ()) -> Iterator[AuditPair]:
    """Pairs of numbers and of lists of numbers.

    Args:
        relation: under which one entry moves by 1 (or the radius), becomes 0, or is missing;
            without it each entry may move by 1.
        constants: numbers of the code, near which numbers are tried too.
    """
    step: float = relation.radius if isinstance(relation, MetricBall) else 1
    fixed = isinstance(relation, AddRemove | ZeroOut)
    for x in ([level] * size for size in SIZES for level in (0, 1)):
        told, rest = f"{len(x)} equal numbers", len(x) - 1
        if fixed and (rest or isinstance(relation, ZeroOut)):  # an empty list is another matter
            yield AuditPair(x, x[1:] if isinstance(relation, AddRemove) else [0, *x[1:]], told)
        if fixed:
            continue
        ways: dict[str, list[float]] = {"one apart": [step, *[0] * rest]}
        if relation is None and rest:
            ways["all apart"] = [1] * len(x)
            ways["one up and all others down"] = [1, *[-1] * rest]
            ways["half up and half down"] = [1 if 2 * k < len(x) else -1 for k in range(len(x))]
        for why, way in ways.items():
            for sign in (1, -1):
                other = [a + sign * b for a, b in zip(x, way, strict=True)]
                yield AuditPair(x, other, f"{told}, {why}")
    for place in (
        () if fixed else (*PLACES, *(c + k * step / 2 for c in constants for k in (-1, 0)))
    ):
        yield AuditPair(place, place + step, "one number, one apart")


def around(pair: AuditPair, rng: np.random.Generator) -> AuditPair:
    """A pair whose ends differ as much, but lie elsewhere: in all entries, or in one."""
    x, other = (np.array(end, dtype=np.float64) for end in (pair.x, pair.x_prime))
    size = float(rng.choice([-1, 1]) * np.exp(rng.uniform(*np.log(REACH))))
    size = round(size) if rng.random() < 0.5 else size
    where: Any = int(rng.integers(x.size)) if x.ndim and rng.random() < 0.5 else ...
    if rng.random() < 0.5:  # counted from 0, not from where it is
        size -= float(np.ravel(x[where])[0])
    x[where] += size
    other[where] += size
    whole = all((end == np.floor(end)).all() for end in (x, other))
    one, two = (end.astype(int).tolist() if whole else end.tolist() for end in (x, other))
    return AuditPair(one, two, pair.why.removesuffix(", moved") + ", moved")
