"""Neighbours of given data under the relation of a plan, chosen to show mistakes.

Every one is described by a recipe (which unit, which move), never by a value, so that a recipe may
stand in a certificate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.auditing.rehearsal.columns import Columns
from dpaudit.auditing.rehearsal.constants import constants_of
from dpaudit.plan import AddRemove, MetricBall, Plan, Relation, ReplaceOne
from dpaudit.project import Move, Subject

__all__ = ["derived", "elsewhere", "moves"]

BEYOND = 1e3
"""How far beyond the range of a column an extreme value lies, in units of that range."""
EVERY = 60
"""So many units are moved one by one, where runs are quick."""
HEAVY = 25
"""How many more rows than any other a heavy unit has."""
NEW = "a category that is not in the data"


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
    near = derived(data, relation, unit, rng, constants)
    if varying:
        near = (replace(each, recipe=f"{each.recipe} (two steps)", hops=2) for each in near)
    return near, elsewhere(data, relation, unit, rng, constants)


def derived(
    data: Any,
    relation: Relation,
    unit: str,
    rng: np.random.Generator,
    constants: Sequence[float] = (),
) -> Iterator[Move]:
    """Neighbours, those that show most first; none if the data are of no known kind.

    Args:
        data: what a subject runs on.
        relation: says which data sets are neighbours.
        unit: a column of that name says whose row it is.
        rng: chooses some of the units.
        constants: numbers of the plan and the code, which are tried as values.
    """
    table = Columns.of(data, unit)
    if table is None or len(table) == 0:
        return
    makers: dict[type, Callable[[Columns, Relation, np.random.Generator], Iterator[Move]]] = {
        AddRemove: _add_remove,
        ReplaceOne: _replace,
        MetricBall: _within_ball,
    }
    yield from _built(makers.get(type(relation), _zero)(table, relation, rng))
    if isinstance(relation, AddRemove | ReplaceOne):
        yield from _built(_divided(table, relation))
        yield from _built(_at_constants(table, relation, constants))
        yield from _built(_every_unit(table, relation))


def elsewhere(
    data: Any,
    relation: Relation,
    unit: str,
    rng: np.random.Generator,
    constants: Sequence[float] = (),
) -> Iterator[Move]:
    """Other data that a chain of neighbours leads to, of values that occur in the data.

    No control flow and no result may differ on them either, given the same releases.
    """
    table = Columns.of(data, unit)
    if table is None or len(table) < 2 or isinstance(relation, MetricBall):
        return
    yield from _built(
        replace(each, hops=math.inf) for each in _far(table, relation, rng, constants)
    )


def _far(
    table: Columns, relation: Relation, rng: np.random.Generator, constants: Sequence[float]
) -> Iterator[Move]:
    rows = np.arange(len(table))
    if not isinstance(relation, AddRemove | ReplaceOne):
        zero = _zeroed(table)
        if zero:
            yield Move(table.changed(rows, zero), "every unit zeroed")
        return
    mixed = {name: each[rng.permutation(len(table))] for name, each in table.values().items()}
    shuffled = replace(table, arrays={**table.arrays, **mixed})
    yield Move(shuffled, "values shuffled among all rows")
    yield Move(table.changed(rows, _told(table, 0)), "every row given the values of row 0")
    cycled = table
    for place, constant in enumerate(constants):
        values = _numbered(table, constant)
        cycled = cycled.changed(rows[place :: len(constants)], values)
    if constants and table.numbers():
        yield Move(cycled, "every row given numbers of the plan and the code")
    if isinstance(relation, AddRemove) and len(table) > 3:
        yield Move(_without(table, np.arange(0, len(table), 2)), "every second row removed")
        yield Move(table.take([0]), "all rows but row 0 removed")


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


def _told(table: Columns, row: int) -> dict[str, Any]:
    return {name: each[row] for name, each in table.values().items()}


# -- by relation ----------------------------------------------------------------------------------


def _add_remove(table: Columns, _: Relation, rng: np.random.Generator) -> Iterator[Move]:
    for label, rows in _chosen(table, rng):
        if len(rows) < len(table):
            yield Move(_without(table, rows), f"{label} removed")
    label = "a row" if table.unit is None else "a unit of one row"
    for what, values, extreme in _variants(table):
        yield from _added(table, [0], values, f"{label} added with {what}", extreme)
    if table.unit != table.key:  # a unit may have several rows
        most = HEAVY + max(map(len, table.units()))
        yield from _added(table, [0] * most, {}, f"a unit of {most} rows added")
        others = np.resize(rng.permutation(len(table)), most).tolist()
        told = f"a unit of {most} rows that are each another unit's added"
        yield from _added(table, others, {}, told)
    one = table.take([0])
    if len(table) > 1:
        yield Move(one.take([]), "the only row removed", True, one)


def _replace(table: Columns, _: Relation, rng: np.random.Generator) -> Iterator[Move]:
    chosen = list(_chosen(table, rng))
    for label, rows in chosen:
        others = np.setdiff1d(np.arange(len(table)), rows)
        if len(others):
            values = _told(table, int(rng.choice(others)))
            yield Move(table.changed(rows, values), f"{label} given the values of another row")
    label, rows = chosen[0]
    for what, values, extreme in _variants(table):
        yield Move(table.changed(rows, values), f"{label} given {what}", extreme)


def _zero(table: Columns, _: Relation, rng: np.random.Generator) -> Iterator[Move]:
    zero = _zeroed(table)
    if not zero:
        return
    chosen = list(_chosen(table, rng))
    for label, rows in chosen:
        yield Move(table.changed(rows, zero), f"{label} zeroed")
    label, rows = chosen[0]
    for what, values, extreme in _variants(table):
        x = table.changed(rows, values)
        yield Move(x.changed(rows, zero), f"{label}, with {what}, zeroed", extreme, x)


def _divided(table: Columns, relation: Relation) -> Iterator[Move]:
    """Half of the units at one end and half at the other: where one unit decides a majority."""
    low, top = _ends(table.numbers())
    units, what = table.units(), "row" if table.unit is None else "unit"
    if not top or len(units) < 2:
        return
    half = len(units) // 2
    for above in (half, half + 1):
        x = table.changed(np.arange(len(table)), low).changed(np.concatenate(units[:above]), top)
        if isinstance(relation, AddRemove):
            told = f"{what} 0 of {above} with the largest values removed"
            yield Move(_without(x, units[0]), told, True, x)
        else:
            told = f"{what} 0 moved from the largest to the smallest values, as {above} {what}s are"
            yield Move(x.changed(units[0], low), told, True, x)


def _at_constants(table: Columns, relation: Relation, constants: Sequence[float]) -> Iterator[Move]:
    """A unit whose numbers are one of the plan's or the code's."""
    for place, constant in enumerate(constants):
        values = _numbered(table, constant)
        told = f"number {place} of the plan and the code"
        if values and isinstance(relation, AddRemove):
            yield from _added(table, [0], values, f"a unit of {told} added", True)
        elif values:
            yield Move(table.changed([0], values), f"row 0 given {told}", True)


def _numbered(table: Columns, number: float) -> dict[str, Any]:
    """A number for every column that can hold it."""
    values: dict[str, Any] = {}
    for name, each in table.numbers().items():
        if each.dtype.kind == "f":
            values[name] = number
        else:
            info = np.iinfo(each.dtype)
            values[name] = int(min(max(round(number), info.min), info.max))
    return _accepted(table, values)


def _accepted(table: Columns, values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if table.accepts(name, value)}


def _every_unit(table: Columns, relation: Relation) -> Iterator[Move]:
    """Each unit removed, or given the values of the next one."""
    units = table.units()
    if len(units) < 2:
        return
    for number, rows in enumerate(units[:EVERY]):
        if isinstance(relation, AddRemove):
            yield Move(_without(table, rows), f"unit {number} removed")
            continue
        other = (number + 1) % len(units)
        told = f"unit {number} given the values of unit {other}"
        yield Move(table.changed(rows, _told(table, int(units[other][0]))), told)


def _within_ball(table: Columns, relation: Relation, rng: np.random.Generator) -> Iterator[Move]:
    """One row moved by the radius: along axes, and at random."""
    assert isinstance(relation, MetricBall)
    names = [name for name, each in table.values().items() if each.dtype.kind == "f"]
    if len(names) != 1:  # of several columns the norm of a row is not known
        return
    (name,) = names
    for label, rows in _chosen(table, rng):
        row = np.atleast_1d(np.asarray(table.arrays[name][rows[0]], dtype=np.float64))
        for what, way in (("along its first axis", np.eye(row.size)[0]), ("at random", None)):
            step = rng.normal(size=row.size) if way is None else way
            step = step.reshape(row.shape) / np.linalg.norm(step)
            moved = (row + relation.radius * (1 - 1e-12) * step).reshape(
                table.arrays[name].shape[1:]
            )
            yield Move(table.changed(rows[:1], {name: moved}), f"{label} moved {what}")


# -- units and rows -------------------------------------------------------------------------------


def _chosen(table: Columns, rng: np.random.Generator) -> Iterator[tuple[str, NDArray[np.intp]]]:
    """Units worth a move, each once: with most rows, with extreme or rare values, and at random.

    Which unit that is, is told only of those at random: of the others it would tell of the data.
    """
    units = table.units()
    own = {int(row): number for number, rows in enumerate(units) for row in rows}
    what = "row" if table.unit is None else "unit"
    numbers: dict[int, str] = {}
    if table.unit is not None:
        numbers[int(np.argmax([len(rows) for rows in units]))] = "the unit with most rows"
    for name, each in list(table.numbers().items())[:4]:
        sizes = np.nan_to_num(each.reshape(len(each), -1).astype(np.float64))
        lengths = np.abs(sizes).max(axis=1)
        for row, which in (
            (np.argmax(lengths), "largest size"),
            (np.argmax(sizes[:, 0]), "largest value"),
            (np.argmin(sizes[:, 0]), "smallest value"),
        ):
            numbers.setdefault(own[int(row)], f"the {what} with the {which} of {name}")
    for told, place in table.rare():
        numbers.setdefault(own[place], f"a {what} with {told}")
    for number in rng.integers(len(units), size=2).tolist():
        numbers.setdefault(number, f"{what} {number}")
    for number, label in numbers.items():
        yield label, units[number]


def _ends(numbers: Mapping[str, NDArray[Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The smallest and the largest values of columns."""
    low = {name: np.nanmin(each, axis=0) for name, each in numbers.items()}
    top = {name: np.nanmax(each, axis=0) for name, each in numbers.items()}
    return {n: _plain(each) for n, each in low.items()}, {n: _plain(e) for n, e in top.items()}


def _plain(number: Any) -> Any:
    """A number of Python's, which is what columns of objects hold."""
    return number.item() if np.ndim(number) == 0 else number


def _without(table: Columns, rows: NDArray[np.intp]) -> Columns:
    return table.take(np.delete(np.arange(len(table)), rows))


def _added(
    table: Columns,
    rows: Sequence[int],
    values: Mapping[str, Any],
    recipe: str,
    extreme: bool = False,
) -> Iterator[Move]:
    """Copies of rows after all others, as those of a new unit; none where it can have no name."""
    new = np.arange(len(table), len(table) + len(rows))
    longer = table.take([*range(len(table)), *rows]).changed(new, values)
    named = {table.unit: new.reshape(1, -1), table.key: new.reshape(-1, 1)}
    for name, groups in named.items():
        labels = [] if name is None else table.unused(name, len(groups))
        if name is not None and len(labels) < len(groups):
            return
        for which, label in zip(groups, labels, strict=False):
            longer = longer.changed(which, {str(name): label})
    yield Move(longer, recipe, extreme)


def _zeroed(table: Columns) -> dict[str, Any]:
    truths = {name: False for name, each in table.values().items() if each.dtype.kind == "b"}
    return _numbered(table, 0.0) | truths


def _variants(table: Columns) -> Iterator[tuple[str, dict[str, Any], bool]]:
    """Values of a row: as the data have them, and (True) as they have not, but others could."""
    for what, values, extreme in _wanted(table):
        values = _accepted(table, values)
        if values:
            yield what, values, extreme


def _wanted(table: Columns) -> Iterator[tuple[str, dict[str, Any], bool]]:
    columns, numbers = table.values(), table.numbers()
    reals = [name for name, each in numbers.items() if each.dtype.kind == "f"]
    words = [name for name, each in columns.items() if _is_text(each)]
    if numbers:
        low, top = _ends(numbers)
        yield "the largest values", top, False
        yield "the smallest values", low, False
        yield "values far above all others", _beyond(numbers, 1), True
        yield "values far below all others", _beyond(numbers, -1), True
    if reals:
        yield "NaN", dict.fromkeys(reals, np.nan), True
    if words:
        yield NEW, dict.fromkeys(words, NEW), True
    for name, each in columns.items():
        whole = _elements(each)
        if whole:
            yield "a list of all elements", {name: whole}, False
            yield "a list of one element many times", {name: whole[:1] * HEAVY}, False


def _elements(column: NDArray[Any]) -> list[Any]:
    """What lists in a column hold, each once; nothing if it holds anything but lists."""
    if column.dtype.kind != "O" or not all(isinstance(each, list) for each in column):
        return []
    found: list[Any] = []
    for element in (element for each in column for element in each):
        if element not in found:
            found.append(element)
    return found


def _is_text(column: NDArray[Any]) -> bool:
    return column.dtype.kind == "O" and all(isinstance(each, str) for each in column)


def _beyond(numbers: dict[str, NDArray[Any]], sign: int) -> dict[str, Any]:
    moved: dict[str, Any] = {}
    for name, each in numbers.items():
        high, low = np.nanmax(each), np.nanmin(each)
        width = max(float(high) - float(low), abs(float(high)), abs(float(low)), 1.0)
        far = (float(high) if sign > 0 else float(low)) + sign * BEYOND * width
        if each.dtype.kind in "iu":
            info = np.iinfo(each.dtype)
            moved[name] = int(min(max(far, info.min), info.max))
        else:
            moved[name] = far
    return moved
