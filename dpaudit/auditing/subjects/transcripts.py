"""The whole transcript of an algorithm as one release, and its likelihood ratio as the attack.

The ratio of a transcript is the sum over releases of the log ratio of that release given those
before. An algorithm that releases through a ledger need not say how its queries depend on the past:
run again on either neighbour with the releases *forced*, it computes them itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from dpaudit.accounting import privacy_curve
from dpaudit.auditing.distinguishing.engine import audit_release
from dpaudit.auditing.execution import Execution, ExecutionFields
from dpaudit.auditing.replaying.recording import (
    DivergedError,
    RecordingNoise,
    ReplayableDraw,
    Runnable,
    prepared,
    whole_streams,
)
from dpaudit.auditing.replaying.runs import own_copy
from dpaudit.certificate import AuditRecord
from dpaudit.errors import PlanMismatchError, UnsupportedError
from dpaudit.ledger import Entry, Ledger
from dpaudit.mechanisms.base import Released
from dpaudit.mechanisms.continual.release import PrefixSums
from dpaudit.plan import Plan
from dpaudit.project import AuditPair

__all__ = ["ReplayScore", "Transcripts", "audit_transcript", "refuse_samples"]

Floats = NDArray[np.float64]

FEWER_RUNS = Execution(runs=1_000, seed=0)


@dataclass(frozen=True)
class Transcripts:
    """Independent runs of an algorithm, each as a row: how much it released, and all that.

    Attributes:
        algorithm: what is run.
        seed: of its own randomness, which is public here: the same in every run.
        entries: room for at least so many.
    """

    algorithm: Runnable
    seed: int = 0
    entries: int = 0

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Floats:
        """``size`` transcripts, each after the number of its entries; shape (size, 1 + entries)."""
        plan, rows = self.algorithm.plan(), []
        for _ in range(size):
            noise = RecordingNoise(rng)
            ledger = Ledger(plan, noise=noise)
            self.algorithm.run(own_copy(data), ledger, np.random.default_rng(self.seed))
            rows.append(np.concatenate([np.ravel(step.released) for step in noise.steps]))
        longest = max(row.size for row in rows)
        whole = np.zeros((size, 1 + max(longest, self.entries)))
        for row, entries in zip(whole, rows, strict=True):
            row[0] = entries.size
            row[1 : 1 + entries.size] = entries
        return whole


class _ForcedNoise(RecordingNoise):
    """Releases what it is told."""

    def __init__(self, transcript: Floats) -> None:
        super().__init__(np.random.default_rng(0))
        self.left = transcript

    def _drawn(self, entry: Entry, value: NDArray[Any]) -> Released:
        released = self._next(prepared(entry.invocation.mechanism, value).shape)
        scalar: Released = released.item() if released.ndim == 0 else released
        return scalar

    def _summed(self, sums: PrefixSums, value: NDArray[Any]) -> Released:
        return self._next(np.shape(sums.add(value)))

    def _settle(self, external: ReplayableDraw) -> None:
        external.impose(self._next(external.released().shape))

    def _next(self, shape: tuple[int, ...]) -> Floats:
        """So many entries of the transcript."""
        size = math.prod(shape)
        if self.left.size < size:
            raise DivergedError
        released = self.left[:size].reshape(shape)
        self.left = self.left[size:]
        return released

    def log_density(self) -> float:
        """The declared log-density of all that was released, given what came before."""
        return sum(
            float(
                step.invocation.mechanism.log_density(np.asarray(step.released)[None], step.value)[
                    0
                ]
            )
            for step in whole_streams(self.steps)
        )


@dataclass(frozen=True)
class ReplayScore:
    """Log-likelihood ratio of transcripts, by running the algorithm with their releases.

    Attributes:
        algorithm: what was run.
        x: one neighbour.
        x_prime: the other.
        seed: of the algorithm's own randomness, as in :class:`Transcripts`.
    """

    algorithm: Runnable
    x: Any
    x_prime: Any
    seed: int = 0
    name: str = "log-likelihood ratio of the transcript"
    method: str = "white-box transcript likelihood ratio, by replay"

    def __call__(self, outputs: Floats) -> Floats:
        """One log ratio for each transcript."""
        return np.array([self._ratio(row[1 : 1 + int(row[0])]) for row in outputs])

    def _ratio(self, transcript: Floats) -> float:
        over, under = (self._log_density(data, transcript) for data in (self.x, self.x_prime))
        return 0.0 if over == under else over - under

    def _log_density(self, data: Any, transcript: Floats) -> float:
        """Declared log-density; minus infinity if the data lead to other releases."""
        noise = _ForcedNoise(transcript)
        ledger = Ledger(self.algorithm.plan(), noise=noise)
        try:
            self.algorithm.run(own_copy(data), ledger, np.random.default_rng(self.seed))
        except (DivergedError, PlanMismatchError):
            return -np.inf
        return -np.inf if noise.left.size else noise.log_density()


def audit_transcript(
    algorithm: Runnable,
    pair: AuditPair,
    *,
    epsilon: float,
    delta: float = 0.0,
    curve: bool = True,
    stop_early: bool = False,
    execution: Execution = FEWER_RUNS,
    **fields: Unpack[ExecutionFields],
) -> AuditRecord:
    """Attack the whole of an algorithm that releases through a ledger.

    Args:
        algorithm: a subject that can be run, or a
            :class:`~dpaudit.auditing.replaying.recording.Routine`.
        pair: the neighbours.
        epsilon: claimed ε of the whole.
        delta: claimed δ of the whole.
        curve: whether the plan's whole curve is tested, if the claim states as much.
        stop_early: stop at the refutation.
        execution: how many runs are drawn, and how; each costs three runs of the algorithm. The
            seed is that of the algorithm's own randomness as well.
        fields: fields of ``execution`` to replace, such as ``runs=2_000, seed=1``.

    Raises:
        InputError: as :func:`~dpaudit.auditing.distinguishing.engine.audit_release`.
        UnsupportedError: if a mechanism declares no density, or the plan samples units.
    """
    execution = execution.updated(fields)
    seed = execution.known_seed()
    plan = algorithm.plan()
    refuse_samples(plan)
    return audit_release(
        Transcripts(algorithm, seed, _most_entries(algorithm, pair, seed)),
        pair,
        epsilon=epsilon,
        delta=delta,
        curve=_curve(plan, epsilon, delta) if curve else None,
        score=ReplayScore(algorithm, pair.x, pair.x_prime, seed),
        stop_early=stop_early,
        execution=execution,
        seed=seed,
    )


def refuse_samples(plan: Plan) -> None:
    """Refuse a plan whose releases have a mixture of densities.

    Raises:
        UnsupportedError: if it samples units.
    """
    if any(each.sampling for each in plan.invocations):
        raise UnsupportedError(
            "the plan samples units: a transcript audit knows the sample, which the adversary of "
            "an amplified guarantee does not; attack audit_release instead."
        )


def _most_entries(algorithm: Runnable, pair: AuditPair, seed: int) -> int:
    """How many numbers one run releases; twice as many where runs differ."""
    sizes = {
        Transcripts(algorithm, seed)(data, 1, np.random.default_rng(number)).shape[1] - 1
        for number in range(3)
        for data in (pair.x, pair.x_prime)
    }
    return int(max(sizes)) if len(sizes) == 1 else 2 * int(max(sizes))


def _curve(plan: Plan, epsilon: float, delta: float) -> Any:
    """The plan's curve, if the claim states as much."""
    try:
        curve = privacy_curve(plan)
    except UnsupportedError:
        return None
    proved = float(curve(np.array([epsilon]))[0])
    return curve if proved <= delta * (1 + 1e-6) + 1e-12 else None
