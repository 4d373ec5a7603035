"""Exact tests of drawn noise against a declared law.

A mechanism turns every draw into its *tail*, the declared probability of noise at least as large,
and its sign (:class:`~dpaudit.mechanisms.Tails`). Under the declared law tails are independent and
uniform, so that

* the sum of −ln tail is Gamma(n, 1) (for Gaussian noise, the sum of squares is χ² with n degrees of
  freedom): the most powerful test of a wrong scale, and
* the signed tails follow the uniform law, which Kolmogorov's test checks for any other difference.

Both are exact at every n; the smaller p-value is doubled for there being two.

Conformance: is the noise that was drawn the noise that was declared?

This is not the question whether the claim holds. A mechanism with other noise than declared may
still satisfy its claim, and one with the declared noise may break it. So a failure here is a
finding of its own, *not the declared mechanism*, with an error rate of its own: the tests are
exact, and the rate is shared over all invocations (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.auditing.replaying.recording import RecordingNoise, Runnable, Step, whole_streams
from dpaudit.base import validate
from dpaudit.base.errors import UnsupportedError
from dpaudit.base.finding_table import FindingTable
from dpaudit.certificate import Finding
from dpaudit.ledger import Ledger
from dpaudit.mechanisms import AdditiveNoise, Mechanism, Tails


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
        observed = f"; drawn is about {one.ratio:.3g} times the declared spread"
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
