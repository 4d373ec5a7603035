"""Neighbours of given data under the relation of a plan, chosen to show mistakes.

Every one is described by a recipe (which unit, which move), never by a value, so that a recipe may
stand in a certificate. A rule about values changes at a number that the plan or the code names.
Where few rows are, each counts for much: a bound, a mean or a choice that is made of the data moves
far.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from types import CodeType
from typing import Any

import numpy as np

from dpaudit.plan import AddRemove, MetricBall, Plan, Relation, ReplaceOne
from dpaudit.project import Move, Subject
from dpaudit.rehearsal.columns import (
    HEAVY,
    Columns,
    added,
    chosen,
    ends,
    numbered,
    others_given,
    row_values,
    variants,
    without,
    zeroed,
)

MOST_CONSTANTS = 12
_USUAL = (0.0, 1.0)
_BASES = {"abc", "builtins", "dpaudit.project.subject", "dpaudit.base.fields"}


def constants_of(subject: Any, plan: Plan) -> tuple[float, ...]:
    """Numbers that the fields of a subject, its plan and the code of its run name, each once.

    Example:
        >>> from dataclasses import dataclass
        >>> @dataclass(frozen=True)
        ... class Code:
        ...     limit: float = 3.0
        ...     def run(self, rows):
        ...         return [row for row in rows if row > 0.25]
        >>> from dpaudit import AddRemove, Invocation, Laplace, PrivacyUnit, TrustModel
        >>> plan = Plan.of(Invocation(Laplace(2.0, clip=(0.0, 5.0)), 5.0, PrivacyUnit("row"),
        ...                           AddRemove(), TrustModel.CENTRAL))
        >>> constants_of(Code(), plan)
        (0.0, 1.0, 3.0, 5.0, 0.25)
    """
    found = dict.fromkeys(_USUAL)
    for number in (*_of_fields(subject), *_of_plan(plan), *_of_code(type(subject))):
        if math.isfinite(number) and abs(number) < 1e15:
            found.setdefault(float(number))
    return tuple(found)[:MOST_CONSTANTS]


def _of_fields(subject: Any) -> Iterator[float]:
    if is_dataclass(subject):
        for each in fields(subject):
            yield from _numbers(getattr(subject, each.name))


def _of_plan(plan: Plan) -> Iterator[float]:
    for each in plan.invocations:
        if each.contribution is not None:
            yield each.contribution.bound
        for name in ("clip", "clip_norm"):
            yield from _numbers(getattr(each.mechanism, name, None))


def _of_code(kind: type) -> Iterator[float]:
    """Literals of methods, own and inherited, and of functions in them, those of ``run`` first."""
    bases = [base for base in kind.__mro__ if base.__module__ not in _BASES]
    own = [each for base in bases for each in vars(base).values() if hasattr(each, "__code__")]
    for member in sorted(own, key=lambda each: each.__name__ != "run"):
        yield from literals(member.__code__)


def literals(code: CodeType | None) -> Iterator[float]:
    """Numbers that some code names, and functions within it; none of no code."""
    for constant in () if code is None else code.co_consts:
        if isinstance(constant, CodeType):
            yield from literals(constant)
        else:
            yield from _numbers(constant)


def _numbers(value: Any) -> Iterator[float]:
    if isinstance(value, tuple | list):
        for each in value:
            yield from _numbers(each)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield value


FEW = (2, 4)
"""Units of data that are made to be few."""


def few(table: Columns, relation: Relation) -> Iterator[Move]:
    """Few units of one row; or, where their number is public, all alike but for one."""
    low, top = ends(table.numbers())
    if not top:
        return
    if not isinstance(relation, AddRemove):
        alike = table.changed(np.arange(len(table)), row_values(table, 0))
        for what, values in (("largest", top), ("smallest", low)):
            yield Move(
                alike.changed([0], values),
                f"row 0 given the {what} values, as all rows are alike",
                True,
                alike,
            )
        return
    units = table.units()
    for size, first in zip(FEW, (top, low), strict=True):
        if size >= len(units):
            return
        base = table.take([int(rows[0]) for rows in units[:size]])
        base = base.changed(np.arange(len(base)), low)  # what is noisy is often below 0 there
        base = base.changed(base.units()[0], first)
        for number, rows in enumerate(base.units()[:2]):
            yield Move(without(base, rows), f"unit {number} of {size} removed", True, base)
        for what, values in (("largest", top), ("smallest", low)):
            recipe = f"a unit added to {size} with the {what} values"
            for move in added(base, [0], values, recipe, extreme=True):
                yield replace(move, base=base)


EVERY = 60
"""So many units are moved one by one, where runs are quick."""


def moves(
    subject: Subject, data: Any, plan: Plan, rng: np.random.Generator, *, absent: bool = False
) -> tuple[Iterator[Move], Iterator[Move]]:
    """Neighbours of the data of a subject, and data further away.

    They are its own, or else those that can be derived. Where a plan samples units that may be
    absent, whoever is sampled depends on how many rows there are: rows are then replaced, which is
    two steps of the relation, and a mistake below twice what is declared is not seen; but not if
    they shall be ``absent``.
    """
    own = subject.neighbours(data, rng)
    if own is not None:
        return iter(own), iter(())
    unit, constants = str(plan.unit), constants_of(subject, plan)
    sampled = not absent and any(each.sampling for each in plan.invocations)
    varying = isinstance(plan.relation, AddRemove) and sampled
    relation = ReplaceOne() if varying else plan.relation
    nan = subject.may_hold_nan
    near = derive_neighbours(data, relation, unit, rng, constants, nan=nan)
    if varying:
        near = (replace(each, recipe=f"{each.recipe} (two steps)", hops=2) for each in near)
    return near, elsewhere(data, relation, unit)


def derive_neighbours(
    data: Any,
    relation: Relation,
    unit: str,
    rng: np.random.Generator,
    constants: Sequence[float] = (),
    *,
    nan: bool = True,
) -> Iterator[Move]:
    """Neighbours, those that show most first; none if the data are of no known kind.

    Args:
        data: what a subject runs on.
        relation: says which data sets are neighbours.
        unit: a column of that name says whose row it is.
        rng: chooses some of the units.
        constants: numbers of the plan and the code, which are tried as values.
        nan: whether NaN is tried as one.
    """
    table = Columns.of(data, unit)
    if table is None or len(table) == 0:
        return
    table = replace(table, nan=nan)
    makers: dict[type, Callable[[Columns, Relation, np.random.Generator], Iterator[Move]]] = {
        AddRemove: _add_remove,
        ReplaceOne: _replace,
        MetricBall: _within_ball,
    }
    yield from _built(makers.get(type(relation), _zero)(table, relation, rng))
    if isinstance(relation, AddRemove | ReplaceOne):
        yield from _built(_divided(table, relation))
        yield from _built(_at_constants(table, relation, constants))
        yield from _built(few(table, relation))
        yield from _built(_every_unit(table, relation))


def elsewhere(data: Any, relation: Relation, unit: str) -> Iterator[Move]:
    """Other data that a chain of neighbours leads to, of values that occur in the data.

    No control flow and no result may differ on them either, given the same releases.
    """
    table = Columns.of(data, unit)
    if table is not None and isinstance(relation, AddRemove) and len(table) > 1:
        one = table.take([0])
        yield from _built(iter([Move(one, "all rows but row 0 removed", hops=math.inf)]))


def whoever_else(data: Any, move: Move, unit: str) -> Iterator[Move]:
    """The same move where all other rows have other values; none if the data are of no known kind.

    Args:
        data: what the move begins with.
        move: a neighbour.
        unit: a column of that name says whose row it is.
    """
    before, after = Columns.of(data, unit), Columns.of(move.data, unit)
    if before is not None and after is not None:
        yield from _built(
            Move(made, f"{move.recipe}, {told_as}", hops=math.inf)
            for told_as, made in others_given(before, after)
        )


def _built(found: Iterator[Move]) -> Iterator[Move]:
    """Moves of data in place of tables; none where a container cannot hold what it should."""
    with suppress(Exception):
        for move in found:
            made = None
            with suppress(Exception):
                base = None if move.base is None else move.base.data
                made = replace(move, data=move.data.data, base=base)
            if made is not None:
                yield made


# -- by relation ----------------------------------------------------------------------------------


def _add_remove(table: Columns, _: Relation, rng: np.random.Generator) -> Iterator[Move]:
    for label, rows in chosen(table, rng):
        if len(rows) < len(table):
            yield Move(without(table, rows), f"{label} removed")
    label = "a row" if table.unit is None else "a unit of one row"
    for what, values, extreme in variants(table):
        yield from added(table, [0], values, f"{label} added with {what}", extreme)
    if table.unit != table.key:  # a unit may have several rows
        most = HEAVY + max(map(len, table.units()))
        for move in added(table, [0] * most, {}, f"a unit of {most} rows added"):
            yield move
            order = [*range(len(table), len(table) + most), *range(len(table))]
            yield replace(move, data=move.data.take(order), recipe=f"{move.recipe}, before others")
        others = np.resize(rng.permutation(len(table)), most).tolist()
        recipe = f"a unit added with {most} rows, each a copy of another unit's row"
        yield from added(table, others, {}, recipe)
    one = table.take([0])
    if len(table) > 1:
        yield Move(one.take([]), "the only row removed", True, one)


def _replace(table: Columns, _: Relation, rng: np.random.Generator) -> Iterator[Move]:
    found = list(chosen(table, rng))
    for label, rows in found:
        others = np.setdiff1d(np.arange(len(table)), rows)
        if len(others):
            values = row_values(table, int(rng.choice(others)))
            yield Move(table.changed(rows, values), f"{label} given the values of another row")
    label, rows = found[0]
    for what, values, extreme in variants(table):
        yield Move(table.changed(rows, values), f"{label} given {what}", extreme)


def _zero(table: Columns, _: Relation, rng: np.random.Generator) -> Iterator[Move]:
    zero = zeroed(table)
    if not zero:
        return
    found = list(chosen(table, rng))
    for label, rows in found:
        yield Move(table.changed(rows, zero), f"{label} zeroed")
    label, rows = found[0]
    for what, values, extreme in variants(table):
        x = table.changed(rows, values)
        yield Move(x.changed(rows, zero), f"{label}, with {what}, zeroed", extreme, x)


def _divided(table: Columns, relation: Relation) -> Iterator[Move]:
    """Half of the units at one end and half at the other: where one unit decides a majority."""
    low, top = ends(table.numbers())
    units, what = table.units(), "row" if table.unit is None else "unit"
    if not top or len(units) < 2:
        return
    half = len(units) // 2
    for above in (half, half + 1):
        x = table.changed(np.arange(len(table)), low).changed(np.concatenate(units[:above]), top)
        if isinstance(relation, AddRemove):
            recipe = f"{what} 0 of {above} with the largest values removed"
            yield Move(without(x, units[0]), recipe, True, x)
        else:
            recipe = f"{what} 0 moved from the largest to the smallest, as {above} {what}s are"
            yield Move(x.changed(units[0], low), recipe, True, x)


def _at_constants(table: Columns, relation: Relation, constants: Sequence[float]) -> Iterator[Move]:
    """A unit whose numbers are one of the plan's or the code's, or between two of them."""
    ordered = sorted(constants)
    between = [(low + high) / 2 for low, high in itertools.pairwise(ordered)]
    numbers = [(number, f"number {place}") for place, number in enumerate(constants)]
    numbers += [
        (number, f"the middle of two numbers ({place})") for place, number in enumerate(between)
    ]
    for number, name in numbers:
        values, told_as = numbered(table, number), f"{name} of the plan and the code"
        if values and isinstance(relation, AddRemove):
            yield from added(table, [0], values, f"a unit of {told_as} added", True)
        elif values:
            yield Move(table.changed([0], values), f"row 0 given {told_as}", True)


def _every_unit(table: Columns, relation: Relation) -> Iterator[Move]:
    """Each unit removed, or given the values of the next one."""
    units = table.units()
    if len(units) < 2:
        return
    for number, rows in enumerate(units[:EVERY]):
        if isinstance(relation, AddRemove):
            yield Move(without(table, rows), f"unit {number} removed")
            continue
        other = (number + 1) % len(units)
        recipe = f"unit {number} given the values of unit {other}"
        yield Move(table.changed(rows, row_values(table, int(units[other][0]))), recipe)


def _within_ball(table: Columns, relation: Relation, rng: np.random.Generator) -> Iterator[Move]:
    """One row moved by the radius: along axes, and at random."""
    assert isinstance(relation, MetricBall)
    names = [name for name, each in table.values().items() if each.dtype.kind == "f"]
    if len(names) != 1:  # of several columns the norm of a row is not known
        return
    (name,) = names
    for label, rows in chosen(table, rng):
        row = np.atleast_1d(np.asarray(table.arrays[name][rows[0]], dtype=np.float64))
        for what, way in (("along its first axis", np.eye(row.size)[0]), ("at random", None)):
            step = rng.normal(size=row.size) if way is None else way
            step = step.reshape(row.shape) / np.linalg.norm(step)
            moved = (row + relation.radius * (1 - 1e-12) * step).reshape(
                table.arrays[name].shape[1:]
            )
            yield Move(table.changed(rows[:1], {name: moved}), f"{label} moved {what}")
