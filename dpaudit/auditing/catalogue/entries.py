"""Catalogues: right and wrong mechanisms with known losses, on which auditors are measured.

An auditor is trusted for two numbers: how many runs it needs to refute what is wrong, and how often
it refutes what is right. :func:`run_catalogue` measures both. A catalogue is a folder with an
``__init__.py`` that defines ``ENTRIES`` and, for samplers whose bits may leak, ``FLOATS``.
"""

from __future__ import annotations

import importlib.util
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit import validate
from dpaudit.auditing.catalogue.floats import FloatEntry
from dpaudit.auditing.distinguishing.engine import audit_release
from dpaudit.auditing.distinguishing.scores import Score
from dpaudit.certificate import AuditRecord, Claim
from dpaudit.errors import InputError
from dpaudit.project import AuditPair

__all__ = [
    "Catalogue",
    "Entry",
    "FixedScore",
    "Row",
    "audit_entry",
    "false_alarms",
    "load_catalogue",
    "run_catalogue",
]

Curve = Callable[[ArrayLike], NDArray[np.float64]]
CONFIDENCE = 0.95
_MODULE = "dpaudit_catalogue"


@dataclass(frozen=True)
class FixedScore:
    """A score that was written down beforehand.

    Attributes:
        function: outputs, shape (n, …), to scores, shape (n,).
        name: what a score is.
        method: how the evidence is made.
    """

    function: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    name: str = "fixed score"
    method: str = "white-box fixed score"

    def __call__(self, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
        """The scores."""
        return np.asarray(self.function(outputs), dtype=np.float64)


@dataclass(frozen=True)
class Entry:
    """One mechanism, what is claimed of it, and what is true.

    Attributes:
        name: what it is, and for wrong ones the mistake.
        right: whether the claim holds.
        claim: what is stated.
        x: one of two neighbours.
        x_prime: the other.
        true_epsilon: of a wrong entry the true ε at the claim's δ for this pair, or what it tends
            to with more queries or larger data; of a right one what is proved.
        runs: the budget on each side, within which a wrong entry must be refuted.
        release: ``release(data, size, rng)``, vectorised; None where only exact mode applies.
        curve: the claimed δ(ε), where more is claimed than one point.
        score: of the attack; without one it is learned.
        exact: proves or refutes the claim without samples.
        rho: claimed and true ρ, where the claim is one of zCDP.
        rare: whether the event is too rare for the few runs on which a sequential test lays out
            its bets, so that a pilot must choose it.
    """

    name: str
    right: bool
    claim: Claim
    x: Any
    x_prime: Any
    true_epsilon: float
    runs: int = 0
    release: Callable[[Any, int, np.random.Generator], Any] | None = None
    curve: Curve | None = None
    score: Score | None = None
    exact: Callable[[], AuditRecord] | None = None
    rho: tuple[float, float] | None = None
    rare: bool = False

    def __post_init__(self) -> None:
        if (self.release is None) == (self.exact is None):
            raise InputError(
                f"entry {self.name!r} needs a release or an exact audit, and not both."
            )
        stated, true = self.rho or (self.claim.epsilon, self.true_epsilon)
        if self.right != (true <= stated * (1 + 1e-9)):
            raise InputError(
                f"entry {self.name!r} states {stated:g} where {true:g} is true; that does not go "
                f"with right = {self.right}."
            )

    @property
    def pair(self) -> AuditPair:
        """The neighbours."""
        return AuditPair(self.x, self.x_prime, self.name)


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
    def as_it_should(self) -> bool:
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
            "as_it_should": self.as_it_should,
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


@dataclass(frozen=True)
class Catalogue:
    """What a catalogue folder holds.

    Attributes:
        entries: mechanisms.
        floats: samplers.
    """

    entries: tuple[Entry, ...]
    floats: tuple[FloatEntry, ...] = ()


def load_catalogue(directory: Path | str) -> Catalogue:
    """The content of a catalogue folder. This runs its code.

    Raises:
        InputError: if the folder is no catalogue, or fails to import.
    """
    folder = Path(directory).resolve()
    init = folder / "__init__.py"
    wanted = "it must be a folder whose __init__.py defines ENTRIES"
    if not init.is_file():
        raise InputError(f"catalogue is {str(directory)!r}; {wanted}.")
    for name in [name for name in sys.modules if name.split(".")[0] == _MODULE]:
        del sys.modules[name]
    spec = importlib.util.spec_from_file_location(
        _MODULE, init, submodule_search_locations=[str(folder)]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[_MODULE] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise InputError(f"catalogue {str(directory)!r} cannot be imported ({reason}).") from error
    entries = tuple(getattr(module, "ENTRIES", ()))
    if not entries or not all(isinstance(entry, Entry) for entry in entries):
        raise InputError(f"catalogue {str(directory)!r} has no entries; {wanted}.")
    return Catalogue(entries, tuple(getattr(module, "FLOATS", ())))
