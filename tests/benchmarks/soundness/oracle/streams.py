"""How far continual releases move: matrices from their definitions, patterns one by one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from tests.benchmarks.soundness.oracle.laws import Floats

_PATTERNS = 4000


@lru_cache(maxsize=64)
def matrix(kind: str, fields: tuple[tuple[str, Any], ...]) -> Floats:
    """C of a factorisation, a row for each noisy node."""
    given = dict(fields)
    if kind == "own-matrix":
        return np.array([[*row, *[0.0] * (len(given["rows"]) - len(row))] for row in given["rows"]])
    steps = given["steps"]
    if kind in ("binary-tree", "honaker-tree"):
        return _tree(steps, given.get("release_root", False), used_only=kind == "binary-tree")
    if kind in ("square-root-toeplitz", "banded-toeplitz"):
        column = np.array([math.comb(2 * k, k) / 4**k for k in range(steps)])
        column[given.get("bands", steps) :] = 0.0
    elif kind == "own-toeplitz":
        column = np.pad(given["coefficients"], (0, steps))[:steps]
        if given["inverse"]:
            square = [np.roll(column, n) * (np.arange(steps) >= n) for n in range(steps)]
            column = np.linalg.inv(np.array(square))[0]
    else:
        column = _rational(given["pole_rates"], given.get("zero_rates", ()), steps)
    return np.array(
        [[column[i - j] if i >= j else 0.0 for j in range(steps)] for i in range(steps)]
    )


def _tree(steps: int, root: bool, used_only: bool) -> Floats:
    """Dyadic intervals within the stream: those that a prefix needs, or all."""
    intervals: set[tuple[int, int]] = set()
    power = steps & (steps - 1) == 0 and steps > 1
    for end in range(1, steps + 1):
        start = 0
        for level in reversed(range(steps.bit_length())):
            if not end & (1 << level):
                continue
            if power and not root and end == steps:  # the two halves in place of the root
                intervals |= {(0, steps // 2), (steps // 2, steps)}
            else:
                intervals.add((start, start + (1 << level)))
            start += 1 << level
    if not used_only:
        top = max(high - low for low, high in intervals)
        size = 1
        while size <= top:
            intervals |= {(low, low + size) for low in range(0, steps - size + 1, size)}
            size *= 2
    rows = np.zeros((len(intervals), steps))
    for row, (low, high) in zip(rows, sorted(intervals), strict=True):
        row[low:high] = 1.0
    return rows


def _rational(poles: tuple[float, ...], zeros: tuple[float, ...], steps: int) -> Floats:
    """The series of ∏(1 − x/(1 + q))/∏(1 − x/(1 + p)), factor by factor."""
    column = np.zeros(steps)
    column[0] = 1.0
    for rate in zeros:
        column[1:] -= column[:-1].copy() / (1 + rate)
    for rate in poles:
        for k in range(1, steps):
            column[k] += column[k - 1] / (1 + rate)
    return column


def _patterns(steps: int, count: int, gap: int) -> Iterator[tuple[int, ...]]:
    """Every set of at most ``count`` steps that are ``gap`` apart, none that another one holds."""

    def further(found: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        first = found[-1] + gap if found else 0
        if len(found) == count or first >= steps:
            yield found
            return
        for step in range(first, steps):
            yield from further((*found, step))

    yield from further(())


def _cycles(steps: int, count: int, gap: int) -> Iterator[tuple[int, ...]]:
    """Every pattern of a fixed period, those that the end cuts off too."""
    for start in range(steps):
        yield tuple(range(start, min(steps, start + count * gap), gap))


def factors(facts: Mapping[str, Any], norm: int, moves: bool) -> tuple[Fraction, Fraction] | None:
    """How far the nodes move, at least and at most, squared in L2; None for too many patterns.

    Where a unit may be replaced by one that contributes at other steps, both patterns move: each
    of the two units contributes at most 1, in the same direction. Whole numbers are exact.
    """
    kind, own = facts["matrix"]
    encoder = matrix(kind, tuple(sorted(own.items())))
    steps = encoder.shape[1]
    gap = min(facts.get("min_separation", 1), steps)
    count = min(facts.get("participations", 1), 1 + (steps - 1) // gap)
    columns = []
    for pattern in (_cycles if facts.get("cyclic") else _patterns)(steps, count, gap):
        columns.append(encoder[:, list(pattern)].sum(axis=1))
        if len(columns) > _PATTERNS:
            return None
    sums = np.array(columns)
    alone = _largest(sums, norm)
    whole = bool((encoder == np.floor(encoder)).all())
    down, up = (1, 1) if whole else (1 - Fraction(2) ** -44, 1 + Fraction(2) ** -44)
    if not moves:
        return Fraction(alone) * down, Fraction(alone) * up
    both = max(_largest(sums - one, norm) for one in sums[:400])
    return Fraction(max(alone, both)) * down, Fraction(alone) * up * 2**norm


def _largest(sums: Floats, norm: int) -> float:
    return float((np.abs(sums) ** norm).sum(axis=1).max())
