"""An event for a reader: how often it happened, in which fields, and outputs that show it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.auditing.distinguishing.one_sided_values import SHOWS_VALUE
from dpaudit.auditing.distinguishing.output_facts import Forms, entry_name
from dpaudit.auditing.distinguishing.scores import ColumnScore, Score, differences, score_outputs
from dpaudit.auditing.evidence.events import Both, Direction, Event, Flags, PairCounts
from dpaudit.certificate import Claim
from dpaudit.mechanisms.pairs import Floats

UNSEEN = "number of facts not seen before"
"""The name of a column that no output shows as it is."""
EXAMPLES = 3
"""Outputs that are shown."""
MOST_FIELDS = 3
"""Fields that are named, and entries of an output that are shown."""
WIDEST = 10_000
"""Entries of an output among which those are looked for that tell."""
UNIQUE = 0.9
"""Share of distinct values from which on a field differs in nearly every run."""
WIDE = 2.0**16
"""Range from which on whole numbers may be a seed, an identifier or a time."""
FEWEST = 30
MOST_ENTRIES = 24
"""Entries of an array that are looked at one by one."""


@dataclass(frozen=True)
class Fields:
    """The outputs of a pilot, and what their entries are called.

    Attributes:
        outputs: of both sides, each shape (n, …).
        names: of the entries where they encode outputs of any kind; else they are called by place.
        encoded: of outputs of any kind, the fields that differ in nearly every run.
        truths: whether each output is True or False, and stands here as 1 or 0.
    """

    outputs: Both
    names: tuple[str, ...] = ()
    encoded: tuple[str, ...] = ()
    truths: bool = False

    def in_words(self, score: Score, event: Event) -> str | None:
        """The fields by which a score tells whose own name says nothing; None of any other."""
        if self.truths:
            yes, no = event.indicator(score_outputs(score, np.array([1.0, 0.0])))
            return None if yes == no else f"output is {bool(yes)}"
        learned = score.name.startswith("learned") or bool(self.names)
        if isinstance(score, ColumnScore) or not learned:
            return None
        rows, inside = self._rows(), self._inside(score, event)
        told = [self._direction(at, rows, inside) for at in self._telling(score, event)]
        return f"outputs where {' and '.join(told)} ({score.name})" if told else None

    def examples(self, score: Score, event: Event) -> list[str]:
        """Some outputs in the event, from the side on which it is likelier."""
        side = self.outputs[0 if event.direction is Direction.FORWARD else 1]
        rows = side.reshape(len(side), -1)
        inside = rows[event.indicator(score_outputs(score, side))][:EXAMPLES]
        told = self._telling(score, event)
        beside = [at for at in range(rows.shape[1]) if self._name(at) not in (UNSEEN, SHOWS_VALUE)]
        shown = sorted([*dict.fromkeys([*told, *beside])][:MOST_FIELDS])
        if rows.shape[1] == 1:
            return [str(bool(row[0])) if self.truths else _number(row[0]) for row in inside]
        return [
            "; ".join(f"{self._name(at)}: {_number(row[at])}" for at in shown) for row in inside
        ]

    def _telling(self, score: Score, event: Event) -> list[int]:
        """Places of the entries that differ most between outputs in an event and others."""
        if isinstance(score, ColumnScore):
            return [score.place]
        rows, inside = self._rows(), self._inside(score, event)
        if not 2 <= rows.shape[1] <= WIDEST or inside.all() or not inside.any():
            return []
        told = differences(rows[inside], rows[~inside])
        best = [int(at) for at in np.argsort(-told, kind="stable")[:MOST_FIELDS]]
        return [at for at in best if 2 * told[at] >= told[best[0]]]

    def _inside(self, score: Score, event: Event) -> Flags:
        return event.indicator(np.concatenate([score_outputs(score, s) for s in self.outputs]))

    def _direction(self, at: int, rows: Floats, inside: Flags) -> str:
        with np.errstate(over="ignore", invalid="ignore"):
            one, other = (np.median(rows[each, at]) for each in (inside, ~inside))
        way = "is unlike elsewhere"
        if one != other:
            way = "is larger" if one > other else "is smaller"
        return f"{self._name(at)} {way}"

    @property
    def unique(self) -> list[str]:
        """Fields that differ in nearly every run, and are no noise in real numbers."""
        if self.names:
            return [*self.encoded]
        columns = self._rows().T[:MOST_ENTRIES]
        return [self._name(at) for at, column in enumerate(columns) if is_unique(column)]

    @property
    def constant(self) -> bool:
        """Whether all outputs are alike."""
        rows = self._rows()
        return bool((rows == rows[:1]).all())

    def _rows(self) -> Floats:
        return np.concatenate([side.reshape(len(side), -1) for side in self.outputs])

    def _name(self, at: int) -> str:
        if self.names:
            return self.names[at]
        shape = self.outputs[0].shape[1:]
        place = ", ".join(map(str, np.unravel_index(at, shape)))
        return f"output[{place}]" if shape else "output"


def _number(value: float) -> str:
    whole = abs(value) < 2**53 and value == math.floor(value)
    return f"{value:.0f}" if whole else f"{value:.6g}"


def unique_fields(outputs: Forms) -> Iterator[str]:
    """Texts, and whole numbers of a wide range, of which hardly any comes twice."""
    texts, single = defaultdict[str, list[str]](list), defaultdict[str, list[float]](list)
    for form in outputs:
        for fact in form.facts:
            label, is_text, text = fact.partition(" is '")
            if is_text:
                texts[label].append(text)
        for name, number in form.plain.items():
            single[name].append(number)
        for block, values in form.blocks.items():
            for place, number in enumerate(values[:MOST_ENTRIES]):
                single[entry_name(block, place)].append(number)
    yield from (name for name, values in single.items() if is_unique(np.array(values)))
    bare = " without its numbers"  # noise that is written out is told from a text by it
    for label, shown in texts.items():
        plain = texts.get(label + bare, shown)
        if not label.endswith(bare) and hardly_repeat(shown) and hardly_repeat(plain):
            yield label


def is_unique(values: Floats) -> bool:
    """Tell whether there are wide whole numbers, of which hardly any comes twice."""
    finite = values[np.isfinite(values)]
    if len(finite) < FEWEST or (finite != np.floor(finite)).any():
        return False
    with np.errstate(over="ignore"):
        return bool(np.ptp(finite) >= WIDE) and hardly_repeat(finite.tolist())


def hardly_repeat(values: Sequence[Any]) -> bool:
    """Tell whether there are many values, of which hardly any comes twice."""
    return len(values) >= FEWEST and len(set(values)) > UNIQUE * len(values)


def rates_in_words(counts: PairCounts | None, event: Event, claim: Claim, told: str) -> str:
    """How often the tested event happened on either side, beside what the claim allows."""
    if counts is None:
        return ""
    rates = counts.hits / counts.runs, counts.other_hits / counts.other_runs
    one, other = event.direction.sides
    allowed = f"{math.exp(min(claim.epsilon, 700.0)):.3g}"
    allowed += f" and δ = {claim.delta:g} beyond" if claim.delta else ""
    what = told.rpartition(", likelier")[0] or told
    happened = f"Tested: {what}, in {100 * rates[0]:.3g} % of the runs on {one} and "
    if not rates[1]:
        return f"{happened}in none on {other}, where the claim allows a ratio of {allowed}."
    return (
        f"{happened}{100 * rates[1]:.3g} % of those on {other}: a ratio of "
        f"{rates[0] / rates[1]:.3g}, where the claim allows {allowed}."
    )
