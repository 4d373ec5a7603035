"""How the auditors do on the catalogue: what they refute, in how many runs, how often wrongly.

An auditor is trusted for three numbers: how many runs it needs to refute what is wrong, how often
it refutes what is right, and how often its lower bound is above the truth. :func:`run_catalogue`
measures them, :class:`Summary` says them of a whole table. Samplers, whose bits may leak, are a
table of their own.
"""

from __future__ import annotations

import contextlib
import math
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scipy.stats import binom

from audits.catalogue.entry import Entry, FloatEntry
from audits.result_table import Record, ResultTable, is_failed
from dpaudit.auditing.distinguishing import experiment
from dpaudit.auditing.distinguishing.engine import audit_release
from dpaudit.auditing.distinguishing.outputs import BlackBox
from dpaudit.auditing.evidence.two_counts import clopper_pearson
from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.certificate import AuditRecord

CONFIDENCE = 0.95
"""Of each audit, and of the intervals of what they amount to, both ends together."""
FOUND = 0.95
"""Share of its audits in which a wrong row must be refuted."""
ROUNDING = 1e-9
"""By which a true ε is rounded, relative to itself."""


# -- one entry -------------------------------------------------------------------------------------


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
    def of(cls, entry: Entry, audits: Sequence[AuditRecord], seconds: Sequence[float]) -> Row:
        """The line of these audits, each with the time that it took."""
        limit = entry.true_epsilon * (1 + ROUNDING)
        bounds = [each.epsilon_lower or 0.0 for each in audits]
        return cls(
            entry,
            sum(each.refuted for each in audits),
            len(audits),
            round(statistics.median(each.runs for each in audits)),
            statistics.median(seconds),
            statistics.median(bounds),
            sum(bound > limit for bound in bounds),
        )

    @classmethod
    def recorded(cls, entry: Entry, record: Record) -> Row:
        """The line that :meth:`to_dict` has written."""
        counts = [record[key] for key in ("refuted", "audits", "runs", "seconds")]
        return cls(entry, *counts, float(record["epsilon_lower"]), record["above_truth"])

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
        return float(binom.sf(self.refuted - 1, self.audits, 1 - CONFIDENCE)) > 1e-6

    def to_dict(self) -> dict[str, Any]:
        """A JSON record for a table."""
        return {
            "mechanism": self.entry.name,
            "right": self.entry.right,
            "claim": str(self.entry.claim),
            "true_epsilon": _finite(self.entry.true_epsilon),
            "epsilon_lower": _finite(self.epsilon_lower),
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


def _finite(number: float) -> float | str:
    """A number for JSON, which has no infinity."""
    return "infinity" if number == math.inf else number


def audit_entry(
    entry: Entry,
    seed: int,
    *,
    runs: int | None = None,
    confidence: float = CONFIDENCE,
    whole: bool = False,
) -> AuditRecord:
    """One audit of an entry: sequential for wrong ones, with the whole budget for all others.

    Args:
        entry: what to audit.
        seed: of the experiment.
        runs: at most so many runs, where less than the entry's budget is wanted.
        confidence: of verdict and bound.
        whole: whether wrong ones have the whole budget too.
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
        confidence=confidence,
        seed=seed,
        curve=entry.curve,
        score=entry.score,
        stop_early=not (entry.right or entry.rare or whole),
        timeout=None,
    )


def audit_repeatedly(entry: Entry, seed: int, seeds: int, **how: Any) -> Row:
    """So many audits of an entry, by seeds from the first on, as :func:`audit_entry` makes them."""
    audits, seconds = [], []
    for number in range(seeds):
        start = time.perf_counter()
        audits.append(audit_entry(entry, seed + number, **how))
        seconds.append(time.perf_counter() - start)
    return Row.of(entry, audits, seconds)


# -- the table -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Cell:
    """The audits of one entry: so many, by seeds from the first on, with at most so many runs."""

    entry: Entry
    seed: int
    seeds: int
    runs: int | None

    @property
    def asked(self) -> Record:
        stated = {"claim": str(self.entry.claim), "budget": self.entry.runs}
        return stated | {"seed": self.seed, "seeds": self.seeds, "most": self.runs}

    def measured(self) -> Record:
        with _without_children():
            row = audit_repeatedly(self.entry, self.seed, self.seeds, runs=self.runs)
        return row.to_dict()


@contextlib.contextmanager
def _without_children() -> Iterator[None]:
    """Draw in this process, which needs no protection from this code: the same runs, sooner."""
    kept, experiment.CHILDREN = experiment.CHILDREN, 0
    try:
        yield
    finally:
        experiment.CHILDREN = kept


def run_catalogue(
    entries: Iterable[Entry],
    *,
    seed: int = 0,
    seeds: int = 1,
    runs: int | None = None,
    right_seeds: int | None = None,
    right_runs: int | None = None,
    processes: int = 1,
    progress: Callable[[Row], object] = lambda row: None,
    results: Path | None = None,
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
        results: file of what was found, with which an interrupted table goes on.
    """
    wrong = validate.integer_at_least(1, seeds=seeds)
    right = wrong if right_seeds is None else validate.integer_at_least(1, right_seeds=right_seeds)
    cells = {
        entry.name: _Cell(
            entry,
            seed,
            1 if entry.exact else right if entry.right else wrong,
            (right_runs or runs) if entry.right else runs,
        )
        for entry in entries
    }
    table = ResultTable(results, cells, lambda cell: cell.asked)
    rows: dict[str, Row] = {}

    def told(name: str, record: Record) -> None:
        if is_failed(record):
            raise InputError(record["error"])
        rows[name] = Row.recorded(cells[name].entry, record)
        progress(rows[name])

    missing = table.missing()
    for name in (name for name in cells if name not in missing):
        told(name, table.load()[name])
    table.measure(lambda cell, _: cell.measured(), missing, workers=processes, told=told)
    return tuple(rows[name] for name in cells)


# -- a table in numbers ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Rate:
    """How often something happened.

    Attributes:
        hits: how often.
        trials: of how many.
    """

    hits: int
    trials: int

    @property
    def interval(self) -> tuple[float, float]:
        """Clopper and Pearson's (1934) for the probability; (0, 1) of no trials."""
        return clopper_pearson(self.hits, self.trials, 1 - CONFIDENCE)

    def __str__(self) -> str:
        """Counts, share and interval."""
        if not self.trials:
            return "0 of 0"
        low, high = self.interval
        share = 100 * self.hits / self.trials
        return (
            f"{self.hits} of {self.trials} ({share:.2f} %; {100 * low:.2f} to {100 * high:.2f} % "
            f"at {CONFIDENCE:.0%} confidence)"
        )

    def to_dict(self) -> dict[str, Any]:
        """A JSON record."""
        return {"hits": self.hits, "trials": self.trials, "interval": list(self.interval)}


@dataclass(frozen=True)
class Summary:
    """What a whole table says of the auditors, of all sampled rows.

    Attributes:
        found: refuted audits of wrong rows.
        missed: wrong rows that were refuted in too few of their audits.
        false_alarms: refuted audits of right rows.
        above: audits whose lower bound is above the true ε, of rows where that is finite.
        above_own: the same, of rows whose true ε is that of the very pair, and no limit of it.
    """

    found: Rate
    missed: tuple[str, ...]
    false_alarms: Rate
    above: Rate
    above_own: Rate

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Summary:
        """The summary of a table."""
        sampled = [row for row in rows if row.sampled]
        wrong = [row for row in sampled if not row.entry.right]
        finite = [row for row in sampled if math.isfinite(row.entry.true_epsilon)]
        return cls(
            _rate((row.refuted, row) for row in wrong),
            tuple(row.entry.name for row in wrong if not row.as_expected),
            _rate((row.refuted, row) for row in sampled if row.entry.right),
            _rate((row.above, row) for row in finite),
            _rate((row.above, row) for row in finite if not row.entry.limit),
        )

    @property
    def lines(self) -> tuple[str, str, str]:
        """Three sentences."""
        missed = ", ".join(self.missed) or "none"
        return (
            f"found: {self.found} of audits of wrong mechanisms; "
            f"rows found in less than {FOUND:.0%}: {missed}",
            f"false alarms: {self.false_alarms} of audits of right mechanisms",
            f"lower bound above the true ε: {self.above}; of rows whose true ε is that of the "
            f"very pair: {self.above_own}",
        )

    def to_dict(self) -> dict[str, Any]:
        """A JSON record."""
        return {
            "found": self.found.to_dict(),
            "rows_missed": list(self.missed),
            "false_alarms": self.false_alarms.to_dict(),
            "above_truth": self.above.to_dict(),
            "above_truth_of_the_pair": self.above_own.to_dict(),
        }


def _rate(counted: Iterable[tuple[int, Row]]) -> Rate:
    pairs = list(counted)
    return Rate(sum(hits for hits, _ in pairs), sum(row.audits for _, row in pairs))


# -- samplers --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FloatRow:
    """One line of the table of samplers.

    Attributes:
        entry: what was looked at.
        rules: of the findings.
        draws: on each side.
        seconds: that it took.
    """

    entry: FloatEntry
    rules: tuple[str, ...]
    draws: int
    seconds: float

    @property
    def as_expected(self) -> bool:
        """A finding where, and only where, there is a leak."""
        return bool(self.rules) == self.entry.leaks

    def to_dict(self) -> dict[str, Any]:
        """A JSON record for a table."""
        return {
            "sampler": self.entry.name,
            "leaks": self.entry.leaks,
            "findings": list(self.rules),
            "draws": self.draws,
            "budget": self.entry.draws,
            "seconds": self.seconds,
            "as_expected": self.as_expected,
        }


def run_floats(
    entries: Iterable[FloatEntry], *, seed: int = 0, draws: int | None = None
) -> tuple[FloatRow, ...]:
    """Look for findings in every sampler once, with at most so many draws on each side."""
    rows = []
    for entry in entries:
        start = time.perf_counter()
        report = entry.audit(seed, draws)
        rules = tuple(finding.rule for finding in report.findings)
        rows.append(FloatRow(entry, rules, report.draws, time.perf_counter() - start))
    return tuple(rows)
