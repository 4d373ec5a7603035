"""Noise that comes more than once: few seeds, and entries that share their noise."""

from __future__ import annotations

import numpy as np

from dpaudit.certificate import Finding
from dpaudit.finding_table import FindingTable
from dpaudit.mechanisms.pairs import Floats

FALSE_COINCIDENCE = 1e-3

_found = FindingTable(__name__)


def repeats(outputs: Floats) -> list[Finding]:
    """Equal releases in independent runs on one value, and noise shared between entries.

    Two releases with a resolution of r (their grid, or the spacing of floats of their size) and a
    spread of s coincide with probability of about r/s at most. Equal releases are reported where
    this makes a single coincidence among all runs less likely than 1e-3; coarser outputs, such as
    whole numbers, are left alone.

    Args:
        outputs: of independent runs on the same data, shape (n,) or (n, d); of fewer than 2 runs
            nothing is said.
    """
    flat = outputs.reshape(len(outputs), -1)
    if len(flat) < 2 or not (flat != np.floor(flat)).all(axis=1).any():
        return []
    distinct = len(np.unique(flat, axis=0))
    if distinct == 1:
        return [_found("seed-reuse", runs=len(flat), distinct=1, guess="the seed is fixed")]
    if flat.size**2 * _coincidence(flat) > FALSE_COINCIDENCE:
        return []
    findings = []
    if distinct < len(flat):
        seeds = len(flat) ** 2 / (2 * (len(flat) - distinct))
        guess = f"about {seeds:.2g} seeds are in use"
        findings.append(_found("seed-reuse", runs=len(flat), distinct=distinct, guess=guess))
    return findings + (_shared(flat) if flat.shape[1] > 1 else [])


def _coincidence(flat: Floats) -> float:
    """About the probability that two independent continuous entries are equal, at most."""
    spread = np.subtract(*np.percentile(flat, [75, 25], axis=0))
    held = spread > 0
    if not held.any():
        return 0.0
    sample = flat[:256, held]
    steps = (2.0**power for power in range(0, -64, -1))
    grid = next(
        (step for step in steps if (sample / step == np.floor(sample / step)).all()), 2.0**-64
    )
    resolution = np.maximum(np.spacing(np.abs(flat[:, held]).max(axis=0)), grid)
    return float((resolution / spread[held]).max())


def _shared(flat: Floats) -> list[Finding]:
    """Entries whose change between two different runs is the same."""
    first = flat[0]
    other = flat[np.flatnonzero((flat != first).any(axis=1))[0]]
    change = other - first
    order = np.argsort(change)
    width = 8 * np.finfo(float).eps * float(np.abs(flat).max())
    close = np.flatnonzero(np.diff(change[order]) <= width)
    close = close[np.abs(change[order][close]) > width]
    if close.size == 0:
        return []
    one, two = sorted((int(order[close[0]]), int(order[close[0] + 1])))
    return [_found("noise-reuse", one=one, two=two)]
