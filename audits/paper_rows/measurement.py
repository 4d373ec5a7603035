"""What a row rests on: numbers with their errors, and the verdict that follows from them.

A measuring function returns a ``Measurement``, and a row of the page takes its verdict from it.
Verdicts follow from numbers by rules that stand here, not from words.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from audits.paper_rows.recording import Cell, Recording
from private_bo.experiments import mean_and_error

ERRORS = 2.0
"""Standard errors by which numbers must differ to count as different."""
_FOUND = 0.8416
"""Of a standard normal law: more in eight of ten cases."""


class Verdict(StrEnum):
    """What became of a statement."""

    REPRODUCED = "reproduced"
    IMPROVED = "improved"
    REFUTED = "refuted"
    AS_PRINTED = "false or empty as printed"
    UNDERSPECIFIED = "underspecified"
    NO_DATA = "data not at hand"
    NOT_FOUND = "not found"
    NOT_RUN = "not run"


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

    @classmethod
    def over_rounds(cls, name: str, cell: Cell) -> Number:
        """The regret of a cell over all rounds: how fast it falls, and how far."""
        return cls(f"mean regret of all rounds, {name}", *cell.all_rounds, cell.trials)

    @classmethod
    def paired(cls, record: Recording, one: str, other: str, *, average: bool = True) -> Number:
        """One cell's regret less another's, trial by trial: over all rounds, or at the end."""
        what = f"{one} less {other}, {'mean of all rounds' if average else 'at the end'}"
        return cls.less(what, record, one, other, average=average)

    @classmethod
    def less(
        cls,
        what: str,
        record: Recording,
        one: str,
        other: str,
        paper: float | None = None,
        *,
        average: bool = False,
    ) -> Number:
        """The same in other words."""
        mean, error = record.less(one, other, average=average)
        return cls(what, mean, error, record.cell(one).trials, paper)

    @classmethod
    def over(
        cls, what: str, record: Recording, one: str, other: str, paper: float | None = None
    ) -> Number:
        """One cell's final regret over another's; of the same trials, so both have errors."""
        a, b = record.cell(one).final, record.cell(other).final
        ratio = float(a.mean() / b.mean())
        error = float(mean_and_error(a - ratio * b)[1] / b.mean())
        return cls(what, ratio, error, a.size, paper)

    @property
    def least_found(self) -> float:
        """The least difference from 0 that is told for sure in eight of ten such experiments."""
        return (ERRORS + _FOUND) * self.error

    @property
    def below(self) -> bool:
        """Whether it is negative for sure."""
        return self.ours < -ERRORS * self.error

    @property
    def above(self) -> bool:
        """Whether it is positive for sure."""
        return self.ours > ERRORS * self.error

    def agrees(self, relative: float = 0.0, runs: int | None = None) -> bool:
        """Whether it is the paper's, within two errors of each; a run has the same in both.

        Args:
            relative: share by which the paper's may be rounded.
            runs: that the paper's is the mean of; as many as ours where not given.
        """
        if self.paper is None:
            return True
        theirs = self.runs / runs if runs else 1.0
        allowed = ERRORS * math.sqrt(1.0 + theirs) * self.error + relative * abs(self.paper)
        return abs(self.ours - self.paper) <= allowed


@dataclass(frozen=True)
class Measurement:
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


def judge(
    holds: bool,
    numbers: Iterable[Number],
    because: str,
    *,
    yes: Verdict = Verdict.REPRODUCED,
    no: Verdict = Verdict.NOT_FOUND,
    undecided: Iterable[Number] = (),
) -> Measurement:
    """One of two verdicts; of what was not found, what would have been.

    Args:
        holds: the first.
        numbers: that are shown.
        because: the rule.
        yes: the first.
        no: the second.
        undecided: numbers whose sign a claim needs, and that do not have it.
    """
    if not holds and no in (Verdict.NOT_FOUND, Verdict.UNDERSPECIFIED):
        because += "".join(f" {_power(number)}" for number in undecided if number.error)
    return Measurement(tuple(numbers), yes if holds else no, because)


def _power(number: Number) -> str:
    """What experiments of this size would have shown, if they do not show the opposite."""
    if number.above:
        return f"The opposite is found ({number.what})."
    return (
        f"In {number.runs} trials a difference of {number.least_found:.2g} ({number.what}) is "
        "found eight times of ten."
    )


def judge_agreement(
    numbers: Iterable[Number],
    because: str,
    *,
    relative: float = 0.0,
    runs: int | None = None,
    no: Verdict = Verdict.NOT_FOUND,
) -> Measurement:
    """Reproduced where every printed number came out here."""
    listed = tuple(numbers)
    printed = [number for number in listed if number.paper is not None]
    found = sum(number.agrees(relative, runs) for number in printed)
    text = f"{found} of {len(printed)} printed numbers came out. {because}"
    return judge(found == len(printed), listed, text, no=no)


def exponent(cell: Cell) -> tuple[float, float, int]:
    """The exponent with which cumulative regret grows, its standard error, and the trials.

    Regret c t^a has the mean c T^a / (1 + a) over T rounds, so a is the regret at the end over that
    mean, less 1. Both are of the same runs, and the error is that of the ratio.
    """
    mean = float(cell.average.mean())
    ratio = float(cell.final.mean()) / mean
    _, error = mean_and_error(cell.final - ratio * cell.average)
    return ratio - 1.0, float(error) / mean, cell.trials
