"""Measuring the auditors on a catalogue: what they refute, in how many runs and how often wrongly.

An auditor is trusted for two numbers: how many runs it needs to refute what is wrong, and how often
it refutes what is right. :func:`run_catalogue` measures both.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from dpaudit import validate
from dpaudit.auditing.distinguishing.engine import audit_release
from dpaudit.certificate import AuditRecord

from .entry import Entry

__all__ = ["Row", "audit_entry", "false_alarms", "run_catalogue"]

CONFIDENCE = 0.95


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
    """

    entry: Entry
    refuted: int
    audits: int
    runs: int
    seconds: float
    epsilon_lower: float

    @property
    def verdict(self) -> str:
        """Of one audit, or how often of several."""
        if self.audits == 1:
            return "refuted" if self.refuted else "not refuted"
        return f"refuted {self.refuted} of {self.audits}"

    @property
    def as_expected(self) -> bool:
        """Wrong entries are refuted in every audit; right ones at most at the error rate.

        A right entry may be refuted now and then, so its row fails only where the number of
        refutations has a probability below 1e-6 at the error rate.
        """
        if not self.entry.right:
            return self.refuted == self.audits
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
    assert entry.release is not None
    return audit_release(
        entry.release,
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
    progress: Callable[[Row], None] | None = None,
) -> tuple[Row, ...]:
    """Audit every entry with several seeds.

    Args:
        entries: the catalogue.
        seed: the first seed.
        seeds: audits of each sampled entry (exact ones are audited once).
        runs: at most so many runs an audit.
        progress: is given every row as soon as it is there.
    """
    seeds = validate.integer_at_least(1, seeds=seeds)
    rows = []
    for entry in entries:
        records, seconds = [], []
        for number in range(seeds if entry.exact is None else 1):
            start = time.perf_counter()
            records.append(audit_entry(entry, seed + number, runs=runs))
            seconds.append(time.perf_counter() - start)
        row = Row(
            entry,
            sum(record.refuted for record in records),
            len(records),
            round(statistics.median(record.runs for record in records)),
            statistics.median(seconds),
            statistics.median(record.epsilon_lower or 0.0 for record in records),
        )
        rows.append(row)
        if progress is not None:
            progress(row)
    return tuple(rows)


def false_alarms(rows: Sequence[Row]) -> tuple[int, int]:
    """Refutations and audits of the right entries with samples, over the whole table."""
    right = [row for row in rows if row.entry.right and row.entry.exact is None]
    return sum(row.refuted for row in right), sum(row.audits for row in right)
