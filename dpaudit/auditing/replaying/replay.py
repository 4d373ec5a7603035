"""Replay: both neighbours through the code with the same releases, release by release.

The first run is recorded. The second, on the neighbour, uses the same generators, and every release
gives out *what the first run released*. So all that differs between the two runs is due to the
private data alone, and must be no more than the plan declares: pre-noise values that are at most
the sensitivity apart, for at most ``count`` releases of one invocation, in the same control flow.

A replay is deterministic: what it finds is a fact about these two data sets, with no error rate.
What it does not find may still be wrong for other data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.auditing.replaying.checks import groups_overlap, too_far, too_often
from dpaudit.auditing.replaying.recording import (
    DivergedError,
    RecordingNoise,
    ReplayingNoise,
    Routine,
    Runnable,
    Step,
)
from dpaudit.certificate import Finding, Severity
from dpaudit.errors import PlanMismatchError
from dpaudit.ledger import Ledger

__all__ = ["Comparison", "ReplayReport", "Routine", "replay"]


@dataclass(frozen=True)
class Comparison:
    """One release in both runs.

    Attributes:
        at: label of the invocation.
        unit: whom it belongs to; None for all.
        source: place in the code.
        declared: the declared sensitivity.
        observed: distance of the pre-noise values, in the mechanism's norm.
    """

    at: str
    unit: str | None
    source: str
    declared: float
    observed: float


@dataclass(frozen=True)
class ReplayReport:
    """What a replay showed.

    Attributes:
        comparisons: every release up to the first divergence of control flow.
        findings: what does not hold, in the order of the code.
        releases: releases of the first run.
    """

    comparisons: tuple[Comparison, ...]
    findings: tuple[Finding, ...]
    releases: int

    @property
    def clean(self) -> bool:
        """Whether nothing was found."""
        return not self.findings


def replay(algorithm: Runnable, x: Any, x_prime: Any, seed: int = 0) -> ReplayReport:
    """Run an algorithm on two neighbours with the same noise, and compare what it released.

    Args:
        algorithm: a subject, or a :class:`Routine`. It must not change the data it is given.
        x: one data set.
        x_prime: its neighbour under the plan's relation.
        seed: of the noise and of the algorithm's own randomness.

    Raises:
        PlanMismatchError: if the run on x itself is not what the plan declares.

    Example:
        >>> from dpaudit import Laplace, Plan, Invocation, PrivacyUnit, AddRemove, TrustModel
        >>> noise = Laplace(1.0)
        >>> plan = Plan.of(Invocation(noise, 1.0, PrivacyUnit("row"), AddRemove(),
        ...                           TrustModel.CENTRAL, at="total"))
        >>> double = Routine(plan, lambda rows, ledger, rng: ledger.release(noise, 2 * sum(rows)))
        >>> replay(double, [1.0, 1.0], [1.0]).findings[0].rule
        'sensitivity-understated'
    """
    first = _run(algorithm, x, RecordingNoise(_generators(seed)[0]), seed)
    if first.refused is not None:
        raise PlanMismatchError(first.refused)
    again = _run(algorithm, x, _replaying(seed, first), seed)
    unstable = _unstable(first, again)
    if unstable is not None:
        return ReplayReport((), (unstable,), len(first.steps))
    second = _run(algorithm, x_prime, _replaying(seed, first), seed)
    compared = list(zip(first.steps, second.common(first), strict=False))
    findings = [
        *too_far(compared),
        *too_often(compared),
        *groups_overlap(compared),
        *_diverged(first, second),
        *_leaks(first, second),
    ]
    shown = tuple(_comparison(*pair) for pair in compared)
    return ReplayReport(shown, tuple(findings), len(first.steps))


def _generators(seed: int) -> list[np.random.Generator]:
    """That of the ledger and that of the algorithm."""
    return [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(2)]


def _replaying(seed: int, first: _Run) -> ReplayingNoise:
    return ReplayingNoise(_generators(seed)[0], first.steps)


@dataclass(frozen=True)
class _Run:
    """One run, as far as it went."""

    steps: tuple[Step, ...]
    result: Any
    finished: bool
    randomness: Any
    refused: str | None = None

    def common(self, first: _Run) -> tuple[Step, ...]:
        """The steps before the divergence."""
        whole = len(self.steps)
        if whole and (
            whole > len(first.steps) or not self.steps[-1].follows(first.steps[whole - 1])
        ):
            return self.steps[:-1]
        return self.steps


def _run(algorithm: Runnable, data: Any, noise: RecordingNoise, seed: int) -> _Run:
    ledger = Ledger(algorithm.plan(), noise=noise)
    rng = _generators(seed)[1]
    result, finished, refused = None, False, None
    try:
        result = algorithm.run(data, ledger, rng)
        finished = True
    except DivergedError:
        pass
    except PlanMismatchError as error:
        refused = str(error)
    return _Run(tuple(noise.steps), result, finished, rng.bit_generator.state, refused)


def _unstable(first: _Run, again: _Run) -> Finding | None:
    """Two runs on the same data with the same seeds must be the same."""
    for one, two in zip(first.steps, again.steps, strict=False):
        if not one.follows(two) or not np.array_equal(one.value, two.value):
            return Finding(
                "hidden-randomness",
                Severity.ERROR,
                f"With one seed and the same releases, two runs on the same data differ at "
                f"{one.place}: the code draws randomness from elsewhere, so it cannot be replayed.",
                "Draw all randomness from the generator and the ledger that run is given.",
                one.invocation.at,
            )
    return None


def _comparison(one: Step, two: Step) -> Comparison:
    call = one.invocation
    observed = call.mechanism.distance(one.value, two.value)
    return Comparison(call.at, one.unit, one.source, call.sensitivity, observed)


def _diverged(first: _Run, second: _Run) -> list[Finding]:
    """A different sequence of releases, though all earlier releases were the same."""
    common = len(second.common(first))
    if second.finished and common == len(first.steps):
        return []
    expected = first.steps[common].place if common < len(first.steps) else "the end of the run"
    if len(second.steps) > common:
        instead = second.steps[common].place
    elif second.refused is not None:
        instead = f"a release that the plan refuses: {second.refused}"
    else:
        instead = "the end of the run"
    at = first.steps[min(common, len(first.steps) - 1)].invocation.at if first.steps else ""
    return [
        Finding(
            "private-control-flow",
            Severity.ERROR,
            f"After {common} equal releases the run on x goes on to {expected}, the run on its "
            f"neighbour to {instead}: a branch depends on private data.",
            "Branch on released values only.",
            at,
        )
    ]


def _leaks(first: _Run, second: _Run) -> list[Finding]:
    """A result, or a use of randomness, that equal releases do not explain."""
    if not (first.finished and second.finished):
        return []
    if not _same(_plain(first.result), _plain(second.result)):
        return [
            Finding(
                "result-not-from-releases",
                Severity.WARNING,
                "With equal releases and equal seeds the results of the two runs differ: something "
                "in the result depends on private data directly.",
                "Compute results from releases, or keep them from whoever may not see the data.",
            )
        ]
    if not _same(first.randomness, second.randomness):
        return [
            Finding(
                "private-use-of-randomness",
                Severity.WARNING,
                "With equal releases the two runs drew different amounts of their own randomness: "
                "how much is drawn depends on private data.",
                "Draw a fixed number of times, or branch on released values only.",
            )
        ]
    return []


def _plain(result: Any) -> Any:
    return result.to_dict() if hasattr(result, "to_dict") else result


def _same(one: Any, two: Any) -> bool:
    """Equality of nested results; arrays entry by entry, NaN equal to NaN."""
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(_same(one[key], two[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(two, list | tuple):
        return len(one) == len(two) and all(map(_same, one, two))
    try:
        return bool(np.array_equal(one, two, equal_nan=True))
    except TypeError:
        return bool(one == two)
