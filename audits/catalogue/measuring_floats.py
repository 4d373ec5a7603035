"""The part of a catalogue that measures float findings: samplers that leak, and ones that don't."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.auditing.noise.floats import FloatReport, float_findings
from dpaudit.certificate import Claim

__all__ = ["FloatEntry", "FloatRow", "run_floats"]


@dataclass(frozen=True)
class FloatEntry:
    """One sampler.

    Attributes:
        name: what it is.
        leaks: whether a float finding is due.
        claim: of one release, for the neighbours 0 and 1.
        draws: budget on each side, within which a leak must be found.
        release: the sampler.
    """

    name: str
    leaks: bool
    claim: Claim
    draws: int
    release: Callable[[Any, int, np.random.Generator], Any]

    def audit(self, seed: int, draws: int | None = None) -> FloatReport:
        """Look for findings, with at most ``draws`` on each side."""
        return float_findings(
            self.release,
            epsilon=self.claim.epsilon,
            delta=self.claim.delta,
            draws=self.draws if draws is None else min(draws, self.draws),
            seed=seed,
        )


@dataclass(frozen=True)
class FloatRow:
    """One line of the table.

    Attributes:
        entry: what was audited.
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
    """Audit every sampler once.

    Args:
        entries: the samplers.
        seed: of the draws.
        draws: at most so many on each side.
    """
    rows = []
    for entry in entries:
        start = time.perf_counter()
        report = entry.audit(seed, draws)
        rules = tuple(finding.rule for finding in report.findings)
        rows.append(FloatRow(entry, rules, report.draws, time.perf_counter() - start))
    return tuple(rows)
