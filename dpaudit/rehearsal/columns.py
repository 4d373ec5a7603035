"""Data of any usual container as named columns, of which neighbours can be made.

Lists, tuples, arrays, mappings, frames of pandas and polars, and data sets of torch are taken apart
into arrays with one entry for each row, and put together again with the types that they had.

Which rows and units are worth a move, and what they can be given, is found here too.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.project import Move
from dpaudit.rehearsal.frames import (
    PLACE,
    VALUE,
    Arrays,
    column,
    column_of,
    entries,
    frame,
    hashable,
    labels_like,
    numeric,
    shared,
)

KEY = "key"
ROWS = (None, "row", "record")
"""Units that own one row each, and have no names."""
ONE_EACH = (*ROWS, "response", "answer", "event", "entry", "example", "observation")
"""Units that have no more than one row each."""
RARE = 2
"""So many of the rarest values of a column are looked for."""
FEW = 20
"""So many lists of one mapping may be the columns of a table; more are those of units."""


@dataclass(frozen=True)
class Columns:
    """A table of rows, whatever held it.

    Attributes:
        arrays: by name, each with one entry for every row along its first axis. Of objects, those
            missing are None.
        build: makes the original container of such arrays.
        unit: name of the column that says whose row it is; without it every row is one unit's.
        key: name of a column that names the rows, each by another name.
        nan: whether a number may be NaN.
    """

    arrays: Arrays
    build: Callable[[Arrays], Any]
    unit: str | None = None
    key: str | None = None
    nan: bool = True

    @classmethod
    def of(cls, data: Any, unit: str | None = None) -> Columns | None:
        """The columns of a data set, or None if it is of no known kind.

        Args:
            data: any object.
            unit: a column of that name, or one like it, says whose row it is. Where those of
                the latter are all different, each unit has one row. Without one, texts that are
                all different are taken for such names, unless the unit is a row.

        Example:
            >>> table = Columns.of([3, 1, 2])
            >>> table.build(table.take([0, 2]).arrays)
            [3, 2]
        """
        found = None
        with suppress(Exception):  # foreign containers that are not what they seem
            readers = (read(data, unit) for read in _READERS)
            found = next((made for made in readers if made is not None), None)
        if found is None or len({len(each) for each in found.arrays.values()}) != 1:
            return None
        own = column_of(found.arrays, unit, near=not found.key and unit not in ROWS)
        if own is not None:
            once = own != unit and len(set(map(hashable, found.arrays[own]))) == len(found)
            return replace(found, unit=own, key=own if once else found.key)
        key = found.key or (None if unit in ROWS else _identifier(found.values()))
        return replace(found, unit=key, key=key)

    def __len__(self) -> int:
        return len(next(iter(self.arrays.values())))

    @property
    def data(self) -> Any:
        """The container."""
        return self.build(self.arrays)

    def take(self, rows: Sequence[int] | NDArray[np.intp]) -> Columns:
        """The table of some of the rows, in that order, possibly several times."""
        index = np.asarray(rows, dtype=np.intp)
        return replace(self, arrays={name: each[index] for name, each in self.arrays.items()})

    def changed(self, rows: Sequence[int] | NDArray[np.intp], values: Mapping[str, Any]) -> Columns:
        """The table with one other value of each of some columns in all of some rows."""
        arrays = dict(self.arrays)
        for name, value in values.items():
            arrays[name] = new = arrays[name].copy()
            if new.dtype.kind != "O":
                new[list(rows)] = value
                continue
            for row in rows:  # a sequence may be the value of one row
                new[row] = value
        return replace(self, arrays=arrays)

    def accepts(self, name: str, value: Any) -> bool:
        """Tell whether a value of a column can be put into the original container."""
        with warnings.catch_warnings(action="ignore"), suppress(Exception):
            self.take([0]).changed([0], {name: value}).data  # noqa: B018 - it may raise
            return True
        return False

    def units(self) -> list[NDArray[np.intp]]:
        """The rows of each unit, in the order in which they first appear."""
        if self.unit is None:
            return [np.array([row]) for row in range(len(self))]
        labels = [hashable(label) for label in self.arrays[self.unit]]
        rows: dict[Any, list[int]] = {}
        for row, label in enumerate(labels):
            rows.setdefault(label, []).append(row)
        return [np.array(each) for each in rows.values()]

    def values(self) -> dict[str, NDArray[Any]]:
        """The columns that hold what units tell, not who they are."""
        names = (self.unit, self.key, PLACE)
        return {name: each for name, each in self.arrays.items() if name not in names}

    def numbers(self) -> dict[str, NDArray[Any]]:
        """The values that are numbers; another one of its column in place of each missing."""
        found = {name: numeric(each) for name, each in self.values().items()}
        return {name: each for name, each in found.items() if each is not None}

    def rare(self) -> Iterator[tuple[str, int]]:
        """A row with each of the rarest values of the first columns where many share a value."""
        for name, each in list(self.values().items())[:4]:
            labels = [hashable(label) for label in each] if each.dtype.kind in "OUSbiu" else []
            counts = Counter(labels)
            if 1 < len(counts) <= len(labels) / 2:
                for number, (label, _) in enumerate(counts.most_common()[: -RARE - 1 : -1]):
                    yield f"rare value {number} of {name}", labels.index(label)

    def unused(self, name: str, count: int = 1) -> list[Any]:
        """New labels of a column, of the type of its others; fewer where there are none."""
        taken = {hashable(label) for label in self.arrays[name]}
        found: list[Any] = []
        for label in labels_like(self.arrays[name]):
            if len(found) < count and self.accepts(name, label):
                stored = hashable(self.take([0]).changed([0], {name: label}).arrays[name][0])
                if stored not in taken:  # it may have been cut to the width of the column
                    taken.add(stored)
                    found.append(label)
        return found


def whose(data: Any, unit: str) -> str:
    """A column that may say whose row it is, where each row is taken as one unit's; or nothing."""
    table = None if unit in ONE_EACH else Columns.of(data, unit)
    if table is None or table.unit != table.key:
        return ""
    if isinstance(data, dict) and table.key is not None and table.key not in data:
        return ""  # its keys are the units
    return shared({name: each for name, each in table.arrays.items() if name != PLACE})


def _identifier(arrays: Arrays) -> str | None:
    """A column of texts beside others, each there once."""
    if len(arrays) < 2:
        return None
    for name, each in arrays.items():
        texts = each.dtype.kind in "OU" and all(isinstance(text, str) for text in each)
        if texts and 1 < len(each) == len(set(each.tolist())):
            return name
    return None


def _array(data: Any, _: str | None) -> Columns | None:
    if not isinstance(data, np.ndarray) or data.ndim == 0:
        return None
    if data.dtype.names:
        names = data.dtype.names

        def packed(arrays: Arrays) -> NDArray[Any]:
            made = np.empty(arrays[names[0]].shape, dtype=data.dtype)
            for name in names:
                made[name] = arrays[name]
            return made.view(type(data))

        return Columns({name: np.asarray(data[name]) for name in names}, packed)
    return Columns({VALUE: data}, lambda arrays: arrays[VALUE])


def _alike(original: Any, entries: Sequence[Any]) -> Any:
    """A list or tuple of the same class with other entries."""
    if isinstance(original, tuple):
        return original._make(entries) if hasattr(original, "_make") else tuple(entries)
    made = copy(original)
    made[:] = entries
    return made


def _filled(original: dict[Any, Any], names: Sequence[Any], values: Sequence[Any]) -> Any:
    """A mapping of the same class with other entries."""
    made = copy(original)
    made.clear()
    made.update(dict(zip(names, values, strict=True)))
    return made


def _list(data: Any, _: str | None) -> Columns | None:
    if not isinstance(data, list | tuple) or not data:
        return None
    if isinstance(data, tuple) and all(isinstance(e, np.ndarray) and e.ndim for e in data):
        parts = getattr(data, "_fields", [f"part {place}" for place in range(len(data))])
        named = dict(zip(parts, data, strict=True))
        return Columns(named, lambda made: _alike(data, list(made.values())))
    if hasattr(data, "_fields"):  # one record is no list of rows
        return None
    arrays, together = _fields(data)
    return Columns(arrays, lambda made: _alike(data, together(made)))


def _mapping(data: Any, unit: str | None) -> Columns | None:
    """One of equally long columns, or a mapping from units to what they tell.

    Lists of one length are the columns of a table if one of them has the name of the unit, or if
    they are at most 20, fewer than they are long, named by texts and hold no further sequences;
    arrays if they are fewer than they are long. Anything else is read as units.
    """
    if not isinstance(data, dict) or not data:
        return None
    names, values = list(data), list(data.values())
    if _is_table(data, unit):
        arrays = {str(n): e if isinstance(e, np.ndarray) else column(e) for n, e in data.items()}

        def table(made: Arrays) -> Any:
            columns = zip(values, made.values(), strict=True)
            return _filled(
                data,
                names,
                [e if isinstance(v, np.ndarray) else _alike(v, entries(e)) for v, e in columns],
            )

        return Columns(arrays, table)
    if any(frame(each) is not None for each in values):
        return None  # tables that belong together, and nobody says how
    told, together = _fields(values)
    key = next(name for name in (KEY, *(f"{KEY} {n}" for n in range(99))) if name not in told)
    return Columns(
        {key: column(names)} | told,
        lambda made: _filled(data, entries(made[key]), together(made)),
        key=key,
    )


def _is_table(data: dict[Any, Any], unit: str | None) -> bool:
    values = list(data.values())
    arrays = [isinstance(each, np.ndarray) and each.ndim > 0 for each in values]
    if not all(known or isinstance(each, list) for known, each in zip(arrays, values, strict=True)):
        return False
    size = len(values[0])
    if size < 2 or any(len(each) != size for each in values):
        return False
    if unit in data or all(arrays):
        return unit in data or len(data) < size
    nested = any(isinstance(e, list | tuple | dict | set | np.ndarray) for v in values for e in v)
    texts = all(isinstance(name, str) for name in data)
    return texts and not nested and len(data) <= FEW and len(data) < size


def _parts(row: Any) -> dict[Any, Any]:
    """The fields of a record by name; none of anything else."""
    if type(row) is dict:
        return row
    if type(row) is tuple or (isinstance(row, tuple) and hasattr(row, "_fields")):
        return dict(zip(getattr(row, "_fields", range(len(row))), row, strict=True))
    if is_dataclass(row) and not isinstance(row, type):
        return {each.name: getattr(row, each.name) for each in fields(row)}
    return {}


def _record(like: Any, parts: dict[Any, Any]) -> Any:
    """A record of the same class with other fields."""
    if isinstance(like, tuple):
        return _alike(like, list(parts.values()))
    return parts if type(like) is dict else type(like)(**parts)


def _fields(rows: Sequence[Any]) -> tuple[dict[str, NDArray[Any]], Callable[[Arrays], list[Any]]]:
    """Rows as columns, and what makes rows of columns again."""
    first, parts = rows[0], [_parts(row) for row in rows]
    names = list(parts[0])
    alike = len({str(name) for name in names}) == len(names) > 0
    alike = alike and all(type(row) is type(first) for row in rows)
    if alike and all(each.keys() == parts[0].keys() for each in parts):
        with suppress(Exception):  # of a class that makes something else of its fields
            again = _parts(_record(first, dict(parts[0])))
            if all(again[name] is value for name, value in parts[0].items()):
                arrays = {str(name): column([each[name] for each in parts]) for name in names}

                def together(made: Arrays) -> list[Any]:
                    columns = [entries(made[str(name)]) for name in names]
                    rows = zip(*columns, strict=True)
                    return [_record(first, dict(zip(names, row, strict=True))) for row in rows]

                return arrays, together
    return {VALUE: column(rows)}, lambda made: entries(made[VALUE])


def _frame(data: Any, _: str | None) -> Columns | None:
    found = frame(data)
    return None if found is None else Columns(*found)


def _torch(data: Any, _: str | None) -> Columns | None:
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    if isinstance(data, torch.Tensor) and data.ndim:
        return Columns({VALUE: data.numpy()}, lambda made: torch.from_numpy(made[VALUE].copy()))
    if isinstance(data, torch.utils.data.TensorDataset):
        arrays = {f"tensor {n}": each.numpy() for n, each in enumerate(data.tensors)}
        return Columns(
            arrays,
            lambda made: torch.utils.data.TensorDataset(
                *(torch.from_numpy(each.copy()) for each in made.values())
            ),
        )
    if isinstance(data, torch.utils.data.Dataset) and hasattr(data, "__len__"):
        rows = column([data[row] for row in range(len(data))])
        return Columns({VALUE: rows}, lambda made: entries(made[VALUE]))
    return None


_READERS = (_array, _frame, _torch, _list, _mapping)


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
    if reals and table.nan:
        yield "NaN", dict.fromkeys(reals, np.nan), True
    if words:
        yield NEW, dict.fromkeys(words, NEW), True
    if numbers:
        yield from _apart(numbers, low, top, "")
        yield from _apart(numbers, _beyond(numbers, -1), _beyond(numbers, 1), ", far beyond")


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
