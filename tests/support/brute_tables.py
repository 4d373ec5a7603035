"""What a release of a table must find: brute force in plain Python, without SQL.

Rows are dictionaries. Rows of a unit are ordered by a keyed hash; the first cells of a unit count,
and of these the first rows.
"""

from __future__ import annotations

import csv
import hashlib
import math
from collections import defaultdict
from datetime import date
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

EPOCH = date(1970, 1, 1).toordinal()
Row = dict[str, Any]
NULL = None


# -- reading ---------------------------------------------------------------------------------------


def value_of(text: str | None, column: dict[str, Any]) -> Any:
    """A text of a file as a value: a fraction, an ordinal, a text, a truth value, or NULL."""
    kind = column["type"]
    if text is None or kind == "text":
        return text
    if kind == "boolean":
        return {"true": True, "false": False}.get(text.lower())
    if kind == "date":
        try:
            day = date.fromisoformat(text).toordinal()
        except ValueError:
            return NULL
        low, high = (date.fromisoformat(end).toordinal() for end in column["range"])
        return min(max(day, low), high)
    try:
        number = float(text)
    except ValueError:
        return NULL
    if not math.isfinite(number):
        return NULL
    exact = Fraction(text.strip())
    if kind == "integer" and exact.denominator != 1:
        return NULL
    if "values" in column:
        return exact if exact in column["values"] else NULL
    low, high = (Fraction(str(end)) for end in column["range"])
    step = Fraction(str(column.get("step", 1)))
    steps = min(max(exact, low), high) / step
    return (
        math.floor(steps + Fraction(1, 2)) if steps >= 0 else math.ceil(steps - Fraction(1, 2))
    ) * step


def rows_of(data: dict[str, Any], folder: Path, derived: dict[str, Any]) -> list[Row]:
    """All rows with a unit, with what the public table adds and derived columns."""
    public: dict[str, Row] = {}
    join = data.get("join")
    if join:
        public = {each[join["key"]]: each for each in _read(folder / join["source"])}
    found = []
    for row in _read(folder / data["source"]):
        if not row[data["unit"]]:
            continue
        made = {"": row[data["unit"]]}
        for name, column in data["columns"].items():
            made[name] = value_of(row[name], column)
        for name, column in (join or {}).get("columns", {}).items():
            other = public.get(row[join["on"]], {}) if row[join["on"]] is not None else {}
            made[name] = value_of(other.get(name), column)
        for name, expression in derived.items():
            made[name] = expression.of(made)
        found.append(made)
    return found


def _read(path: Path) -> list[dict[str, str | None]]:
    with path.open(encoding="utf-8", newline="") as file:
        return [{n: v or None for n, v in row.items()} for row in csv.DictReader(file)]


# -- bounds ----------------------------------------------------------------------------------------


def row_hash(row: Row, carriers: dict[str, tuple[str, Fraction]], secret: bytes) -> str:
    """SHA-256 of the secret, the unit, and each value with its type and length."""
    unit = row[""]
    text = f"{secret.hex()}{len(unit.encode())}:{unit}"
    for name, (kind, step) in carriers.items():
        value = row[name]
        if value is None:
            text += "n"
        elif kind == "text":
            text += f"t{len(value.encode())}:{value}"
        elif kind == "boolean":
            text += f"b{str(value).lower()};"
        else:
            text += f"i{value - EPOCH if kind == 'date' else value / step};"
    return hashlib.sha256(text.encode()).hexdigest()


def within_bounds(rows: list[tuple[str, Any, Row]], most_rows: int, most_cells: int) -> list[Any]:
    """Of triples (hash, cell, row) of one unit the first cells, and of their rows the first."""
    cells: dict[Any, str] = {}
    for hashed, cell, _ in sorted(rows, key=lambda each: each[0]):
        cells.setdefault(cell, hashed)
    first = sorted(cells, key=cells.__getitem__)[:most_cells]
    kept = [each for each in rows if each[1] in first]
    return sorted(kept, key=lambda each: each[0])[:most_rows]


# -- queries ---------------------------------------------------------------------------------------


def labels_of(by: list[Any], columns: dict[str, dict[str, Any]]) -> list[tuple[str, ...]]:
    """The cells, in order; *other* last of each column."""
    lists = []
    for each in by:
        if isinstance(each, str):
            column = columns[each]
            values = column.get("values")
            if column["type"] == "boolean":
                values = ["false", "true"]
            elif values is None:
                values = range(column["range"][0], column["range"][1] + 1)
            elif column["type"] == "integer":
                values = sorted(values)
            lists.append([*map(str, values), "other"])
        else:
            lists.append([*(str(n) for n in range(len(each["edges"]) - 1)), "other"])
    return list(product(*lists))


def cell_of(row: Row, by: list[Any], columns: dict[str, dict[str, Any]]) -> tuple[str, ...]:
    """The cell of a row."""
    found = []
    for each in by:
        if isinstance(each, str):
            value = row[each]
            text = str(value).lower() if isinstance(value, bool) else str(value)
            known = {label[0] for label in labels_of([each], columns)}
            found.append(text if value is not None and text in known else "other")
            continue
        value, kind = row[each["column"]], columns[each["column"]]["type"]
        edges = [
            date.fromisoformat(e).toordinal() if kind == "date" else Fraction(str(e))
            for e in each["edges"]
        ]
        if value is None or not edges[0] <= value <= edges[-1]:
            found.append("other")
        else:
            found.append(str(min(sum(e <= value for e in edges) - 1, len(edges) - 2)))
    return tuple(found)


def whole_numbers(
    query: dict[str, Any],
    rows: list[Row],
    columns: dict[str, dict[str, Any]],
    carriers: dict[str, tuple[str, Fraction]],
    secret: bytes,
    facts: dict[str, Any],
) -> dict[Any, Any]:
    """What a query finds, by cell, or key: a number, a pair of a mean, or the list of values.

    Args:
        query: as a file has it, with functions of Python at ``where`` and of what is computed.
        rows: of the table.
        columns: by name.
        carriers: type and step of all columns, in order.
        secret: of the release.
        facts: bounds of the release, ``rows_per_unit`` and ``groups_per_unit``.
    """
    kind = next(
        k for k in ("count", "count_units", "sum", "mean", "quantiles", "top", "keys") if k in query
    )
    of = query[kind] if kind in ("sum", "mean", "quantiles") else None
    most_rows = query.get("rows_per_unit", facts["rows_per_unit"])
    most_cells = query.get("groups_per_unit", facts.get("groups_per_unit", most_rows))
    by = query.get("by", [])
    if kind == "top":
        by = [query["top"]]
    units: dict[str, list[Any]] = defaultdict(list)
    for row in rows:
        if "where" in query and query["where"].of(row) is not True:
            continue
        if of is not None and of.of(row) is None:
            continue
        if kind == "keys":
            cell = tuple(_shown(row[name], columns[name]) for name in query["keys"])
            if None in cell:
                continue
        else:
            cell = cell_of(row, by, columns)
        units[row[""]].append((row_hash(row, carriers, secret), cell, row))
    labels = [] if kind == "keys" else labels_of(by, columns)
    found: dict[Any, Any] = {label: [] for label in labels}
    for own in units.values():
        if kind == "top":
            kept = own
        elif kind == "keys":
            kept = within_bounds(own, len(own), most_cells)
        else:
            kept = within_bounds(own, most_rows, min(most_cells, most_rows))
        if kind in ("top", "keys", "count_units"):
            for cell in {cell for _, cell, _ in kept}:
                found.setdefault(cell, []).append(1)
        else:
            for _, cell, row in kept:
                found[cell].append(1 if of is None else of.of(row))
    if kind in ("count", "count_units", "top", "keys", "sum"):
        return {cell: sum(values) for cell, values in found.items()}
    return found


def _shown(value: Any, column: dict[str, Any]) -> str | None:
    if value is None:
        return None
    if column["type"] == "date":
        return date.fromordinal(value).isoformat()
    return str(value).lower() if isinstance(value, bool) else str(value)
