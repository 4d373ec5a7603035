"""Columns of frames and other containers, and which of them says whose row it is.

Sequences, and frames of pandas and polars, become arrays with one entry for each value, and are put
back with the types that they had. Which column says whose row it is follows from its name; which
one might, from its values.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = Mapping[str, NDArray[Any]]


def column(values: Sequence[Any]) -> NDArray[Any]:
    """An array of numbers or of truth values, of equal arrays, or of objects."""
    kinds = {type(value) for value in values}
    if kinds in ({int}, {float}, {bool}):
        made = np.array(values)
        if made.dtype.kind == {int: "i", float: "f", bool: "b"}[kinds.pop()]:
            return made
    if kinds == {np.ndarray} and len({(each.shape, each.dtype) for each in values}) == 1:
        made = np.stack(values)
        if made.ndim > 1 and made.dtype.kind in "fiub":
            return made
    objects = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        objects[place] = value
    return objects


def entries(values: NDArray[Any]) -> list[Any]:
    """The rows of a column as they were in a list: plain numbers, arrays or objects."""
    return values.tolist() if values.ndim == 1 else list(values)


def numeric(values: NDArray[Any]) -> NDArray[Any] | None:
    """The numbers of a column, with another one in place of each missing; None if it has others."""
    if values.dtype.kind == "O" and values.ndim == 1:
        there = [each for each in values if each is not None]
        if not there or not all(_is_number(kind) for kind in {type(each) for each in there}):
            return None
        values = np.array([there[0] if each is None else each for each in values])
    known = values.dtype.kind in "fiu" and not np.isnan(values).all()
    return values if known else None


def _is_number(kind: type) -> bool:
    return kind in (int, float) or issubclass(kind, np.integer | np.floating)


def hashable(label: Any) -> Any:
    """Return what equals itself and other labels as this one does, and can be a key."""
    label = label.item() if isinstance(label, np.generic) else label
    return label if type(label).__hash__ is not None and label == label else repr(label)


def labels_like(values: NDArray[Any]) -> Iterable[Any]:
    """Return what may be new names among some, of their type; nothing where none can be made up."""
    first: Any = next((each for each in values if each is not None), None)
    numbers = numeric(values)
    if numbers is not None:
        top = int(np.nan_to_num(numbers).max())
        return chain(range(top + 1, top + 99), range(1000))
    if isinstance(first, str):
        return ("a new unit", *map(str, range(1000)))
    if values.dtype.kind == "M":
        return np.datetime64("2101-01-01") + np.arange(99)
    if hasattr(first, "replace") and hasattr(first, "year"):
        return (first.replace(year=2101, month=1, day=day) for day in range(1, 29))
    return ()


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


_ENDING = re.compile(r"(identifier|number|name|hash|uuid|guid|key|num|nr|no|id)s?$")
_WORD = re.compile(r"[^\W\d_]+")
SHORT = 3
"""So many letters stand for a whole word, as in ``cust_no``."""
REPEATS, WIDE = 10, 100
"""At most so many rows are one unit's, on average; so many columns of an array are looked at."""


def column_of(
    columns: Mapping[str, NDArray[Any]], unit: str | None, *, near: bool = True
) -> str | None:
    """The column that has the name of the unit, or the nearest to it; None if none has.

    Where it may be ``near``, case, separators, plurals and words for a label do not count, and the
    unit may be cut short.

    Example:
        >>> ids = np.array([3, 1, 3])
        >>> [column_of({"amount": ids, name: ids}, "customer")
        ...  for name in ("Customer", "customerID", "cust_no", "customers", "customer age")]
        ['Customer', 'customerID', 'cust_no', None, None]
    """
    if unit is None or unit in columns or not near:
        return unit if unit in columns else None
    apart = {name: _apart(name, unit) for name, each in columns.items() if _is_label(each)}
    found = [(far, name) for name, far in apart.items() if far is not None]
    return min(found)[1] if found else None


def _apart(name: str, unit: str) -> int | None:
    """Tell how far a name is from that of a unit; None if it is another one."""
    plain, own = _joined(name), _ENDING.sub("", _joined(unit)).removesuffix("s")
    core = _ENDING.sub("", plain)
    if plain in (own, _joined(unit)):
        return 0
    if core == plain or not own:
        return None
    if core.removesuffix("s") == own:
        return 1
    words = [word.removesuffix("s") for word in _words(name)]
    if own in words[:-1]:
        return 2
    return 3 if len(core) >= SHORT and own.startswith(core) else None


def _words(name: str) -> list[str]:
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).replace("_", " ")
    return [word.casefold() for word in _WORD.findall(apart)]


def _joined(name: str) -> str:
    return "".join(_words(name))


def shared(columns: Mapping[str, NDArray[Any]]) -> str:
    """A column beside others of labels that few rows share, as if each were of one who has several.

    Empty where there is none. It need not say whose rows they are: ages repeat too.
    """
    parts = dict(_parts(columns))
    counts = {name: len(set(map(hashable, e))) for name, e in parts.items() if _is_label(e)}
    many = {n: count for n, count in counts.items() if len(parts[n]) / REPEATS <= count}
    repeated = [name for name, count in many.items() if count < len(parts[name])]
    return max(repeated, key=many.__getitem__) if len(parts) > 1 and repeated else ""


def _parts(columns: Mapping[str, NDArray[Any]]) -> Iterator[tuple[str, NDArray[Any]]]:
    """Columns, and those of tables within them."""
    for name, each in columns.items():
        if each.ndim == 1:
            yield name, each
        elif each.ndim == 2:
            yield from ((f"{name} {n}", part) for n, part in enumerate(each.T[:WIDE]))


def _is_label(column: NDArray[Any]) -> bool:
    """Tell whether whole numbers or names are there, some of which may be missing."""
    if column.dtype.kind == "O":
        there = [each for each in column if each is not None]
        kinds = {type(each) for each in there}
        return bool(there) and not kinds & {bool, float, list, dict, set, tuple, np.ndarray}
    if column.dtype.kind == "f":
        known = column[np.isfinite(column)]
        return column.ndim == 1 and known.size > 0 and bool((known == np.floor(known)).all())
    return column.ndim == 1 and column.dtype.kind in "iuUS"
