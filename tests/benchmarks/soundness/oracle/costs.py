"""What one use costs, by the mechanism's definition, its relation and how units are sampled."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import mpmath as mp

from tests.benchmarks.soundness.oracle import closed, drawn, neighbours
from tests.benchmarks.soundness.oracle.bases import BASES
from tests.benchmarks.soundness.oracle.closed import Curve, Number
from tests.benchmarks.soundness.oracle.laws import Law
from tests.benchmarks.soundness.oracle.sampled import AddedLaw, ApartLaw, RemovedLaw, ReplacedLaw
from tests.benchmarks.soundness.oracle.streams import factors

SUMS = ("gaussian", "laplace", "discrete-gaussian", "discrete-laplace")
STREAMS = ("continual-gaussian", "continual-laplace")


@dataclass(frozen=True)
class Cost:
    """One use.

    Attributes:
        count: how often.
        lower: the law of mechanisms that the declaration allows, from the loss that one use bears.
        upper: a law that dominates all of them; None if none is known.
        curves: δ(ε) of one use before sampling, at least and at most, where there is a closed form.
        square: μ² at least and at most, of Gaussian noise.
        range: the largest loss, at least and at most.
        scheme: "", "poisson", "apart", "subset" or "drawn".
        rate: of sampling.
        concentrated: whether ``square`` is that of a bound on concentration.
        drawn: one of the schemes of :mod:`tests.benchmarks.soundness.oracle.drawn`.
        neighbours: the laws both ways of neighbours that were enumerated.
    """

    count: int
    lower: Callable[[float], Law]
    upper: Law | None
    curves: tuple[Callable[[float], Any], Callable[[float], Any]] | None
    range: tuple[Number, Number]
    square: tuple[Fraction, Fraction] | None = None
    scheme: str = ""
    rate: float = 1.0
    concentrated: bool = False
    drawn: tuple[Any, ...] | None = None
    neighbours: tuple[Law, Law] | None = None

    def directed(self, law: Law, way: int, *, least: bool) -> Law:
        """The law after sampling, of a unit that leaves (0) or joins (1)."""
        if self.neighbours is not None:
            return self.neighbours[way]
        if self.drawn is not None:
            return drawn.law(law, self.drawn, way)
        if not self.scheme:
            return law
        if self.scheme == "apart":
            return ApartLaw(law, self.rate)
        if self.scheme == "subset" and not least:
            return ReplacedLaw(law, self.rate)
        return (RemovedLaw, AddedLaw)[way](law, self.rate)

    @property
    def largest(self) -> tuple[Number, Number]:
        """The largest loss of one use after sampling."""
        if self.scheme in ("", "apart"):
            return self.range
        with mp.workdps(60):
            rate = closed.exact(self.rate)
            low, high = (e if e == mp.inf else mp.log1p(rate * mp.expm1(e)) for e in self.range)
        return low, high

    @property
    def single(self) -> Curve | None:
        """Of one use alone."""
        if self.curves is None:
            return None
        low, high = self.curves
        if self.scheme == "apart":
            rate = closed.exact(self.rate)
            return Curve(lambda e: rate * low(e), lambda e: rate * high(e), "closed")
        if self.scheme:
            low, high = closed.sampled(low, self.rate, 1), closed.sampled(high, self.rate, -1)
        return Curve(low, high, "closed")


def expanded(use: Any) -> list[Any]:
    """The independent parts of a release: coordinates, or choices of those that are left."""
    facts = use.facts
    if use.enumerated:
        return [use]
    if use.kind in ("laplace-vector", "gaussian-vector"):
        kind = use.kind.removesuffix("-vector")
        name = "scale" if kind == "laplace" else "sigma"
        both = zip(facts["scales"], facts["sensitivities"], strict=True)
        return [replace(use, kind=kind, facts={name: b}, shift=moved) for b, moved in both]
    if use.kind == "stable-histogram":
        keys, each = facts["key_sensitivity"], {**facts, "key_sensitivity": 1}
        return [replace(use, facts=each, count=use.count * keys)]
    if use.kind == "top-k":
        alone = {"epsilon": facts["epsilon"]}
        first = replace(use, kind="exponential", facts=alone)
        more = use.count * (facts["k"] - 1)
        return [first, *([replace(first, kind="further-choice", count=more)] if more else [])]
    return [use]


def cost(use: Any, case: Any) -> Cost | None:
    """Of one use; None where the oracle has no law for it."""
    if use.enumerated:
        found = neighbours.facts_of(use, case.relation)
        return None if found is None else Cost(**found)
    rate = use.rate if use.subset is None else use.subset[0] / use.subset[1]
    scheme = ""
    if rate is not None and rate < 1:
        summed = use.kind in SUMS + STREAMS
        scheme = "poisson" if case.relation == "add-remove" or summed else "apart"
        scheme = "subset" if use.subset is not None else scheme
    turns = 1
    if use.drawn is not None and use.drawn[0] == "turns":  # the columns have no row in common
        turns = use.facts["participations"]
        use = replace(use, facts={**use.facts, "participations": 1})
    shifts = _shifts(use, case)
    if shifts is None:
        return None
    made = BASES[use.kind](use.facts, shifts)
    if made is None:
        return None
    if use.drawn is not None:
        if use.drawn[0] not in drawn.EXACT or (use.drawn[0] == "again" and use.drawn[-1] == 1):
            made["upper"] = None
        epochs = use.drawn[1] if use.drawn[0] == "allocated" else 1
        made["curves"] = None
        return Cost(count=use.count // epochs * turns, scheme="drawn", drawn=use.drawn, **made)
    return Cost(count=use.count, scheme=scheme, rate=1.0 if rate is None else rate, **made)


def _shifts(use: Any, case: Any) -> tuple[Fraction, Fraction] | None:
    """The distance of neighbouring values, at least and at most; of a Gaussian stream squared."""
    size = case.size
    shift = Fraction(use.shift)
    if case.moved is not None:
        # Within a radius a value may move at once; beyond it in as many steps.
        shift *= math.ceil(Fraction(case.moved) / Fraction(case.radius))
    low = high = shift * size
    radius = case.radius if case.moved is None else case.moved
    clip = use.facts.get("clip")
    if use.local and clip is not None and case.relation == "metric-ball":
        # The owner's own value is released: it moves as far as the ball and the clip let it.
        low = min(Fraction(radius), Fraction(clip[1]) - Fraction(clip[0]))
        high = max(low, high)
    if use.kind in STREAMS:
        norm = 2 if use.kind == "continual-gaussian" else 1
        found = factors(use.facts, norm, case.relation in ("replace-one", "metric-ball"))
        if found is None:
            return None
        alone = factors(use.facts, norm, moves=False) if case.relation == "metric-ball" else found
        least, most = alone[0], found[1]  # type: ignore[index]
        if norm == 2:
            return low * low * least, high * high * most
        low, high = low * least, high * most
    return low, high
