"""Float findings: claims that hold for real numbers and fail for the samples.

They are a verdict class of their own. A claim with such a finding is not *refuted* as mathematics;
its code leaks through the bits of floating point numbers or the state of a generator. Every test
states its false-alarm rate, for code without that leak.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.auditing.evidence.joint import joint_p_value
from dpaudit.auditing.evidence.types import PairCounts
from dpaudit.auditing.noise.repeats import repeats
from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.base.finding_table import FindingTable
from dpaudit.certificate import Finding
from dpaudit.mechanisms.pairs import Floats

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
