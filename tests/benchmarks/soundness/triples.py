"""Every sampling scheme with every mechanism under every relation, in turn."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from tests.benchmarks.soundness.draws import rate, use
from tests.benchmarks.soundness.oracle.neighbours import scheme
from tests.benchmarks.soundness.plans import RELATIONS
from tests.benchmarks.soundness.uses import Case, Use
from tests.benchmarks.soundness.verdict import Verdict

KINDS = (
    "gaussian", "laplace", "discrete-gaussian", "discrete-laplace", "randomized-response",
    "exponential", "pure-black-box", "approximate-black-box", "concentrated-black-box", "top-k",
    "laplace-vector", "gaussian-vector", "staircase", "truncated-laplace", "stable-histogram",
    "individual-gaussian", "continual-gaussian", "continual-laplace", "permute-and-flip",
    "noisy-max", "sparse-vector", "unary-encoding", "subset-selection",
)  # fmt: skip
"""All but what is shuffled, of which one report of many is no unit's, and what states no law."""
SCHEMES = ("poisson", "subset", "rows", "replaced", "truncated", "again", "allocated")
TRIPLES = tuple(itertools.product(SCHEMES, KINDS, RELATIONS))
_DELTAS = (0.0, 1e-20, 1e-12, 1e-9, 1e-6, 1e-6, 1e-5, 1e-3, 0.1)
_ORDER = random.Random(0).sample(range(len(TRIPLES)), len(TRIPLES))


def case(rng: random.Random, number: int) -> Case:
    """Some uses of one kind of mechanism that are drawn alike; now and then others beside them."""
    drawn, kind, related = TRIPLES[_ORDER[number % len(TRIPLES)]]
    uses = [_one(rng, kind, drawn) for _ in range(rng.choice([1, 2, 2, 3]))]
    if rng.random() < 0.25:
        uses.append(_one(rng, rng.choice(KINDS), rng.choice(SCHEMES)))
    if rng.random() < 0.25:  # the same law, drawn otherwise
        plain = replace(uses[0], rate=None, subset=None, drawn=None, count=1)
        uses.append(_drawn(rng, plain, rng.choice(SCHEMES)))
    rng.shuffle(uses)
    return Case(f"triple: {drawn}", related, tuple(uses), rng.choice(_DELTAS))


def _one(rng: random.Random, kind: str, drawn: str) -> Use:
    """One use, of a mechanism that tells neither nothing nor everything where that can be."""
    for _ in range(20):
        one = use(rng, kind, (1, 1, 2, 10, 100, 1000))
        if _is_telling(one):
            break
    return _drawn(rng, one, drawn)


def _drawn(rng: random.Random, one: Use, drawn: str) -> Use:
    """A use of whom a scheme draws."""
    units = rng.choice([2, 3, 10, 1000, 10**6])
    size = min(rng.choice([1, 2, 5, 30]), units)
    epoch, times = rng.choice([2, 3, 10, 100]), rng.choice([1, 1, 1, 2])
    given: dict[str, Any] = {
        "poisson": {"rate": rate(rng)},
        "subset": {"subset": (rng.randint(1, units), units)},
        "rows": {"drawn": ("rows", rate(rng), rng.choice([2, 3, 5]))},
        "replaced": {"drawn": ("replaced", rate(rng))},
        "truncated": {"drawn": ("truncated", rate(rng), size, units)},
        "again": {"drawn": ("again", size, units, 2)},
        "allocated": {"drawn": ("allocated", epoch, times)},
    }[drawn]
    if drawn == "allocated":
        given["count"] = epoch * rng.choice([1, 1, 2, 20])
    return replace(one, enumerated=True, **given)


def _is_telling(one: Use) -> bool:
    facts = one.facts
    if facts.get("p", 0.5) > 0.99 or facts.get("epsilon", 1.0) > 20:
        return False
    scale = facts.get("sigma", facts.get("scale", one.shift))
    return 0.1 < float(scale) / one.shift < 1e3


def lines(verdicts: Iterable[Verdict]) -> Iterator[str]:
    """How often each kind was drawn under each scheme, of which so many had a truth."""
    drawn: Counter[tuple[str, str, str]] = Counter()
    compared: Counter[tuple[str, str]] = Counter()
    for one in verdicts:
        for each in one.case.uses:
            if each.enumerated:
                key = (scheme(each)[0], each.kind)
                drawn[*key, one.case.relation] += 1
                compared[key] += one.truth is not None
    if not drawn:
        return
    yield "uses drawn, and of them compared, by mechanism and scheme"
    yield f"{'':24}" + "".join(f"{name:>11}" for name in SCHEMES)
    for kind in KINDS:
        found = [
            (sum(drawn[name, kind, r] for r in RELATIONS), compared[name, kind]) for name in SCHEMES
        ]
        yield f"{kind:24}" + "".join(f"{f'{n}/{c}':>11}" for n, c in found)
    missing = [each for each in TRIPLES if not drawn[each]]
    yield f"never drawn: {len(missing)} of {len(TRIPLES)} triples of scheme, mechanism, relation"
