"""Data of any usual container as named columns, of which neighbours can be made.

Lists, tuples, arrays, mappings, frames of pandas and polars, and data sets of torch are taken apart
into arrays with one entry for each row, and put together again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Columns"]

Arrays = Mapping[str, NDArray[Any]]
VALUE = "value"
KEY = "key"


@dataclass(frozen=True)
class Columns:
    """A table of rows, whatever held it.

    Attributes:
        arrays: by name, each with one entry for every row along its first axis.
        build: makes the original container of such arrays.
        unit: name of the column that says whose row it is; without it every row is one unit's.
    """

    arrays: Arrays
    build: Callable[[Arrays], Any]
    unit: str | None = None

    @classmethod
    def of(cls, data: Any, unit: str | None = None) -> Columns | None:
        """The columns of a data set, or None if it is of no known kind.

        Args:
            data: any object.
            unit: a column of that name says whose row it is.

        Example:
            >>> table = Columns.of([3, 1, 2])
            >>> table.build(table.take([0, 2]).arrays)
            [3, 2]
        """
        found = next((made for read in _READERS if (made := read(data)) is not None), None)
        if found is None or len({len(each) for each in found.arrays.values()}) != 1:
            return None
        own = unit if unit in found.arrays else found.unit or _identifier(found.arrays)
        return replace(found, unit=own)

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

    def changed(self, rows: Sequence[int], values: Mapping[str, Any]) -> Columns:
        """The table with other values in some rows of some columns."""
        arrays = dict(self.arrays)
        for name, value in values.items():
            arrays[name] = arrays[name].copy()
            arrays[name][list(rows)] = value
        return replace(self, arrays=arrays)

    def units(self) -> list[NDArray[np.intp]]:
        """The rows of each unit, in the order in which they first appear."""
        if self.unit is None:
            return [np.array([row]) for row in range(len(self))]
        labels = [_hashable(label) for label in self.arrays[self.unit]]
        rows: dict[Any, list[int]] = {}
        for row, label in enumerate(labels):
            rows.setdefault(label, []).append(row)
        return [np.array(each) for each in rows.values()]

    def values(self) -> dict[str, NDArray[Any]]:
        """The columns that hold what units tell, not who they are."""
        return {name: each for name, each in self.arrays.items() if name != self.unit}


def _identifier(arrays: Arrays) -> str | None:
    """A column of texts beside others, each there once: names of units, not what they tell."""
    if len(arrays) < 2:
        return None
    for name, column in arrays.items():
        texts = column.dtype.kind in "OU" and all(isinstance(each, str) for each in column)
        if texts and 1 < len(column) == len(set(column.tolist())):
            return name
    return None


def _hashable(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def _column(values: Sequence[Any]) -> NDArray[Any]:
    """An array of numbers, of truth values, or of objects."""
    kinds = {type(value) for value in values}
    if kinds and kinds <= {int, float, bool, np.float64, np.int64, np.bool_}:
        try:
            return np.array(values)
        except OverflowError:
            pass
    shapes = {np.shape(each) for each in values if isinstance(each, np.ndarray)}
    if kinds == {np.ndarray} and len(shapes) == 1 and values[0].dtype.kind in "fiub":
        return np.stack(values)
    column = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        column[place] = value
    return column


def _entries(column: NDArray[Any]) -> list[Any]:
    """The rows of a column as they were in a list: plain numbers, arrays or objects."""
    return column.tolist() if column.ndim == 1 else list(column)


def _array(data: Any) -> Columns | None:
    if not isinstance(data, np.ndarray) or data.ndim == 0:
        return None
    if data.dtype.names:
        names = data.dtype.names

        def packed(arrays: Arrays) -> NDArray[Any]:
            made = np.empty(len(arrays[names[0]]), dtype=data.dtype)
            for name in names:
                made[name] = arrays[name]
            return made

        return Columns({name: data[name] for name in names}, packed)
    return Columns({VALUE: data}, lambda arrays: arrays[VALUE])


def _list(data: Any) -> Columns | None:
    if not isinstance(data, list | tuple) or not data:
        return None
    kind: Callable[[list[Any]], Any] = list if isinstance(data, list) else tuple
    if isinstance(data, tuple) and all(isinstance(e, np.ndarray) and e.ndim for e in data):
        if len({len(each) for each in data}) != 1:
            return None
        named = {f"part {place}": each for place, each in enumerate(data)}
        return Columns(named, lambda arrays: tuple(arrays.values()))
    arrays, together = _fields(data)
    return Columns(arrays, lambda made: kind(together(made)))


def _records(arrays: Arrays, names: Sequence[Any]) -> list[dict[Any, Any]]:
    columns = [_entries(each) for each in arrays.values()]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _mapping(data: Any) -> Columns | None:
    """One of equally long columns, or a mapping from units to what they tell.

    Columns are few and longer than they are many; anything else is read as units.
    """
    if not isinstance(data, dict) or not data:
        return None
    names, values = list(data), list(data.values())
    if all(isinstance(e, np.ndarray) and e.ndim and len(e) == len(values[0]) for e in values) and (
        len(names) < len(values[0])
    ):
        arrays = {str(name): each for name, each in data.items()}
        return Columns(arrays, lambda made: dict(zip(names, made.values(), strict=True)))
    told, together = _fields(values)
    return Columns(
        {KEY: _column(names)} | told,
        lambda made: dict(zip(_entries(made[KEY]), together(made), strict=True)),
        unit=KEY,
    )


def _fields(rows: Sequence[Any]) -> tuple[dict[str, NDArray[Any]], Callable[[Arrays], list[Any]]]:
    """Rows as columns, and what makes rows of columns again."""
    first = rows[0]
    if all(isinstance(row, dict) and row.keys() == first.keys() and row for row in rows):
        names = list(first)
        arrays = {str(name): _column([row[name] for row in rows]) for name in names}
        keys = list(arrays)
        return arrays, lambda made: _records({key: made[key] for key in keys}, names)
    if all(type(row) is tuple and len(row) == len(first) and row for row in rows):
        arrays = {str(n): _column([row[n] for row in rows]) for n in range(len(first))}
        keys = list(arrays)
        return arrays, lambda made: list(zip(*(_entries(made[key]) for key in keys), strict=True))
    return {VALUE: _column(rows)}, lambda made: _entries(made[VALUE])


def _frame(data: Any) -> Columns | None:
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    if pandas is not None and isinstance(data, pandas.DataFrame | pandas.Series):
        table = data.to_frame("value") if isinstance(data, pandas.Series) else data
        names = list(table.columns)
        arrays = {str(name): table[name].to_numpy() for name in names}

        def frame(made: Arrays) -> Any:
            new = pandas.DataFrame(dict(zip(names, made.values(), strict=True)))
            return new if isinstance(data, pandas.DataFrame) else new["value"].rename(data.name)

        return Columns(arrays, frame)
    if polars is not None and isinstance(data, polars.DataFrame):
        arrays = {name: data[name].to_numpy() for name in data.columns}
        return Columns(arrays, lambda made: polars.DataFrame(dict(made)))
    return None


def _torch(data: Any) -> Columns | None:
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
        rows = _column([data[row] for row in range(len(data))])
        return Columns({VALUE: rows}, lambda made: _entries(made[VALUE]))
    return None


_READERS = (_array, _frame, _torch, _list, _mapping)
