"""Noise that comes more than once: few seeds, and entries that share their noise."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpaudit.base.finding_table import FindingTable
from dpaudit.certificate import Finding
from dpaudit.mechanisms.pairs import Floats

FALSE_COINCIDENCE = 1e-3
FEWEST = 8
"""Outputs that occur once, from which on others may be atoms beside them."""

_found = FindingTable(__name__)


def repeats(outputs: Floats, others: Floats | None = None) -> list[Finding]:
    """Equal releases in independent runs on one value, and noise shared between entries.

    Two releases with a resolution of r (their grid, or the spacing of floats of their size) and a
    spread of s coincide with probability of about r/s at most. Equal releases are reported where
    this makes a single coincidence among all runs less likely than 1e-3; coarser outputs, such as
    whole numbers, are left alone. So are outputs that are made of atoms: numbers of at most six
    digits, as people write them, the two most frequent ones where no other repeats (bounds of a
    clipping), and what other data show as well; and entries whose difference other data have too.

    Args:
        outputs: of independent runs on the same data, shape (n,) or (n, d); of fewer than 2 runs
            nothing is said.
        others: outputs on other data.
    """
    flat = outputs.reshape(len(outputs), -1)
    known = flat[:0] if others is None else others.reshape(len(others), -1)
    atoms = [_atoms(*columns) for columns in zip(flat.T, known.T, strict=True)]
    flat = flat[~np.all(atoms, axis=0)]
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
    return findings + (_shared(flat, known) if flat.shape[1] > 1 else [])


def _atoms(entries: Floats, others: Floats) -> NDArray[np.bool_]:
    """Tell which entries of a column are no noise of their own."""
    values, counts = np.unique(entries, return_counts=True)
    written = values == [float(f"{value:.6g}") for value in values]
    bounds = len(values) > FEWEST and (np.sort(counts)[:-2] == 1).all()
    return np.isin(entries, values[written | (bounds & (counts > 1)) | np.isin(values, others)])


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


def _shared(flat: Floats, known: Floats) -> list[Finding]:
    """Entries whose change between any two runs is the same, and whose difference tells of data."""
    width = 8 * np.finfo(float).eps * float(np.abs(flat).max())
    other = flat[np.flatnonzero((flat != flat[0]).any(axis=1))[0]]
    order = np.argsort(other - flat[0])
    for one, two in pairwise(order):
        apart = flat[:, one] - flat[:, two]
        varies = np.abs(flat[:, one] - flat[0, one]).max() > width
        same = len(known) and np.abs(known[:, one] - known[:, two] - apart[0]).max() <= width
        if varies and np.ptp(apart) <= width and not same:
            first, second = sorted((int(one), int(two)))
            return [_found("noise-reuse", one=first, two=second)]
    return []
