"""An event for a reader: how often it happened, in which fields, and outputs that show it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.auditing.distinguishing.scores import (
    ColumnScore,
    Identity,
    OutputScore,
    Score,
    WhiteBox,
    differences,
    score_outputs,
)
from dpaudit.auditing.evidence.types import Both, Direction, Event, Flags, PairCounts
from dpaudit.certificate import Claim
from dpaudit.mechanisms.pairs import Floats

EXAMPLES = 3
"""Outputs that are shown."""
MOST_FIELDS = 3
"""Fields that are named, and entries of an output that are shown."""
UNIQUE = 0.9
"""Share of distinct values from which on a field differs in nearly every run."""
WIDE = 2.0**16
"""Range from which on whole numbers may be a seed, an identifier or a time."""
FEWEST = 30


@dataclass(frozen=True)
class Fields:
    """The outputs of a pilot, and what their entries are called.

    Attributes:
        outputs: of both sides, each shape (n, …).
        names: of the entries, in the order of the flattened output; by place where there are none.
        given: how many of the last entries are scores that were given.
        encoded: where outputs are encoded, those of their fields that differ in nearly every run.
    """

    outputs: Both
    names: tuple[str, ...] = ()
    given: int = 0
    encoded: tuple[str, ...] = ()

    def in_words(self, score: Score, event: Event) -> str | None:
        """The fields by which a learned score tells; None of scores that say it by their name."""
        own = getattr(score, "in_words", None)
        if own is not None and (told := own(event)) is not None:
            return str(told)
        if isinstance(score, Identity | ColumnScore | WhiteBox | OutputScore) or self._size < 2:
            return None
        rows = self._rows()
        inside = event.indicator(np.concatenate([score_outputs(score, s) for s in self.outputs]))
        if inside.all() or not inside.any():
            return None
        told = differences(rows[inside], rows[~inside])
        best = [int(at) for at in np.argsort(-told, kind="stable")[:MOST_FIELDS]]
        shown = [self._direction(at, rows, inside) for at in best if 2 * told[at] >= told[best[0]]]
        return f"outputs where {' and '.join(shown)} ({score.name})"

    def _direction(self, at: int, rows: Floats, inside: Flags) -> str:
        with np.errstate(over="ignore", invalid="ignore"):
            one, other = (np.median(rows[each, at]) for each in (inside, ~inside))
        way = "is unlike elsewhere"
        if one != other:
            way = "is larger" if one > other else "is smaller"
        return f"{self._name(at)} {way}"

    def examples(self, score: Score, event: Event) -> list[str]:
        """Some outputs in the event, from the side on which it is likelier."""
        forward = event.direction is Direction.FORWARD
        side = self.outputs[0 if forward else 1]
        inside = side[event.indicator(score_outputs(score, side))][:EXAMPLES]
        return [self._shown(row) for row in inside.reshape(len(inside), -1)]

    def _shown(self, row: Floats) -> str:
        if len(row) == 1:
            return _number(row[0])
        if not self.names:
            more = ", …" if len(row) > MOST_FIELDS else ""
            return f"[{', '.join(map(_number, row[:MOST_FIELDS]))}{more}]"
        shown = [*range(len(row) - self.given, len(row)), *range(len(row) - self.given)]
        fields = (f"{self.names[at]}: {_number(row[at])}" for at in shown[:MOST_FIELDS])
        return "; ".join(fields)

    @property
    def unique(self) -> list[str]:
        """Fields that differ in nearly every run, and are no noise in real numbers."""
        rows = self._rows()
        if self.names:
            return [*self.encoded]
        return [self._name(at) for at in range(rows.shape[1]) if is_unique(rows[:, at])]

    def _rows(self) -> Floats:
        return np.concatenate([side.reshape(len(side), -1) for side in self.outputs])

    @property
    def _size(self) -> int:
        return int(self.outputs[0][:1].size)

    def _name(self, at: int) -> str:
        if self.names:
            return self.names[at]
        shape = self.outputs[0].shape[1:]
        place = ", ".join(map(str, np.unravel_index(at, shape)))
        return f"output[{place}]" if shape else "output"


def _number(value: float) -> str:
    whole = abs(value) < 2**53 and value == math.floor(value)
    return f"{value:.0f}" if whole else f"{value:.6g}"


def is_unique(values: Floats) -> bool:
    """Tell whether there are wide whole numbers, of which hardly any comes twice."""
    finite = values[np.isfinite(values)]
    if len(finite) < FEWEST or (finite != np.floor(finite)).any():
        return False
    return bool(np.ptp(finite) >= WIDE) and hardly_repeat(finite.tolist())


def hardly_repeat(values: Sequence[Any]) -> bool:
    """Tell whether there are many values, of which hardly any comes twice."""
    return len(values) >= FEWEST and len(set(values)) > UNIQUE * len(values)


def rates_in_words(counts: PairCounts | None, event: Event, claim: Claim, told: str) -> str:
    """How often the tested event happened on either side, beside what the claim allows."""
    if counts is None:
        return ""
    rates = counts.hits / counts.runs, counts.other_hits / counts.other_runs
    one, other = ("x", "x'") if event.direction is Direction.FORWARD else ("x'", "x")
    allowed = f"{math.exp(min(claim.epsilon, 700.0)):.3g}"
    allowed += f" and δ = {claim.delta:g} beyond" if claim.delta else ""
    ratio = f"{rates[0] / rates[1]:.3g}" if rates[1] else "∞"
    return (
        f"Tested: {told.rpartition(', likelier')[0] or told}, in {100 * rates[0]:.3g} % of the "
        f"runs on {one} and {100 * rates[1]:.3g} % of those on {other}: a ratio of {ratio}, "
        f"where the claim allows {allowed}."
    )
