"""What a whole table says of the auditors: what they find, and how often they err."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from .measuring import FOUND, Row

CONFIDENCE = 0.95
"""Of the intervals, both ends together."""


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
        from scipy.stats import beta

        tail, missed = (1 - CONFIDENCE) / 2, self.trials - self.hits
        low = float(beta.ppf(tail, self.hits, missed + 1)) if self.hits else 0.0
        high = float(beta.isf(tail, self.hits + 1, missed)) if missed else 1.0
        return low, high

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
    """Of all sampled rows.

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
