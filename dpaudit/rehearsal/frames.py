"""Frames of pandas and polars as arrays of what they hold, and back with the types they had."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.rehearsal.arrays import Arrays, column, entries

PLACE = "\0place"
"""Column of the row of a frame that each row was; its values may have been changed since."""
VALUE = "value"

Taken = tuple[dict[str, NDArray[Any]], Callable[[Arrays], Any]]


def frame(data: Any) -> Taken | None:
    """Arrays of the columns, and what makes a frame of arrays; None if it is no known frame.

    Objects that are missing are None. Entries that are not changed stay those of the frame.
    """
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    if pandas is not None and isinstance(data, pandas.Series):
        arrays, build = _pandas(data.to_frame(VALUE))
        return arrays, lambda made: build(made)[VALUE].rename(data.name)
    if pandas is not None and isinstance(data, pandas.DataFrame):
        named = len({str(name) for name in data.columns}) == data.shape[1]
        return _pandas(data) if named else None
    if polars is not None and isinstance(data, polars.DataFrame):
        return _polars(data)
    return None


def _pandas(data: Any) -> Taken:
    pandas = sys.modules["pandas"]
    series = [data.iloc[:, number] for number in range(data.shape[1])]
    arrays = {str(name): _present(each) for name, each in zip(data.columns, series, strict=True)}

    def rows(places: NDArray[np.intp]) -> Any:
        made, kept = data.iloc[places], data.index
        if isinstance(kept, pandas.RangeIndex):
            end = kept.start + len(places) * kept.step
            made.index = pandas.RangeIndex(kept.start, end, kept.step, name=kept.name)
        return made

    def put(made: Any, number: int, values: list[Any], places: NDArray[np.intp]) -> Any:
        new = pandas.Series(values, dtype=series[number].dtype)
        if new.isna().sum() > sum(each is None or each is not each for each in values):
            raise ValueError("a value of another type")
        made.isetitem(number, pandas.concat([series[number], new]).iloc[places].array)
        return made

    return _gathered(arrays, len(data), rows, put)


def _present(series: Any) -> NDArray[Any]:
    """Numbers of numpy as they are; of all else objects, of which those missing are None."""
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "fiub":
        return np.asarray(series.to_numpy())
    pairs = zip(series.tolist(), series.isna(), strict=True)
    return column([None if missing else value for value, missing in pairs])


def _polars(data: Any) -> Taken:
    polars = sys.modules["polars"]
    arrays = {name: column(data[name].to_list()) for name in data.columns}
    for name, each in data.schema.items():
        if each.is_numeric() and not each.is_decimal() and not data[name].null_count():
            arrays[name] = data[name].to_numpy()

    def put(made: Any, number: int, values: list[Any], places: NDArray[np.intp]) -> Any:
        old = data.to_series(number)
        new = polars.Series(old.name, values, dtype=old.dtype)
        return made.with_columns(polars.concat([old, new]).gather(places))

    return _gathered(arrays, len(data), lambda places: data[places], put)


def _gathered(
    arrays: dict[str, NDArray[Any]],
    size: int,
    rows: Callable[[NDArray[np.intp]], Any],
    put: Callable[[Any, int, list[Any], NDArray[np.intp]], Any],
) -> Taken:
    """Columns of a frame, whose entries stay those of the frame, but for those that are changed.

    ``rows`` gives some rows; ``put`` sets a column to old entries, and after these to new ones.
    """

    def build(made: Arrays) -> Any:
        places = made[PLACE]
        found = rows(places)
        for number, (name, each) in enumerate(arrays.items()):
            new = _differ(made[name], each[places])
            if new.any():
                index = places.copy()
                index[new] = size + np.arange(np.count_nonzero(new))
                found = put(found, number, entries(made[name][new]), index)
        return found

    return {PLACE: np.arange(size)} | arrays, build


def _differ(one: NDArray[Any], two: NDArray[Any]) -> NDArray[np.bool_]:
    if one.dtype.kind == "O":
        return np.array([a is not b for a, b in zip(one, two, strict=True)], dtype=bool)
    equal = (one == two) | ((one != one) & (two != two))
    return np.asarray(~equal.all(axis=tuple(range(1, equal.ndim))))
