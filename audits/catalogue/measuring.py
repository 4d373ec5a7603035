"""Measuring the auditors on a catalogue: what they refute, in how many runs and how often wrongly.

An auditor is trusted for three numbers: how many runs it needs to refute what is wrong, how often
it refutes what is right, and how often its lower bound is above the truth. :func:`run_catalogue`
measures them.
"""

from __future__ import annotations

import contextlib
import math
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

from dpaudit.auditing.distinguishing import experiment
from dpaudit.auditing.distinguishing.blackbox import BlackBox
from dpaudit.auditing.distinguishing.engine import audit_release
from dpaudit.auditing.execution import Execution, workers
from dpaudit.base import validate
from dpaudit.certificate import AuditRecord

from .entry import Entry

__all__ = ["FOUND", "Row", "audit_entry", "run_catalogue"]

CONFIDENCE = 0.95
FOUND = 0.95
"""Share of its audits in which a wrong row must be refuted."""
ROUNDING = 1e-9
"""By which a true ε is rounded, relative to itself."""


@dataclass(frozen=True)
class Audit:
    """What one audit gave."""

    refuted: bool
    runs: int
    epsilon_lower: float
    seconds: float


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        entry: what was audited.
        refuted: in how many audits.
        audits: of how many.
        runs: median runs on each side that an audit used; 0 in exact mode.
        seconds: median time of an audit.
        epsilon_lower: median lower bound.
        above: audits whose lower bound is above the true ε.
    """

    entry: Entry
    refuted: int
    audits: int
    runs: int
    seconds: float
    epsilon_lower: float
    above: int = 0

    @classmethod
    def of(cls, entry: Entry, audits: Sequence[Audit]) -> Row:
        """The line of these audits."""
        limit = entry.true_epsilon * (1 + ROUNDING)
        return cls(
            entry,
            sum(each.refuted for each in audits),
            len(audits),
            round(statistics.median(each.runs for each in audits)),
            statistics.median(each.seconds for each in audits),
            statistics.median(each.epsilon_lower for each in audits),
            sum(each.epsilon_lower > limit for each in audits),
        )

    @property
    def sampled(self) -> bool:
        """Whether it rests on samples, and not on an exact computation."""
        return self.entry.exact is None

    @property
    def verdict(self) -> str:
        """Of one audit, or how often of several."""
        if self.audits == 1:
            return "refuted" if self.refuted else "not refuted"
        return f"refuted {self.refuted} of {self.audits}"

    @property
    def as_expected(self) -> bool:
        """Wrong ones are refuted in 95 % of audits at least, right ones not above the error rate.

        A right entry may be refuted now and then, so its row fails only where the number of
        refutations has a probability below 1e-6 at the error rate.
        """
        if not self.entry.right:
            return self.refuted >= FOUND * self.audits
        return _tail(self.refuted, self.audits, 1 - CONFIDENCE) > 1e-6

    def to_dict(self) -> dict[str, Any]:
        """A JSON record for a table."""
        true = self.entry.true_epsilon
        return {
            "mechanism": self.entry.name,
            "right": self.entry.right,
            "claim": str(self.entry.claim),
            "true_epsilon": "infinity" if true == math.inf else true,
            "epsilon_lower": "infinity" if self.epsilon_lower == math.inf else self.epsilon_lower,
            "verdict": self.verdict,
            "refuted": self.refuted,
            "audits": self.audits,
            "above_truth": self.above,
            "runs": self.runs,
            "budget": self.entry.runs,
            "seconds": self.seconds,
            "false_alarms": self.refuted if self.entry.right else 0,
            "as_expected": self.as_expected,
        }


def _tail(hits: int, trials: int, rate: float) -> float:
    """P(at least ``hits`` of ``trials``)."""
    return math.fsum(
        math.comb(trials, k) * rate**k * (1 - rate) ** (trials - k) for k in range(hits, trials + 1)
    )


def audit_entry(entry: Entry, seed: int, *, runs: int | None = None) -> AuditRecord:
    """One audit of an entry: sequential for wrong ones, with the whole budget for all others.

    Args:
        entry: what to audit.
        seed: of the experiment.
        runs: at most so many runs, where less than the entry's budget is wanted.
    """
    if entry.exact is not None:
        return entry.exact()
    release = entry.release if entry.answer is None else BlackBox(entry.answer)
    assert release is not None
    return audit_release(
        release,
        entry.pair,
        epsilon=entry.claim.epsilon,
        delta=entry.claim.delta,
        runs=entry.runs if runs is None else min(runs, entry.runs),
        confidence=CONFIDENCE,
        seed=seed,
        curve=entry.curve,
        score=entry.score,
        learn=entry.score is None,
        stop_early=not (entry.right or entry.rare),
        timeout=None,
    )


def run_catalogue(
    entries: Iterable[Entry],
    *,
    seed: int = 0,
    seeds: int = 1,
    runs: int | None = None,
    right_seeds: int | None = None,
    right_runs: int | None = None,
    processes: int = 1,
    progress: Callable[[Row], None] | None = None,
) -> tuple[Row, ...]:
    """Audit every entry with several seeds.

    Args:
        entries: the catalogue.
        seed: the first seed.
        seeds: audits of each sampled entry (exact ones are audited once).
        runs: at most so many runs an audit.
        right_seeds: audits of each right one, where another number of them is wanted.
        right_runs: at most so many runs an audit of a right one.
        processes: that audit at the same time; the table is the same but for the seconds.
        progress: is given every row as soon as it is there.
    """
    wrong = validate.integer_at_least(1, seeds=seeds)
    right = wrong if right_seeds is None else validate.integer_at_least(1, right_seeds=right_seeds)
    catalogue, rows = tuple(entries), list[Row]()
    counts = [1 if each.exact else right if each.right else wrong for each in catalogue]
    tasks = [
        (place, seed + number, (right_runs or runs) if catalogue[place].right else runs)
        for place, count in enumerate(counts)
        for number in range(count)
    ]
    with workers(Execution(workers=processes)) as mapped:
        audits = iter(mapped(partial(_audited, catalogue), tasks))
        for entry, count in zip(catalogue, counts, strict=True):
            rows.append(Row.of(entry, tuple(islice(audits, count))))
            if progress is not None:
                progress(rows[-1])
    return tuple(rows)


def _audited(catalogue: Sequence[Entry], task: tuple[int, int, int | None]) -> Audit:
    place, seed, runs = task
    start = time.perf_counter()
    with _without_children():
        record = audit_entry(catalogue[place], seed, runs=runs)
    lower = record.epsilon_lower or 0.0
    return Audit(record.refuted, record.runs, lower, time.perf_counter() - start)


@contextlib.contextmanager
def _without_children() -> Iterator[None]:
    """Draw in this process, which needs no protection from this code: the same runs, sooner."""
    kept, experiment.CHILDREN = experiment.CHILDREN, 0
    try:
        yield
    finally:
        experiment.CHILDREN = kept
