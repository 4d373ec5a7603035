"""The whole transcript of an algorithm as one release, and its likelihood ratio as the attack.

The ratio of a transcript is the sum over releases of the log ratio of that release given those
before. An algorithm that releases through a ledger need not say how its queries depend on the past:
run again on either neighbour with the releases *forced*, it computes them itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from dpaudit.accounting import privacy_curve
from dpaudit.auditing.distinguishing.engine import audit_release
from dpaudit.auditing.execution import Execution, ExecutionFields
from dpaudit.auditing.replaying.recording import DivergedError, RecordingNoise, Runnable, prepared
from dpaudit.certificate import AuditRecord
from dpaudit.errors import InputError, PlanMismatchError, UnsupportedError
from dpaudit.ledger import Entry, Ledger
from dpaudit.mechanisms.base import Released
from dpaudit.plan import Plan
from dpaudit.project import AuditPair

__all__ = ["ReplayScore", "Transcripts", "audit_transcript"]

Floats = NDArray[np.float64]

FEWER_RUNS = Execution(runs=1_000, seed=0)


@dataclass(frozen=True)
class Transcripts:
    """Independent runs of an algorithm, each as the flat list of all that it released.

    Attributes:
        algorithm: what is run.
        seed: of its own randomness, which is public here: the same in every run.
    """

    algorithm: Runnable
    seed: int = 0

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Floats:
        """``size`` transcripts, shape (size, entries).

        Raises:
            InputError: if runs release different numbers of entries.
        """
        plan, rows = self.algorithm.plan(), []
        for _ in range(size):
            noise = RecordingNoise(rng)
            ledger = Ledger(plan, noise=noise)
            self.algorithm.run(data, ledger, np.random.default_rng(self.seed))
            rows.append(np.concatenate([np.ravel(step.released) for step in noise.steps]))
        if len({row.size for row in rows}) > 1:
            raise InputError(
                "the runs released different numbers of entries; transcripts need one length."
            )
        return np.array(rows, dtype=np.float64)


class _ForcedNoise(RecordingNoise):
    """Releases what it is told, and adds up the declared log-densities."""

    def __init__(self, transcript: Floats) -> None:
        super().__init__(np.random.default_rng(0))
        self.left = transcript
        self.log_density = 0.0

    def _drawn(self, entry: Entry, value: NDArray[Any]) -> Released:
        mechanism = entry.invocation.mechanism
        shape = prepared(mechanism, value).shape
        size = int(np.prod(shape))
        if self.left.size < size:
            raise DivergedError
        released = self.left[:size].reshape(shape)
        self.left = self.left[size:]
        self.log_density += float(mechanism.log_density(released[None], value)[0])
        scalar: Released = released.item() if released.ndim == 0 else released
        return scalar


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
        return np.array([self._ratio(transcript) for transcript in outputs])

    def _ratio(self, transcript: Floats) -> float:
        over, under = (self._log_density(data, transcript) for data in (self.x, self.x_prime))
        return 0.0 if over == under else over - under

    def _log_density(self, data: Any, transcript: Floats) -> float:
        """Declared log-density; minus infinity if the data lead to other releases."""
        noise = _ForcedNoise(transcript)
        ledger = Ledger(self.algorithm.plan(), noise=noise)
        try:
            self.algorithm.run(data, ledger, np.random.default_rng(self.seed))
        except (DivergedError, PlanMismatchError):
            return -np.inf
        return -np.inf if noise.left.size else noise.log_density


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
        UnsupportedError: if a mechanism declares no density.
    """
    execution = execution.updated(fields)
    seed = execution.known_seed()
    return audit_release(
        Transcripts(algorithm, seed),
        pair,
        epsilon=epsilon,
        delta=delta,
        curve=_curve(algorithm.plan(), epsilon, delta) if curve else None,
        score=ReplayScore(algorithm, pair.x, pair.x_prime, seed),
        stop_early=stop_early,
        execution=execution,
        seed=seed,
    )


def _curve(plan: Plan, epsilon: float, delta: float) -> Any:
    """The plan's curve, if the claim states as much."""
    try:
        curve = privacy_curve(plan)
    except UnsupportedError:
        return None
    proved = float(curve(np.array([epsilon]))[0])
    return curve if proved <= delta * (1 + 1e-6) + 1e-12 else None
