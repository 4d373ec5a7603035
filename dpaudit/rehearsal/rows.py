"""Rows and units of a table: which are worth a move, and what they can be given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.project import Move
from dpaudit.rehearsal.columns import Columns

BEYOND = 1e3
"""How far beyond the range of a column an extreme value lies, in units of that range."""
HEAVY = 25
"""How many more rows than any other a heavy unit has."""
ALONE = 4
"""So many numbers of a row are moved one by one."""
NEW = "a category that is not in the data"


def row_values(table: Columns, row: int) -> dict[str, Any]:
    """Return what a row tells, by column."""
    return {name: each[row] for name, each in table.values().items()}


def numbered(table: Columns, number: float) -> dict[str, Any]:
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


def chosen(table: Columns, rng: np.random.Generator) -> Iterator[tuple[str, NDArray[np.intp]]]:
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


def ends(numbers: Mapping[str, NDArray[Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The smallest and the largest values of columns."""
    low = {name: np.nanmin(each, axis=0) for name, each in numbers.items()}
    top = {name: np.nanmax(each, axis=0) for name, each in numbers.items()}
    return {n: _plain(each) for n, each in low.items()}, {n: _plain(e) for n, e in top.items()}


def _plain(number: Any) -> Any:
    """A number of Python's, which is what columns of objects hold."""
    return number.item() if np.ndim(number) == 0 else number


def without(table: Columns, rows: NDArray[np.intp]) -> Columns:
    """The table but for some rows."""
    return table.take(np.delete(np.arange(len(table)), rows))


def added(
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


def others_given(before: Columns, after: Columns) -> Iterator[tuple[str, Columns]]:
    """A table after a move, with all rows that it left alone given zeros, or one end's values."""
    if len(after) < len(before):
        return
    one, two = before.values(), after.values()
    same = [
        row
        for row in range(len(before))
        if all(np.array_equal(one[name][row], two[name][row]) for name in one)
    ]
    low, top = ends(before.numbers())
    named = ("zeros", zeroed(before)), ("the smallest values", low), ("the largest values", top)
    for what, values in named:
        if same and values:
            told_as = f"all other rows given {what}"
            yield told_as, after.changed(same, _accepted(after, values))


def zeroed(table: Columns) -> dict[str, Any]:
    """Zeros for every column that can hold one."""
    truths = {name: False for name, each in table.values().items() if each.dtype.kind == "b"}
    return numbered(table, 0.0) | truths


def variants(table: Columns) -> Iterator[tuple[str, dict[str, Any], bool]]:
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
        low, top = ends(numbers)
        yield "the largest values", top, False
        yield "the smallest values", low, False
        yield "values far above all others", _beyond(numbers, 1), True
        yield "values far below all others", _beyond(numbers, -1), True
    if reals:
        yield "NaN", dict.fromkeys(reals, np.nan), True
    if words:
        yield NEW, dict.fromkeys(words, NEW), True
    if numbers:
        yield from _apart(numbers, low, top, "")
        yield from _apart(numbers, _beyond(numbers, -1), _beyond(numbers, 1), ", far beyond")
    for name, each in columns.items():
        whole = _elements(each)
        if whole:
            yield "a list of all elements", {name: whole}, False
            yield "a list of one element many times", {name: whole[:1] * HEAVY}, False


def _apart(
    numbers: Mapping[str, NDArray[Any]], low: Mapping[str, Any], top: Mapping[str, Any], far: str
) -> Iterator[tuple[str, dict[str, Any], bool]]:
    """Row 0 with one number at an end, and with its numbers at different ends in turn.

    Where all move the same way, a direction or a product that they make may stay as it is.
    """
    own = {name: np.array(each[0]) for name, each in numbers.items()}
    places = [(name, at) for name, each in own.items() for at in range(each.size)]
    moves = [({place: top}, f"number {n} alone{far}") for n, place in enumerate(places[:ALONE])]
    turns = {place: (top, low)[n % 2] for n, place in enumerate(places)}
    moves.append((turns, f"numbers at different ends in turn{far}"))
    for moved, what in moves if len(places) > 1 else ():
        values = {name: each.copy() for name, each in own.items()}
        for (name, at), end in moved.items():
            values[name].flat[at] = np.broadcast_to(end[name], values[name].shape).flat[at]
        yield what, {name: _plain(each[()]) for name, each in values.items()}, bool(far)


def _elements(column: NDArray[Any]) -> list[Any]:
    """Return what lists in a column hold, each once; nothing if it holds anything but lists."""
    if column.dtype.kind != "O" or not all(isinstance(each, list) for each in column):
        return []
    if len(column) > 1 and len({len(each) for each in column}) == 1:
        return []  # points of one dimension
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
