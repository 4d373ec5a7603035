"""Random cases: mechanisms, samplers and relations, at usual numbers and at the ends of floats."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from tests.benchmarks.soundness.draws import between, epsilon, rate, use
from tests.benchmarks.soundness.uses import STREAMS, SUMS, Case, Use

RELATIONS = ("add-remove", "replace-one", "zero-out", "metric-ball")
SAMPLED = (*SUMS, "randomized-response", "exponential", "pure-black-box", "approximate-black-box")
UNSAMPLED = ("top-k", "laplace-vector", "gaussian-vector", "staircase", "individual-gaussian",
             "bit-vector-response", "truncated-discrete-gaussian")  # fmt: skip
_DELTAS = (
    0.0,
    1e-300,
    1e-100,
    1e-20,
    1e-12,
    1e-9,
    1e-6,
    1e-6,
    1e-6,
    1e-5,
    1e-5,
    1e-3,
    0.1,
    0.5,
    0.9,
)


def case(rng: random.Random) -> Case:
    """A case of a kind chosen at random."""
    kinds = {
        _plain: 24, _poisson: 26, _subset: 8, _mixed: 18, _parallel: 8, _users: 6, _stream: 8,
        _moved: 2, _data: 6, _drawn: 14, _turns: 4, _shuffled: 4,
        _ended: 2,
    }  # fmt: skip
    return rng.choices(list(kinds), list(kinds.values()))[0](rng)


def _plain(rng: random.Random) -> Case:
    kind = rng.choice([*SAMPLED, *UNSAMPLED, "concentrated-black-box", "gaussian"])
    return Case(kind, rng.choice(RELATIONS), (use(rng, kind),), rng.choice(_DELTAS))


def _poisson(rng: random.Random) -> Case:
    kind = rng.choice([*SAMPLED, "gaussian", "gaussian", "laplace"])
    one = replace(use(rng, kind), rate=rate(rng))
    related = rng.choice(["add-remove", "add-remove", "add-remove", "zero-out"])
    apart = related == "zero-out" and kind not in SUMS
    name = f"poisson {'other' if apart else kind}"
    return Case(name, related, (one,), rng.choice(_DELTAS))


def _ended(rng: random.Random) -> Case:
    """Noise that ends or is cut, whose loss may be infinite; one alone and in Poisson samples."""
    kind = rng.choice(["truncated-laplace", "stable-histogram"])
    one = use(rng, kind, (1, 1, 2, 5, 20, 100))
    if kind == "stable-histogram" or rng.random() < 0.5:
        return Case(one.kind, rng.choice(RELATIONS), (one,), rng.choice(_DELTAS))
    one = replace(one, rate=rate(rng))
    return Case(f"poisson {one.kind}", "add-remove", (one,), rng.choice(_DELTAS))


def _subset(rng: random.Random) -> Case:
    kind = rng.choice(SAMPLED)
    population = rng.choice([10, 1000, 10**6])
    subset = (rng.randint(1, population), population)
    one = replace(use(rng, kind), subset=subset)
    return Case(
        f"subset {'sum' if kind in SUMS else 'other'}", "replace-one", (one,), rng.choice(_DELTAS)
    )


def _mixed(rng: random.Random) -> Case:
    related = rng.choice(["add-remove", "add-remove", "replace-one", "zero-out", "metric-ball"])
    few = (1, 1, 2, 5, 20, 100, 1000, 10**5)
    uses = []
    for _ in range(rng.choice([2, 2, 3, 5])):
        one = use(rng, rng.choice([*SAMPLED, *UNSAMPLED]), few)
        if one.kind in UNSAMPLED:
            uses.append(one)
            continue
        if rng.random() < 0.4 and related in ("add-remove", "zero-out"):
            one = replace(one, rate=rate(rng))
        if rng.random() < 0.2 and related == "replace-one":
            one = replace(one, subset=(rng.randint(1, 1000), 1000))
        uses.append(one)
    drawn = any(one.rate is not None or one.subset is not None for one in uses)
    return Case("mixed, sampled" if drawn else "mixed", related, tuple(uses), rng.choice(_DELTAS))


def _parallel(rng: random.Random) -> Case:
    """Groups of units, by position or by the unit's own value."""
    by_value = rng.random() < 0.5
    uses = [
        replace(
            use(rng, rng.choice(SAMPLED), (1, 2, 10, 1000)),
            group=f"group {n % 3}",
            by_value=by_value,
        )
        for n in range(rng.choice([2, 3, 5]))
    ]
    if rng.random() < 0.5:
        uses.append(use(rng, rng.choice(SAMPLED), (1, 3)))
    name = "groups by value" if by_value else "groups"
    return Case(name, rng.choice(RELATIONS), tuple(uses), rng.choice(_DELTAS))


def _users(rng: random.Random) -> Case:
    """Several units protected together."""
    kind = rng.choice([*SAMPLED, "concentrated-black-box"])
    one = use(rng, kind, (1, 1, 2, 10, 1000))
    return Case(
        "group of units",
        rng.choice(RELATIONS),
        (one,),
        rng.choice(_DELTAS),
        size=rng.choice([2, 3, 10]),
    )


def _stream(rng: random.Random) -> Case:
    kind = rng.choice(STREAMS)
    one = use(rng, kind, (1, 1, 1, 3))
    related = rng.choice(RELATIONS)
    if rng.random() < 0.2 and related in ("add-remove", "zero-out"):
        one = replace(one, rate=rate(rng))
    name = f"{kind}, replaced" if related == "replace-one" else kind
    return Case(name, related, (one,), rng.choice(_DELTAS))


def drawn(rng: random.Random) -> tuple[str, tuple[Any, ...]]:
    """A relation, and a scheme that it is amplified under."""
    q, units = rate(rng), rng.choice([2, 3, 10, 1000, 10**6])
    size = min(rng.choice([1, 2, 5, 30]), units)
    full = min(max(round(units * q * between(rng, 0.5, 2.0)), 1), units)
    kinds: dict[str, tuple[str, tuple[Any, ...]]] = {
        "rows": ("add-remove", (q, rng.choice([2, 3, 5, 40]))),
        "replaced": ("replace-one", (q,)),
        "truncated": (rng.choice(["add-remove", "zero-out"]), (q, full, units)),
        "again": ("add-remove", (size, units, 2)),
        "allocated": (
            rng.choice(["add-remove", "zero-out"]),
            (rng.choice([2, 10, 300]), rng.choice([1, 1, 2])),
        ),
        "taken": ("add-remove", (rng.randint(1, units), units)),
    }
    kind = rng.choice(list(kinds))
    related, facts = kinds[kind]
    if kind == "again" and rng.random() < 0.5:
        related, facts = "replace-one", (size, units, 1)
    return related, (kind, *facts)


def _drawn(rng: random.Random) -> Case:
    """Gaussian noise under one of the other schemes."""
    related, own = drawn(rng)
    one = replace(use(rng, "gaussian", (1, 1, 2, 10, 100, 1000)), drawn=own)
    if own[0] == "allocated":
        one = replace(one, count=own[1] * rng.choice([1, 1, 3, 50]))
    return Case(f"drawn: {own[0]}", related, (one,), rng.choice(_DELTAS))


def allocated(rng: random.Random) -> Case:
    """Several mechanisms of one kind, each allocated at random, in any order."""
    kind = rng.choice(SAMPLED)
    steps, epochs = rng.choice([2, 3, 10, 100]), rng.choice([1, 1, 2, 20])
    uses = [
        replace(use(rng, kind), drawn=("allocated", steps), count=steps * epochs)
        for _ in range(rng.choice([1, 2, 2, 3]))
    ]
    return Case("drawn: allocated", "add-remove", tuple(uses), rng.choice(_DELTAS))


def shared(rng: random.Random) -> Case:
    """Gaussian noise on random shares, whose rates leave much for none, or hardly anything."""
    shares = [rng.choice([1.0, between(rng, 1e-3, 1.0)]) for _ in range(rng.choice([1, 2, 5]))]
    weights = [between(rng, 0.01, 1.0) for _ in shares]
    whole = rng.choice([0.999, rate(rng)]) * 0.999 / sum(weights)
    own = "shares", tuple(shares), tuple(weight * whole for weight in weights)
    one = replace(use(rng, "gaussian", (1, 1, 2, 10, 100, 1000)), drawn=own)
    related = rng.choice(["add-remove", "zero-out"])
    return Case("drawn: shares", related, (one,), rng.choice(_DELTAS))


def _turns(rng: random.Random) -> Case:
    """A banded stream, over groups that take turns."""
    groups, turns = rng.choice([1, 2, 5]), rng.choice([1, 2, 8])
    matrix = ("banded-toeplitz", {"steps": groups * turns, "bands": rng.randint(1, groups)})
    facts = {"sigma": between(rng, 0.5, 30), "matrix": matrix, "participations": turns}
    one = Use("continual-gaussian", facts | {"min_separation": groups}, 1.0, rng.choice([1, 1, 3]))
    one = replace(one, drawn=("turns", rate(rng), groups))
    return Case("drawn: turns", rng.choice(["add-remove", "zero-out"]), (one,), rng.choice(_DELTAS))


def _shuffled(rng: random.Random) -> Case:
    """Shuffled binary responses."""
    one = use(rng, "shuffled", (1, 1, 2, 10))
    return Case("shuffled", rng.choice(["replace-one", "zero-out"]), (one,), rng.choice(_DELTAS))


def _moved(rng: random.Random) -> Case:
    """A metric ball of another radius than was declared."""
    kind = rng.choice(["gaussian", "laplace"])
    one = use(rng, kind, (1, 3, 100))
    radius = between(rng, 0.1, 10)
    return Case(
        "at another radius",
        "metric-ball",
        (one,),
        rng.choice(_DELTAS),
        radius,
        moved=between(rng, 0.1, 9),
    )


def _data(rng: random.Random) -> Case:
    """Tiny data sets, of which every pair of neighbours is tried."""
    related = rng.choice(RELATIONS)
    bound, records, count = rng.choice([1, 2]), rng.choice([2, 3, 4]), rng.choice([1, 1, 2])
    size = rng.choice([1, 1, 2])
    if size * count > 1:
        bound, records = 1, min(records, 3)
    dataset = {"records": records, "bound": bound, "reach": 60 if count == 1 else 25}
    radius = float(rng.choice([1, 3]))
    delta = rng.choice([0.0, 1e-6, 1e-3, 0.1])
    if rng.random() < 0.25:
        one = Use("exponential", {"epsilon": epsilon(rng)}, 1.0, count)
        return Case("tiny data", related, (one,), delta, radius, size, dataset=dataset)
    factor = 2.0 if related in ("replace-one", "metric-ball") else 1.0
    one = Use("discrete-laplace", {"scale": between(rng, 0.3, 4.0)}, factor * bound, count)
    if related in ("add-remove", "zero-out") and rng.random() < 0.7:
        one = replace(one, rate=rng.choice([0.1, 0.5, 0.9]))
    elif related == "replace-one" and rng.random() < 0.7:
        one = replace(one, subset=(rng.randint(1, records), records))
    else:
        one = replace(one, bound=float(bound))
    return Case("tiny data", related, (one,), delta, radius, size, dataset=dataset)
