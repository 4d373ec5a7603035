"""All pairs of neighbours among tiny data sets, each with the exact law of what is released.

Records are whole numbers within a bound. Released is their sum, over those that are sampled, with
discrete Laplace noise, or a choice among candidates that records vote for.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tests.benchmarks.soundness.oracle.closed import Curve
from tests.benchmarks.soundness.oracle.laws import Floats

Records = tuple[int, ...]


def curve(case: Any) -> Curve:
    """The worst of all pairs; nothing is said from above."""
    use = case.uses[0]
    pairs = []
    for one, other in _neighbours(case):
        p, q = (_law(use, case.dataset, records) for records in (one, other))
        for _ in range(use.count - 1):
            p, q = (np.multiply.outer(each, _law(use, case.dataset, records)).ravel()
                    for each, records in ((p, one), (q, other)))  # fmt: skip
        pairs.append((p, q))

    def lower(epsilon: float) -> float:
        odds = math.exp(min(epsilon, 700.0))
        return (
            max(float(np.maximum(p - odds * q, 0.0).sum()) for p, q in pairs) * (1 - 1e-9) - 1e-13
        )

    return Curve(lower, lambda e: 1.0, "data sets")


def _neighbours(case: Any) -> Iterator[tuple[Records, Records]]:
    """Both orders of every pair that differs in as many units as are protected together."""
    bound, size = case.dataset["bound"], case.size
    values = range(-bound, bound + 1)
    rest = case.dataset["records"] - size
    for others in itertools.combinations_with_replacement(values, rest):
        for own in itertools.product(values, repeat=size):
            for changed in _changes(case, own, values):
                yield others + own, others + changed
                yield others + changed, others + own


def _changes(case: Any, own: Records, values: range) -> Iterator[Records]:
    """What the units of a group may become."""
    if case.relation == "add-remove":
        yield ()
    elif case.relation == "zero-out":
        yield (0,) * len(own)
    else:
        far = case.radius if case.relation == "metric-ball" else math.inf
        near = [[v for v in values if abs(v - x) <= far] for x in own]
        yield from itertools.product(*near)


def _law(use: Any, dataset: Mapping[str, Any], records: Records) -> Floats:
    """The masses of all outputs but those far out."""
    if use.kind == "exponential":
        scores = np.array([sum(v == c for v in records) for c in (0, 1, -1)])
        weights = np.exp(use.facts["epsilon"] * (scores - scores.max()) / 2)
        return np.asarray(weights / weights.sum())
    scale, reach = use.facts["scale"], dataset["reach"]
    outputs = np.arange(-reach, reach + 1)
    total = np.zeros(outputs.size)
    for number, share in _sums(use, records).items():
        total += share * np.exp(-np.abs(outputs - number) / scale) * math.tanh(0.5 / scale)
    return total


def _sums(use: Any, records: Records) -> dict[int, float]:
    """The probability of every sum of those that take part."""
    found: dict[int, float] = {}
    if use.subset is not None:
        samples = list(itertools.combinations(records, use.subset[0]))
        for sample in samples:
            found[sum(sample)] = found.get(sum(sample), 0.0) + 1 / len(samples)
        return found
    rate = 1.0 if use.rate is None else use.rate
    for taken in itertools.product((0, 1), repeat=len(records)):
        share = math.prod(rate if t else 1 - rate for t in taken)
        number = sum(v for v, t in zip(records, taken, strict=True) if t)
        found[number] = found.get(number, 0.0) + share
    return found
