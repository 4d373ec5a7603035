"""Random tables and releases of them, each beside what plain Python needs to find the same."""

from __future__ import annotations

import csv
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from brute_tables import rows_of, whole_numbers
from random_expressions import Made, Maker

from dpaudit.base.errors import InputError
from dpaudit.plan import AddRemove
from dpaudit.tables.release import Release
from dpaudit.tables.release_file import read_release

WARDS = ["A1", "Ünï", "b'x", 'c,"d']
COLUMNS: dict[str, dict[str, Any]] = {
    "ward": {"type": "text", "values": WARDS},
    "age": {"type": "integer", "range": [-5, 110]},
    "code": {"type": "integer", "values": [7, 1, 2]},
    "cost": {"type": "number", "range": [-50, 3000], "step": 0.01},
    "huge": {"type": "number", "range": [0, 2**53], "step": 1},
    "day": {"type": "date", "range": ["2019-03-01", "2024-02-29"]},
    "town": {"type": "text"},
    "sick": {"type": "boolean"},
}
PUBLIC: dict[str, dict[str, Any]] = {
    "region": {"type": "text", "values": ["north", "south"]},
    "people": {"type": "integer", "range": [0, 5000]},
}
NAMES = {
    "integer": ["age", "code", "people"],
    "number": ["cost"],
    "date": ["day"],
    "text": ["ward", "town", "region"],
    "boolean": ["sick"],
}
TOWNS = ["Ulm", "ulm ", "Köln", "東京", "x"]
_EDGES: list[dict[str, Any]] = [
    {"column": "age", "edges": [0, 18, 65, 110]},
    {"column": "cost", "edges": [-10.5, 0, 0.01, 2000]},
    {"column": "day", "edges": ["2020-01-01", "2021-06-30", "2024-02-29"]},
]
_FIELDS: dict[str, list[str]] = {
    "ward": [*WARDS, "unlisted", ""],
    "age": ["-5", "0", "17", "18", "64", "65", "110", "111", "-1e300", "3.5", "abc", "nan", ""],
    "code": ["1", "2", "7", "3", "1e30", "x", ""],
    "cost": ["-50", "0.01", "12.344", "3000", "1e400", "-inf", "NaN", "abc", "99999", "-7.126", ""],
    "huge": ["0", "9007199254740992", "9007199254740991", "1e18", "-4", ""],
    "day": ["2019-03-01", "2020-01-01", "2021-06-30", "1900-05-05", "2024-02-30", "soon", ""],
    "town": [*TOWNS, ""],
    "sick": ["true", "false", "maybe", ""],
}


@dataclass(frozen=True)
class RandomRelease:
    """A release over a table that lies in a folder.

    Attributes:
        folder: of its files.
        release: as it was read.
        content: as a file states it.
        queries: as the file has them, with functions of Python for expressions.
        derived: the derived columns as functions of Python.
        rows: of the table, the unit first, as texts.
    """

    folder: Path
    release: Release
    content: dict[str, Any]
    queries: list[dict[str, Any]]
    derived: dict[str, Made]
    rows: list[list[str]]

    def write(self, rows: list[list[str]]) -> None:
        """Write these rows in place of its own."""
        write(self.folder / "table.csv", ["who", *COLUMNS], rows)

    def truth(self, secret: bytes) -> list[dict[Any, Any]]:
        """What each query must find, by brute force."""
        data = self.content["data"]
        rows = rows_of(data, self.folder, self.derived)
        columns = {**COLUMNS, **PUBLIC}
        shapes = [
            each.shape for each in (*self.release.layout.joined, *self.release.layout.derived)
        ]
        carriers = {
            name: (shape.kind.value, shape.step)
            for name, shape in zip([*columns, *self.derived], shapes, strict=True)
        }
        facts = self.content["privacy"]
        return [
            whole_numbers(each, rows, columns, carriers, secret, facts) for each in self.queries
        ]


def write(path: Path, header: list[str], rows: list[list[str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def random_release(seed: int, folder: Path, largest: int = 30) -> RandomRelease:
    """A table of a few units, some with many rows, and a release of some queries.

    Args:
        seed: of all that is chosen.
        folder: for the files.
        largest: rows of a unit, but for one in thirty, which has a thousand.
    """
    rng = random.Random(seed)
    rows = _rows(rng, largest)
    write(folder / "table.csv", ["who", *COLUMNS], rows)
    public = [
        [town, rng.choice(["north", "south", "east"]), str(rng.randint(0, 6000))]
        for town in TOWNS[:4]
    ]
    write(folder / "public.csv", ["name", *PUBLIC], public)
    data = {
        "source": "table.csv",
        "unit": "who",
        "columns": COLUMNS,
        "join": {"source": "public.csv", "key": "name", "on": "town", "columns": PUBLIC},
    }
    privacy = {
        "relation": rng.choice(["add-remove", "replace-one"]),
        "claim": {"epsilon": 1.0, "delta": 1e-6},
        "rows_per_unit": rng.choice([1, 2, 3, 5, 40]),
        "noise": rng.choice(["laplace", "gaussian"]),
    }
    if rng.random() < 0.5:
        privacy["groups_per_unit"] = rng.choice([1, 2, 3])
    names = {kind: list(each) for kind, each in NAMES.items()}
    maker = Maker(rng, names, [*WARDS, *TOWNS])
    derived: dict[str, Made] = {}
    for number in range(rng.randint(0, 2)):
        name, kind = f"made{number}", rng.choice(["integer", "text"])
        made = _fitting(lambda kind=kind: maker.make(kind, 2), data, privacy, derived)
        if made is not None:
            derived[name] = made
            names[kind].append(name)
    data["derived"] = {name: each.sql for name, each in derived.items()}
    queries, wanted = [], []
    while len(queries) < 4:
        stated, meant = _query(rng, maker, len(queries))
        if _reads(data, privacy, stated):
            queries.append(stated)
            wanted.append(meant)
    content = {"data": data, "privacy": privacy, "query": queries}
    return RandomRelease(folder, read_release(content, folder), content, wanted, derived, rows)


def _rows(rng: random.Random, largest: int) -> list[list[str]]:
    units = ["p1", "Ü 2", "o'brien", "p1 ", "", "6", *(f"u{n}" for n in range(rng.randint(0, 6)))]
    rows = []
    for unit in units:
        size = rng.choice([0, 1, 1, 2, 5, largest])
        if rng.random() < 1 / 30:
            size = 1000
        own: list[list[str]] = []
        while len(own) < size:
            if own and rng.random() < 0.3:
                own.append(rng.choice(own))
            else:
                own.append([unit, *(rng.choice(values) for values in _FIELDS.values())])
        rows += own
    rng.shuffle(rows)
    return rows


def neighbour_of(made: RandomRelease, rng: random.Random) -> list[list[str]]:
    """The rows without one unit; under replace-one with other rows of it, or of another one."""
    gone = rng.choice(made.rows)[0]
    rest = [row for row in made.rows if row[0] != gone]
    if not isinstance(made.release.relation, AddRemove):
        unit = rng.choice([gone, "somebody else"])
        size = rng.choice([0, 1, 4, 50])
        rest += [[unit, *(rng.choice(values) for values in _FIELDS.values())] for _ in range(size)]
    rng.shuffle(rest)
    return rest


def _fitting(make: Any, data: Any, privacy: Any, derived: dict[str, Made]) -> Made | None:
    made: Made = make()
    stated = {name: each.sql for name, each in derived.items()} | {"new": made.sql}
    fits = _reads({**data, "derived": stated}, privacy, {"count": True})
    return made if fits else None


def _reads(data: Any, privacy: Any, query: Any) -> bool:
    try:
        read_release({"data": data, "privacy": privacy, "query": [query]})
    except InputError:
        return False
    return True


def _query(rng: random.Random, maker: Maker, number: int) -> tuple[dict[str, Any], dict[str, Any]]:
    kind = rng.choice(["count", "count_units", "sum", "mean", "quantiles", "top", "keys"])
    stated: dict[str, Any] = {"name": f"query {number}"}
    meant: dict[str, Any] = {}
    if kind in ("sum", "mean", "quantiles"):
        made = maker.make(rng.choice(["integer", "number"]), rng.choice([0, 0, 2]))
        stated[kind], meant[kind] = made.sql, made
        if kind == "quantiles":
            stated["at"] = meant["at"] = rng.sample([0.1, 0.25, 0.5, 0.75, 0.999], 2)
            stated["candidates"] = rng.choice([1, 5, 40])
    elif kind == "top":
        stated["top"] = meant["top"] = rng.choice(["ward", "code", "region", "sick"])
    elif kind == "keys":
        stated["keys"] = meant["keys"] = rng.sample(["town", "ward", "day", "code", "sick"], 2)
    else:
        stated[kind] = meant[kind] = True
    if kind not in ("top", "keys"):
        by = rng.sample(["ward", "code", "sick", "region", "age", *_EDGES], rng.randint(0, 2))
        named = [each if isinstance(each, str) else each["column"] for each in by]
        if len(set(named)) == len(named):
            stated["by"] = meant["by"] = by
    if rng.random() < 0.4:
        made = maker.make("boolean", 2)
        stated["where"], meant["where"] = made.sql, made
    if rng.random() < 0.3:
        stated["rows_per_unit"] = meant["rows_per_unit"] = rng.choice([1, 2, 4])
    if rng.random() < 0.3:
        stated["groups_per_unit"] = meant["groups_per_unit"] = rng.choice([1, 2, 7])
    return stated, meant
