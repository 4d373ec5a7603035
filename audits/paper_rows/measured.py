"""What a row rests on: numbers with their errors, and the verdict that follows from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from audits.paper_rows.recording import Cell, Recording

__all__ = [
    "ERRORS",
    "Measured",
    "Number",
    "Records",
    "Verdict",
    "agreeing",
    "exponent",
    "judged",
    "not_worse",
]

ERRORS = 2.0
"""Standard errors by which numbers must differ to count as different."""


class Verdict(StrEnum):
    """What became of a statement."""

    REPRODUCED = "reproduced"
    IMPROVED = "improved"
    REFUTED = "refuted"
    NOT_REPRODUCED = "not reproduced"
    NOT_POSSIBLE = "not possible"
    NOT_RUN = "not run"

    @property
    def decided(self) -> bool:
        """Whether runs or computations decided it."""
        return self not in (Verdict.NOT_POSSIBLE, Verdict.NOT_RUN)


@dataclass(frozen=True)
class Number:
    """One number of a row.

    Attributes:
        what: it is.
        ours: what came out here.
        error: its standard error; 0 where it was computed.
        runs: that it is the mean of; 0 where it was computed.
        paper: what the paper prints, where it does.
    """

    what: str
    ours: float
    error: float = 0.0
    runs: int = 0
    paper: float | None = None

    @classmethod
    def of(cls, what: str, cell: Cell, paper: float | None = None) -> Number:
        """The final regret of a cell."""
        return cls(what, *cell.regret, cell.trials, paper)

    def agrees(self, relative: float = 0.0) -> bool:
        """Whether it is the paper's, within two errors of each (the paper's taken for ours).

        Args:
            relative: share by which the paper's may be rounded.
        """
        if self.paper is None:
            return True
        allowed = ERRORS * math.sqrt(2.0) * self.error + relative * abs(self.paper)
        return abs(self.ours - self.paper) <= allowed


@dataclass(frozen=True)
class Measured:
    """What a measuring function found.

    Attributes:
        numbers: in the order in which they are shown.
        verdict: that follows from them.
        because: the rule or reason, in a sentence.
    """

    numbers: tuple[Number, ...]
    verdict: Verdict
    because: str


Records: TypeAlias = Callable[[str], Recording]
"""The record of an experiment, by its name."""


def judged(
    holds: bool,
    numbers: Iterable[Number],
    because: str,
    *,
    yes: Verdict = Verdict.REPRODUCED,
    no: Verdict = Verdict.NOT_REPRODUCED,
) -> Measured:
    """One of two verdicts."""
    return Measured(tuple(numbers), yes if holds else no, because)


def agreeing(numbers: Iterable[Number], because: str, *, relative: float = 0.0) -> Measured:
    """Reproduced where every printed number came out here."""
    listed = tuple(numbers)
    printed = [number for number in listed if number.paper is not None]
    found = sum(number.agrees(relative) for number in printed)
    text = f"{found} of {len(printed)} printed numbers came out. {because}"
    return judged(found == len(printed), listed, text)


def not_worse(difference: tuple[float, float]) -> bool:
    """Whether regret that is this much more (mean, standard error) may as well be none."""
    return difference[0] <= ERRORS * difference[1]


def exponent(cell: Cell) -> tuple[float, float, int]:
    """Log of the growth of cumulative regret from T/2 to T over log 2, its error, and the trials.

    The error is that of the end alone, which is more than that of the growth: both ends are of the
    same runs.
    """
    half = int(abs(cell.rounds - cell.rounds[-1] / 2).argmin())
    span = math.log(cell.rounds[-1] / cell.rounds[half])
    value = math.log(cell.mean[-1] / cell.mean[half]) / span
    return value, float(cell.error[-1] / cell.mean[-1]) / span, cell.trials
