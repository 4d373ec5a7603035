"""Exact tests of drawn noise against its declared law, and the findings that follow.

A mechanism turns every draw into its *tail*, the declared probability of noise at least as large,
and its sign (:class:`~dpaudit.mechanisms.Tails`). Under the declared law tails are independent and
uniform, so that

* the sum of −ln tail is Gamma(n, 1) (for Gaussian noise, the sum of squares is χ² with n degrees of
  freedom): the most powerful test of a wrong scale, and
* the signed tails follow the uniform law, which Kolmogorov's test checks for any other difference.

Both are exact at every n; the smaller p-value is doubled for there being two.

*Conformance* is not the question whether the claim holds. A mechanism with other noise than
declared may still satisfy its claim, and one with the declared noise may break it. So a failure
here is a finding of its own, *not the declared mechanism*, with an error rate of its own: the tests
are exact, and the rate is shared over all invocations (Bonferroni).

*Float findings* are of claims that hold for real numbers and fail for the samples, and of noise
that comes more than once: few seeds, and entries that share their noise. They are a verdict class
of their own. A claim with such a finding is not *refuted* as mathematics; its code leaks through
the bits of floating point numbers or the state of a generator. Every test states its false-alarm
rate, for code without that leak.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.auditing.evidence.events import PairCounts
from dpaudit.auditing.evidence.two_counts import joint_p_value
from dpaudit.auditing.replaying.recording import RecordingNoise, Runnable, Step, whole_streams
from dpaudit.base import validate
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.base.finding_table import FindingTable
from dpaudit.certificate import Finding
from dpaudit.ledger import Ledger
from dpaudit.mechanisms import AdditiveNoise, Mechanism, Tails
from dpaudit.mechanisms.pairs import Floats


def p_value(tails: Tails) -> float:
    """The smaller of both p-values, doubled."""
    return min(1.0, 2 * min(scale_p_value(tails), shape_p_value(tails)))


def scale_p_value(tails: Tails) -> float:
    """Two-sided exact p-value of the scale."""
    from scipy.stats import chi2, gamma

    if tails.normal is not None:
        freedom, total = tails.normal.size, float(np.square(tails.normal).sum())
        sides = chi2.cdf(total, freedom), chi2.sf(total, freedom)
    else:
        with np.errstate(divide="ignore"):
            total = float(-np.log(tails.tails).sum())
        sides = gamma.cdf(total, tails.tails.size), gamma.sf(total, tails.tails.size)
    return min(1.0, 2 * float(min(sides)))


def shape_p_value(tails: Tails) -> float:
    """Kolmogorov's test of the signed tails."""
    from scipy.stats import kstest

    signed = np.where(tails.positive, 1 - tails.tails / 2, tails.tails / 2)
    return float(kstest(signed, "uniform").pvalue)


def scale_ratio(tails: Tails) -> float | None:
    """Estimated scale over the declared one; None where a law has no scale."""
    if tails.normal is not None:
        return math.sqrt(float(np.square(tails.normal).mean()))
    return float(tails.sizes.mean()) if tails.sizes.size else None


_found = FindingTable(__name__)

ERROR_RATE = 1e-3
REUSE_SHARE = 0.1
"""Share of the error rate that goes to the search for noise that was used twice."""
_EQUAL = 1e-12


@dataclass(frozen=True)
class Conformance:
    """The noise of one invocation.

    Attributes:
        at: its label.
        source: a place in the code that asked for it.
        draws: how many draws were tested.
        p_value: exact, for this invocation alone.
        ratio: estimated scale over the declared one, where the law has a scale.
    """

    at: str
    source: str
    draws: int
    p_value: float
    ratio: float | None


@dataclass(frozen=True)
class ConformanceReport:
    """The findings on draws, and what could be tested.

    Attributes:
        tested: one entry an invocation that was tested.
        untested: labels of invocations that declare no law that could be.
        findings: noise that is not as declared, or used twice.
    """

    tested: tuple[Conformance, ...]
    untested: tuple[str, ...]
    findings: tuple[Finding, ...]

    @property
    def clean(self) -> bool:
        """Whether nothing was found."""
        return not self.findings


def conformance(
    algorithm: Runnable,
    data: Any,
    *,
    error_rate: float = ERROR_RATE,
    runs: int = 100,
    seed: int = 0,
) -> ConformanceReport:
    """Run an algorithm several times and test the noise of every invocation of its plan.

    For one invocation 20 draws suffice for a factor of 2 in the scale at 5 %; with the error rate
    shared over 20 invocations about 100 do.

    Args:
        algorithm: a subject, or a :class:`~dpaudit.auditing.replaying.recording.Routine`.
        data: any test data.
        error_rate: probability of a finding if all noise is as declared.
        runs: how often to run it.
        seed: of all runs.

    Raises:
        PlanMismatchError: if a run is not what the plan declares.
        InputError: if a number is out of range.
    """
    runs = validate.integer_at_least(1, runs=runs)
    seed = validate.integer_at_least(0, seed=seed)
    error_rate = validate.open_fraction(error_rate=error_rate)
    plan = algorithm.plan()
    steps: list[list[Step]] = []
    for child in np.random.SeedSequence(seed).spawn(runs):
        noise, own = (np.random.default_rng(part) for part in child.spawn(2))
        recording = RecordingNoise(noise)
        algorithm.run(data, Ledger(plan, noise=recording), own)
        steps.append(recording.steps)
    return judged(steps, error_rate=error_rate, seed=seed)


def judged(
    runs: Sequence[Sequence[Step]], *, error_rate: float = ERROR_RATE, seed: int = 0
) -> ConformanceReport:
    """The same of recorded releases.

    Args:
        runs: what each run released.
        error_rate: as for :func:`conformance`.
        seed: breaks ties of discrete laws.
    """
    by_label: dict[str, list[Step]] = {}
    for step in (step for run in runs for step in whole_streams(run)):
        by_label.setdefault(step.invocation.at, []).append(step)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2**31,)))
    tested, untested, laws = [], [], {}
    for at, found in by_label.items():
        laws[at] = found[0].invocation.mechanism
        try:
            drawn = Tails.joined([laws[at].tails(s.released, s.value, rng) for s in found])
        except UnsupportedError:
            drawn = None
        if drawn is None or not drawn.tails.size:  # as of a histogram that has no key
            untested.append(at)
            continue
        shown = p_value(drawn), scale_ratio(drawn)
        tested.append(Conformance(at, found[0].source, drawn.tails.size, *shown))
    share = (1 - REUSE_SHARE) * error_rate / max(1, len(tested))
    findings = [_finding(one, laws[one.at], share) for one in tested if one.p_value <= share]
    findings += reused([_drawn(s) for run in runs for s in run], REUSE_SHARE * error_rate)
    return ConformanceReport(tuple(tested), tuple(untested), tuple(findings))


def _finding(one: Conformance, mechanism: Mechanism, share: float) -> Finding:
    scale, observed = mechanism.noise_scale, ""
    if one.ratio is not None:
        observed = (
            f"; the spread of the drawn noise is about {one.ratio:.3g} times the declared one"
        )
        observed += "" if scale is None else f" (scale {one.ratio * scale:.3g})"
    place = f" ({one.source})" if one.source else ""
    facts = {"p_value": one.p_value, "draws": one.draws, "share": share, "declared": mechanism}
    said = {"label": one.at, "place": place, "observed": observed}
    return _found("not-the-declared-noise", one.at, **said, **facts)


@dataclass(frozen=True)
class Drawn:
    """One release, for a look at its noise.

    Attributes:
        mechanism: that drew.
        value: before noise.
        released: what came out.
        at: label.
        place: where it was asked for.
        single: whether its numbers may be 32-bit floats.
    """

    mechanism: Mechanism
    value: ArrayLike
    released: Any
    at: str
    place: str
    single: bool = False


def _drawn(step: Step) -> Drawn:
    own = step.invocation
    return Drawn(own.mechanism, step.value, step.released, own.at, step.place, step.single)


def reused(steps: Sequence[Drawn], error: float = REUSE_SHARE * ERROR_RATE) -> list[Finding]:
    """Two releases whose continuous noise is equal, in units of its scale.

    The sizes of two independent draws lie within t of each other with probability at most 1.2 t
    (twice t times the integral of the squared density), so n draws hold such a pair with
    probability at most n² t.

    Args:
        steps: all releases of some runs; those whose noise is no continuous one are left alone.
        error: probability of a finding where no noise is reused; what is too coarse is left alone.
    """
    draws: list[tuple[float, Drawn]] = []
    width = _EQUAL
    for step in steps:
        mechanism = step.mechanism
        if not isinstance(mechanism, AdditiveNoise) or not mechanism.numpy_law:
            continue
        scale = mechanism.noise_scale or 1.0
        before, after = (np.asarray(each, dtype=np.float64) for each in (step.value, step.released))
        precision = np.finfo(np.float32 if step.single else np.float64).eps
        largest = max(np.abs(each).max(initial=0.0) for each in (before, after))
        width = max(width, 8 * float(precision) * float(largest) / scale)
        draws += [(abs(float(z)), step) for z in np.ravel((after - before) / scale)]
    if len(draws) ** 2 * width > error or len(draws) < 2:
        return []
    draws.sort(key=lambda draw: draw[0])
    sizes = np.array([size for size, _ in draws])
    twice = np.flatnonzero(np.diff(sizes) <= width)
    if twice.size == 0:
        return []
    one, two = draws[twice[0]][1], draws[twice[0] + 1][1]
    facts = {"one": one.place, "two": two.place, "repeats": twice.size, "draws": len(draws)}
    return [_found("noise-reused", two.at, **facts)]


FALSE_COINCIDENCE = 1e-3
FEWEST = 8
"""Outputs that occur once, from which on others may be atoms beside them."""


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
            return _found("float-lsb", direction=names, **facts)
    return None
