"""Random tables of texts for engines, with what plain Python counts of them."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

from hypothesis import strategies as st

from dpaudit.tables.engines import duck
from dpaudit.tables.engines.sources import CsvFile
from dpaudit.tables.expressions import Expression
from dpaudit.tables.measures import Aggregate, Measure, Measured, Selection
from dpaudit.tables.schema import Column, Kind, Shape

SECRET = bytes(range(32))
UNITS = [None, "", "a", "b", "b ", "ü", "u" * 40, "0", "NULL"]
TEXTS = [
    None,
    "",
    "x",
    "y",
    'a"b',
    "'",
    "a,b",
    "l1\nl2",
    "x\r\n",
    "NULL",
    "ß",
    "\U0010ffff",
    "t1:x",
]
# Texts of values, with what they are within [0, 110], and how far they lie outside.
INTEGERS = {
    None: (None, 0),
    "5": (5, 0),
    " 7 ": (7, 0),
    "1e1": (10, 0),
    "-3": (0, -3),
    "111": (110, 1),
    "1e300": (110, 1e300),
    "1e999": (None, None),
    "nan": (None, None),
    "-inf": (None, None),
    "7.5": (None, None),
    "": (None, None),
    "abc": (None, None),
    "9" * 400: (None, None),
}
NUMBERS = {
    None: (None, 0),
    "0.5": (2, 0),
    "0.3": (1, 0),
    "-1e308": (-4, -1e308),
    "NaN": (None, None),
    "4": (4, 3),
    "-0": (0, 0),
    "x": (None, None),
}
DATES = {
    None: (None, 0),
    "1970-01-03": (2, 0),
    "1970-01-03 23:59:59": (2, 0),
    "9999-01-01": (9, 2932522),
    "infinity": (None, None),
    "1970-02-30": (None, None),
    "now": (None, None),
}
TRUTHS = {None: None, "true": True, "FALSE": False, "maybe": None}
COLUMNS = (
    Column("words", Shape(Kind.TEXT)),
    Column("age", Shape(Kind.INTEGER, low=0, high=110)),
    Column('co"st', Shape(Kind.NUMBER, Fraction(1, 4), -4, 4)),
    Column("day", Shape(Kind.DATE, low=0, high=9)),
    Column("well", Shape(Kind.BOOLEAN, high=1, values=(False, True))),
)
DERIVED = (Expression(Shape(Kind.INTEGER, low=0, high=220), "(c1 + c1)"),)
LAYOUT = duck.Layout("who", COLUMNS, DERIVED)
NAMES = ("who", *(each.name for each in COLUMNS))
CELL = "CASE c0 WHEN 'x' THEN 0 WHEN 'y' THEN 1 ELSE 2 END"
ROWS = st.lists(
    st.tuples(
        st.sampled_from(UNITS),
        *(st.sampled_from(list(each)) for each in (TEXTS, INTEGERS, NUMBERS, DATES, TRUTHS)),
    ),
    max_size=40,
)


def cell_of(row):
    return {"x": 0, "y": 1}.get(row[0], 2)


SELECTIONS = {
    "all": (Selection(), lambda row: True, lambda row: 0),
    "few": (Selection("true", CELL, 3, rows=2), lambda row: True, cell_of),
    "known": (
        Selection("(c1 IS NOT NULL) AND (c1 > 4)", CELL, 3, rows=1),
        lambda row: row[1] is not None and row[1] > 4,
        cell_of,
    ),
    "cells": (Selection("c4", CELL, 3, rows=3, groups=1), lambda row: row[4] is True, cell_of),
    "keys": (
        Selection("c0 IS NOT NULL", "[CAST(c0 AS VARCHAR)]", 0, groups=2),
        lambda row: row[0] is not None,
        lambda row: (row[0],),
    ),
}
MEASURES = (
    Measure("rows", SELECTIONS["all"][0], Aggregate.ROWS),
    Measure("units", SELECTIONS["all"][0], Aggregate.UNITS),
    Measure("few", SELECTIONS["few"][0], Aggregate.ROWS),
    Measure("few units", SELECTIONS["few"][0], Aggregate.UNITS),
    Measure("known", SELECTIONS["known"][0], Aggregate.SUM, "d0"),
    Measure(
        "bins", SELECTIONS["known"][0], Aggregate.BINS, "CASE WHEN c1 < 8 THEN 0 ELSE 1 END", 2
    ),
    Measure("cells", SELECTIONS["cells"][0], Aggregate.ROWS),
    Measure("keys", SELECTIONS["keys"][0], Aggregate.KEYS),
)


def carriers(row):
    """What is carried of a row of texts, and how far it lies outside."""
    words, *texts, well = row[1:]
    read = [table[text] for table, text in zip((INTEGERS, NUMBERS, DATES), texts, strict=True)]
    age = read[0][0]
    values = [words, *(value for value, _ in read), TRUTHS[well]]
    return [*values, None if age is None else 2 * age], [beyond for _, beyond in read]


def row_hash(unit, row):
    text = f"{SECRET.hex()}{len(unit.encode())}:{unit}"
    for value in row:
        if value is None:
            text += "n"
        elif isinstance(value, bool):
            text += f"b{str(value).lower()};"
        else:
            text += f"i{value};" if isinstance(value, int) else f"t{len(value.encode())}:{value}"
    return hashlib.sha256(text.encode()).hexdigest()


def counted(rows, name):
    """The rows of each unit that a selection takes, and those that count."""
    selection, takes, cell = SELECTIONS[name]
    units = defaultdict(list)
    for unit, *texts in rows:
        row, _ = carriers((unit, *texts))
        if unit and takes(row):
            units[unit].append((row_hash(unit, row), cell(row), row))
    taken, kept = [], []
    for unit, own in units.items():
        own.sort(key=lambda each: each[0])
        cells = list(dict.fromkeys(where for _, where, _ in own))[: selection.groups]
        first = [each for each in own if each[1] in cells][: selection.rows]
        taken += [(unit, where, row) for _, where, row in own]
        kept += [(unit, where, row) for _, where, row in first]
    return taken, kept


def truth(rows):
    """By measure, its integers by cell and bin, or its keys."""
    found = {}
    for at, name in (("rows", "all"), ("few", "few"), ("cells", "cells")):
        found[at] = tally((where, 0, 1) for _, where, _ in counted(rows, name)[1])
        found[f"{at} unbounded"] = tally((where, 0, 1) for _, where, _ in counted(rows, name)[0])
    for at, name in (("units", "all"), ("few units", "few"), ("keys", "keys")):
        own = {(unit, where) for unit, where, _ in counted(rows, name)[1]}
        found[at] = tally((where, 0, 1) for _, where in own)
    known = counted(rows, "known")
    found["known"] = tally((where, 0, row[5]) for _, where, row in known[1])
    found["known unbounded"] = tally((where, 0, row[5]) for _, where, row in known[0])
    found["bins"] = tally((where, int(row[1] >= 8), 1) for _, where, row in known[1])
    return found


def tally(items: Iterable[tuple[object, int, int]]):
    found: dict[tuple[object, int], int] = defaultdict(int)
    for where, bin_, number in items:
        found[where, bin_] += number
    return {each: number for each, number in found.items() if number}


def told(found: Measured):
    """The same, of what an engine found."""
    own = {at: nonzero(whole) for at, whole in found.integers.items()}
    own |= {f"{at} unbounded": nonzero(whole) for at, whole in found.unbounded.items()}
    return own | {
        at: {(key, 0): count for key, count in counts.items()} for at, counts in found.keys.items()
    }


def nonzero(whole):
    places = ((cell, bin_) for cell in range(whole.shape[0]) for bin_ in range(whole.shape[1]))
    return {place: whole[place] for place in places if whole[place]}


def field(text):
    return "" if text is None else '"' + text.replace('"', '""') + '"'


def written(path: Path, rows) -> CsvFile:
    lines = [",".join(map(field, row)) for row in [NAMES, *rows]]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="")
    return CsvFile(path)


def found_of(source, layout=LAYOUT, measures=MEASURES):
    return duck.measured(source, layout, measures, SECRET)
