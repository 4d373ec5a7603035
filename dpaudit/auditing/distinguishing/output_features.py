"""Rows of numbers for outputs of any kind, in columns that a first part of the pilot chooses.

The columns are facts (flags), numbers, entries of arrays and summaries of these: those that differ
most between the neighbours. What that part did not show is counted in the last column. A function
of an output is as private as the output, so the choice costs nothing but power.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpaudit.auditing.distinguishing.event_description import UNSEEN, unique_fields
from dpaudit.auditing.distinguishing.one_sided_values import NOTHING_HELD, HeldValues
from dpaudit.auditing.distinguishing.output_facts import Block, Form, Forms, canonical, entry_name
from dpaudit.auditing.distinguishing.scores import (
    SLAB,
    ColumnScore,
    OutputScore,
    differences,
    scale,
    scaled,
)
from dpaudit.base.errors import InputError
from dpaudit.mechanisms.pairs import Floats

MOST_FACTS, MOST_NUMBERS, MOST_BLOCKS = 20, 24, 2
MOST_SEEN = 200_000
"""Facts that are remembered as seen."""
MOST_FAILED = 0.9
"""Share of runs that may raise on both sides: of code that hardly ever answers nothing is said."""
HIDDEN = 0.8
"""What a fact that hides its content is worth beside one that shows it; and a number beside it."""
SUMMARIES = ("sum", "norm", "maximum", "minimum", "zeros", "weighted sum", "weighted squares")


def require_answers(both: tuple[Forms, Forms], reason: str) -> None:
    """Refuse code that hardly ever answers on either side, or gives what cannot be read.

    Raises:
        InputError: the reason for an encoding, if that is an exception; that nothing returns; or
            what of an output cannot be read, so that no verdict would speak of it.
    """
    every = [form for side in both for form in side]
    if all(form.failed for form in every):
        raise InputError(reason)
    if all(np.mean([form.failed for form in side]) > MOST_FAILED for side in both):
        raise InputError(
            f"the mechanism raises an error in over {MOST_FAILED:.0%} of its runs on both sides, "
            "so the audit would say hardly anything about its outputs; fix it first."
        )
    if all(form.facts == {"output is None"} for form in every):
        raise InputError("the mechanism returned nothing in every run; it must return its output.")
    hidden = sorted({fact for form in every for fact in form.unread})
    if hidden:
        raise InputError(f"{hidden[0]}; return data, and await a coroutine.")


@dataclass(frozen=True, eq=False)
class _Summary:
    """Of a block: statistics, and sums weighted by how much each entry differs on the pilot."""

    block: Block
    scale: tuple[Floats, Floats]
    weights: tuple[Floats, Floats]

    @classmethod
    def of(cls, block: Block, x: Floats, x_prime: Floats) -> _Summary:
        known = scale(np.concatenate([x, x_prime]))
        one, other = scaled(x, *known), scaled(x_prime, *known)
        squares = np.square(one).mean(axis=0) - np.square(other).mean(axis=0)
        return cls(block, known, (one.mean(axis=0) - other.mean(axis=0), squares))

    def __call__(self, every: Forms) -> Floats:
        """The summaries of each form, shape (n, summaries)."""
        longest = max((len(form.blocks.get(self.block, ())) for form in every), default=0)
        size = max(1, SLAB // max(1, longest))
        slabs = [every[at : at + size] for at in range(0, len(every), size)]
        return np.concatenate([np.zeros((0, len(SUMMARIES))), *map(self._of, slabs)])

    def _of(self, slab: Forms) -> Floats:
        values = _stacked(self.block, slab)
        missing = np.isnan(values)
        there = np.where(missing, 0.0, values)
        known = np.full((len(slab), self.scale[0].size), np.nan)
        shared = min(known.shape[1], values.shape[1])
        known[:, :shared] = values[:, :shared]
        moderate = scaled(known, *self.scale)
        with np.errstate(over="ignore", invalid="ignore"):
            sums = [there.sum(axis=1), np.sqrt(np.square(there).sum(axis=1))]
        extremes = [
            np.where(missing, -np.inf, values).max(axis=1, initial=-np.inf),
            np.where(missing, np.inf, values).min(axis=1, initial=np.inf),
            (values == 0).sum(axis=1),
        ]
        linear, squares = self.weights
        weighted = [(moderate * linear).sum(axis=1), (np.square(moderate) * squares).sum(axis=1)]
        return np.stack([*sums, *extremes, *weighted], axis=1)


@dataclass(frozen=True)
class Vocabulary:
    """Encodes outputs as rows of numbers without NaN.

    Attributes:
        facts: that are columns of their own.
        numbers: single ones, with what stands where they are missing.
        entries: of blocks, with what stands where they are missing.
        summaries: of blocks.
        seen: every fact that was seen, for the count of those that were not.
        kept: places of the columns that are kept, the clearest first.
        held: values of one side alone; where there are any, whether one is shown is a column.
        own: scores of outputs as they are, which are the last columns.
        unique: fields that differ in nearly every run.
        common: facts that were seen more than once.
        counts_rare: whether the number of facts that are not common is a further column, the last.
    """

    facts: tuple[str, ...]
    numbers: dict[str, float]
    entries: dict[tuple[Block, int], float]
    summaries: tuple[_Summary, ...]
    seen: frozenset[str]
    kept: tuple[int, ...] = ()
    held: HeldValues = NOTHING_HELD
    own: tuple[OutputScore, ...] = ()
    unique: tuple[str, ...] = ()
    common: frozenset[str] = frozenset()
    counts_rare: bool = False

    @classmethod
    def of(cls, x: Forms, x_prime: Forms, held: HeldValues = NOTHING_HELD) -> Vocabulary:
        """From outputs on both sides that no test will use again."""
        facts, seen, common = _chosen_facts(x, x_prime)
        made = cls(facts, *_chosen_numbers((x, x_prime)), seen, held=held, common=common)
        rows = [made._rows(side) for side in (x, x_prime)]
        told, both = differences(*rows), np.concatenate(rows)
        told[: len(facts)] /= [HIDDEN if "\0" in fact else HIDDEN**2 for fact in facts]
        varied = np.flatnonzero((both != both[0]).any(axis=0)).tolist()
        last = len(told) - 1  # varies on fresh runs alone
        order = sorted({*varied, last}, key=lambda place: (-told[place], place))
        kept = (*order, *([last] if len(order) < 2 else []))
        return replace(made, kept=kept, unique=tuple(unique_fields([*x, *x_prime])))

    @property
    def names(self) -> tuple[str, ...]:
        """What each column is."""
        every = [fact.partition("\0")[0] for fact in self.facts]
        every += [*self.numbers, *(entry_name(*each) for each in self.entries)]
        every += [f"{name} of {each.block[0]}" for each in self.summaries for name in SUMMARIES]
        every += [UNSEEN]
        held = [self.held.name] if self.held.events else []
        return (*(every[at] for at in self.kept), *held, *(each.name for each in self.own))

    @property
    def scores(self) -> list[ColumnScore]:
        """Each column as a score: those that were given, then the clearest first."""
        flags, names = len(self.facts), self.names
        found = [ColumnScore(at, names[at], kept < flags) for at, kept in enumerate(self.kept)]
        given = enumerate(self.own, start=len(names) - len(self.own))
        own = [ColumnScore(at, each.name, method=each.method) for at, each in given]
        return [*own, *found]

    @property
    def shows(self) -> ColumnScore:
        """Whether an output shows a value of one side alone."""
        return ColumnScore(len(self.kept), self.held.name)

    def with_rare(self) -> tuple[Vocabulary, ColumnScore]:
        """One that counts rare facts as well, and their number as a score."""
        return replace(self, counts_rare=True), ColumnScore(len(self.names), "number of rare facts")

    @property
    def number(self) -> int:
        """Another one for another vocabulary."""
        public = repr([self.facts, self.numbers, self.entries, self.kept])
        return int(hashlib.sha256(public.encode("utf-8", "backslashreplace")).hexdigest()[:12], 16)

    def __call__(self, outputs: Sequence[Any]) -> Floats:
        """Outputs as rows, shape (n, columns)."""
        every = [canonical(output) for output in outputs]
        rows = [self.rows(every)]
        if self.own:
            given = np.array([[each.of(output) for each in self.own] for output in outputs])
            rows.append(np.where(np.isnan(given), 0.0, given))
        if self.counts_rare:
            rows.append(np.array([[float(len(form.facts - self.common))] for form in every]))
        return np.column_stack(rows)

    def rows(self, outputs: Iterable[Form]) -> Floats:
        """The same of their forms."""
        every = [*outputs]
        if not every:
            return np.zeros((0, len(self.names) - len(self.own)))
        rows = self._rows(every)[:, list(self.kept)]
        if not self.held.events:
            return rows
        return np.column_stack([rows, self.held.flags(every)])

    def _rows(self, every: Forms) -> Floats:
        single = np.array([self._row(form) for form in every])
        unknown = [float(len(form.facts - self.seen)) for form in every]
        rows = np.column_stack([single, *(summary(every) for summary in self.summaries), unknown])
        return np.where(np.isnan(rows) | (rows == 0), 0.0, rows)  # nor −0

    def _row(self, form: Form) -> list[float]:
        row = [float(fact in form.facts) for fact in self.facts]
        row += [_known(form.numbers.get(name), fill) for name, fill in self.numbers.items()]
        for (block, place), fill in self.entries.items():
            values = form.blocks.get(block, ())
            row.append(_known(values[place] if place < len(values) else None, fill))
        return row


def _known(value: Any, fill: float) -> float:
    return fill if value is None or value != value else float(value)


def _chosen_facts(
    x: Forms, x_prime: Forms
) -> tuple[tuple[str, ...], frozenset[str], frozenset[str]]:
    """Those whose rates differ most, all that were seen, and all that were seen more than once."""
    counts = [Counter(fact for form in side for fact in form.facts) for side in (x, x_prime)]
    every = counts[0] + counts[1]

    def clarity(fact: str) -> float:
        one, other = counts[0][fact] / len(x), counts[1][fact] / len(x_prime)
        middle = (one + other) / 2
        return abs(one - other) / math.sqrt(middle * (1 - middle))

    varied = sorted(fact for fact, count in every.items() if 1 < count < len(x) + len(x_prime))
    best = sorted(varied, key=clarity, reverse=True)[:MOST_FACTS]
    seen = every.most_common(MOST_SEEN)
    common = frozenset(fact for fact, count in seen if count > 1)
    return tuple(best), frozenset(fact for fact, _ in seen), common


def _chosen_numbers(
    sides: tuple[Forms, Forms],
) -> tuple[dict[str, float], dict[tuple[Block, int], float], tuple[_Summary, ...]]:
    """Numbers and entries that differ most, and summaries of the blocks that do."""
    names = sorted({name for side in sides for form in side for name in form.numbers})
    single = [
        np.array([[form.numbers.get(name, np.nan) for name in names] for form in side])
        for side in sides
    ]
    fills = scale(np.concatenate(single))[0]
    found: list[tuple[float, Any, float]] = [*zip(differences(*single), names, fills, strict=True)]
    blocks: list[tuple[float, _Summary]] = []
    for block in sorted({block for side in sides for form in side for block in form.blocks}):
        both = _stacked(block, [*sides[0], *sides[1]])
        x, x_prime = both[: len(sides[0])], both[len(sides[0]) :]
        told, summary = differences(x, x_prime), _Summary.of(block, x, x_prime)
        best = np.argsort(-told, kind="stable")[:MOST_NUMBERS]
        found += [(told[at], (block, int(at)), summary.scale[0][at]) for at in best]
        blocks.append((float(told.max(initial=0.0)), summary))
    chosen = sorted(found, key=lambda each: -each[0])[:MOST_NUMBERS]
    ranked = sorted(blocks, key=lambda each: -each[0])[:MOST_BLOCKS]
    return (
        {key: float(fill) for _, key, fill in chosen if isinstance(key, str)},
        {key: float(fill) for _, key, fill in chosen if not isinstance(key, str)},
        tuple(summary for _, summary in ranked),
    )


def _stacked(block: Block, forms: Forms) -> Floats:
    """The block of every form, NaN where it has none or is shorter."""
    found = [form.blocks.get(block, ()) for form in forms]
    rows = np.full((len(found), max(map(len, found), default=0)), np.nan)
    for row, values in zip(rows, found, strict=True):
        row[: len(values)] = values
    return rows
