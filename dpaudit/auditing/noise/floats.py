"""Noise that comes more than once: few seeds, and entries that share their noise.

Float findings: claims that hold for real numbers and fail for the samples.

They are a verdict class of their own. A claim with such a finding is not *refuted* as mathematics;
its code leaks through the bits of floating point numbers or the state of a generator. Every test
states its false-alarm rate, for code without that leak.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.auditing.evidence.joint import joint_p_value
from dpaudit.auditing.evidence.types import PairCounts
from dpaudit.base import validate
from dpaudit.base.errors import InputError
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


Release = Callable[[Any, int, np.random.Generator], ArrayLike]

FIRST_LOOK = 100
_UNIFORM_BITS = 53


@dataclass(frozen=True)
class FloatReport:
    """The findings on samples.

    Attributes:
        findings: leaks, worst first; empty if none.
        draws: draws on each side.
        counts: how often the least-significant-bit event occurred, on each side.
    """

    findings: tuple[Finding, ...]
    draws: int
    counts: tuple[int, int]


def lsb_event(outputs: ArrayLike) -> NDArray[np.bool_]:
    """Outputs with finer bits than a sum with ±1 can have.

    A float of magnitude at least 1/2, where noise must be to bring 1 near 0, is a multiple of the
    spacing u = 2^-53 of floats just below 1, and so is its sum with 1. So an output with
    ``|y| < 1/2`` and ``y/u`` not an integer can come from 0 + noise and never from 1 + noise
    (Mironov 2012 found the leak; this event is the simplest that shows it).
    """
    values = np.asarray(outputs, dtype=np.float64)
    steps = values / 2.0**-_UNIFORM_BITS
    event: NDArray[np.bool_] = (np.abs(values) < 0.5) & (steps != np.floor(steps))
    return event


def float_findings(
    release: Release,
    *,
    epsilon: float,
    delta: float = 0.0,
    draws: int = 10_000,
    seed: int = 0,
    error_rate: float = 0.01,
) -> FloatReport:
    """Look for the least-significant-bit event and for repeated noise, in growing batches.

    The data are 0 and 1, which must be neighbours. The event is tested by the exact
    joint test of ``p ≤ e^ε q + δ``, in both directions, after 100 draws a side and each doubling;
    the looks share the error rate as 1/2, 1/4, …, and stop at the first finding.

    Args:
        release: ``release(value, size, rng)`` of a number, shape (size,).
        epsilon: claimed ε of one release.
        delta: claimed δ.
        draws: the most on each side.
        seed: of the draws.
        error_rate: probability of a finding if the samples satisfy the claim, at most.

    Raises:
        InputError: if a number is out of range or the outputs are no numbers.

    Example:
        >>> float_findings(lambda x, n, rng: x + rng.laplace(size=n), epsilon=1.0).draws
        100
    """
    draws = validate.integer_at_least(1, draws=draws)
    error_rate = validate.open_fraction(error_rate=error_rate)
    children = np.random.SeedSequence(seed).spawn(2)
    rngs = [np.random.default_rng(child) for child in children]
    hits, done, batch = [0, 0], 0, min(FIRST_LOOK, draws)
    share = error_rate / 2
    sample = others = np.empty(0)
    while batch > 0:
        outputs = [
            _numbers(release(value, batch, rng), batch)
            for value, rng in zip((0.0, 1.0), rngs, strict=True)
        ]
        done += batch
        for side, values in enumerate(outputs):
            hits[side] += int(lsb_event(values).sum())
        if done == batch:
            sample, others = outputs
        found = _lsb_finding((hits[0], hits[1]), done, epsilon, delta, share / 2)
        batch, share = 0 if found else min(done, draws - done), share / 2
    findings = ([] if found is None else [found]) + repeats(sample, others)
    return FloatReport(tuple(findings), done, (hits[0], hits[1]))


def _numbers(raw: ArrayLike, size: int) -> Floats:
    outputs = np.asarray(raw, dtype=np.float64)
    if outputs.shape != (size,):
        raise InputError(f"release gave shape {outputs.shape}; it must be ({size},).")
    return outputs


def _lsb_finding(
    hits: tuple[int, int], draws: int, epsilon: float, delta: float, share: float
) -> Finding | None:
    for one, two, names in ((0, 1, "x to x'"), (1, 0, "x' to x")):
        counts = PairCounts(hits[one], draws, hits[two], draws)
        p_value = joint_p_value(counts, epsilon, delta, nuisance_error=min(1e-6, share / 10))
        if p_value <= share:
            facts = {"hits": hits[one], "others": hits[two], "draws": draws, "p_value": p_value}
            return FindingTable(__name__)("float-lsb", direction=names, **facts)
    return None
