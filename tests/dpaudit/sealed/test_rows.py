"""Rows and vectors are what plain Python finds, whatever stands beside a row."""

from __future__ import annotations

import random
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from brute_tables import Row, row_hash, rows_of
from effort import examples
from random_expressions import Made, Maker
from sealed_tables import CARRIERS, COLUMNS, SECRET, WARDS, Texts, held, random_table

from dpaudit import AddRemove, Contribution, Invocation, Laplace, Plan, PrivacyUnit, TrustModel
from dpaudit.base.errors import InputError
from dpaudit.sealed.rows import Cells, Rows, Vectors
from dpaudit.tables.schema import Kind

PLAN = Plan.of(
    Invocation.bounded(
        Laplace(1.0),
        Contribution(1.0),
        PrivacyUnit("person"),
        AddRemove(),
        TrustModel.CENTRAL,
        at="count",
    )
)
NAMES = {
    "integer": ["age", "huge"],
    "number": ["cost"],
    "text": ["ward", "town"],
    "boolean": ["sick"],
    "date": [],
}


class Pipeline:
    """Random operations, done by the custodian's descriptions and by plain Python side by side."""

    def __init__(self, rng: random.Random, rows: Rows, plain: list[Row]) -> None:
        self.rng, self.rows = rng, rows
        self.plain = sorted(plain, key=lambda row: (row[""], row_hash(row, CARRIERS, SECRET)))
        self.maker = Maker(rng, {kind: [*each] for kind, each in NAMES.items()}, [*WARDS, "Ulm"])

    def step(self, number: int) -> None:
        """One of the operations on rows."""
        chosen = self.rng.choice([self._filter, self._with_columns, self._group_rows])
        chosen(number)

    def _filter(self, number: int) -> None:
        made = self.taken("boolean")
        self.rows = self.rows.filter(made.sql)
        self.plain = [row for row in self.plain if made.of(row) is True]

    def _with_columns(self, number: int) -> None:
        kind = self.rng.choice(["integer", "number", "text"])
        made, name = self.taken(kind), f"made{number}"
        self.rows = self.rows.with_columns({name: made.sql})
        self.plain = [row | {name: made.of(row)} for row in self.plain]
        self.maker.columns[kind].append(name)

    def _group_rows(self, number: int) -> None:
        most = self.rng.choice([1, 2, 5])
        self.rows = self.rows.group_rows(most)
        seen: dict[str, int] = defaultdict(int)
        kept = []
        for row in self.plain:
            seen[row[""]] += 1
            kept += [row] if seen[row[""]] <= most else []
        self.plain = kept

    def taken(self, kind: str) -> Made:
        """An expression that the reader takes."""
        while True:
            made = self.maker.make(kind, 2)
            try:
                self.rows.with_columns({"tried": made.sql})
            except InputError:
                continue
            return made

    def by_unit(self, values: list[Any]) -> dict[str, list[Any]]:
        """Values of rows, of each unit in the order of its rows."""
        found = defaultdict(list)
        for row, value in zip(self.plain, values, strict=True):
            found[row[""]].append(value)
        return dict(found)


def _grouped(names: list[str], codes: Any, values: list[Any]) -> dict[str, list[Any]]:
    found = defaultdict(list)
    for code, value in zip(codes.tolist(), values, strict=True):
        found[names[code]].append(value)
    return dict(found)


@pytest.mark.parametrize("seed", range(examples(25, 400)))
def test_every_operation_is_what_plain_python_finds(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    with held(tmp_path, random_table(rng), PLAN) as asked:
        store = asked.operations.real.store
        names = store.units()
        record = {"source": "rows.csv", "unit": "who", "columns": COLUMNS}
        made = Pipeline(rng, asked.operations._handles[0], rows_of(record, tmp_path, {}))
        for number in range(rng.randint(0, 4)):
            made.step(number)
        plain = made.plain
        assert _grouped(names, store.codes(made.rows), [0] * len(plain)) == made.by_unit(
            [0] * len(plain)
        )
        _check_vectors(made, store, names)
        _check_cells(made, store, names)
        _check_keys(made, store, names)
        _check_partition(made, store, names)


def _check_vectors(made: Pipeline, store: Any, names: list[str]) -> None:
    wanted = [made.taken(made.rng.choice(["integer", "number"])) for _ in range(3)]
    try:
        vectors = made.rows.vector([each.sql for each in wanted])
    except InputError:  # more than 2^53 steps
        vectors = made.rows.vector(["age", "cost", "age"])
        wanted = [Made(name, lambda row, name=name: row[name]) for name in ("age", "cost", "age")]
    exact = [[Fraction(each.of(row) or 0) for each in wanted] for row in made.plain]
    _check_numbers(made, store, names, vectors, exact)
    for _ in range(2):
        matrix = [[made.rng.randint(-3, 3) for _ in exact_row(exact, vectors)] for _ in range(2)]
        try:
            vectors = vectors.linear(matrix)
        except InputError:
            return
        exact = [
            [sum(a * b for a, b in zip(line, row, strict=True)) for line in matrix] for row in exact
        ]
        _check_numbers(made, store, names, vectors, exact)


def exact_row(exact: list[list[Fraction]], vectors: Vectors) -> range:
    """As many as a vector has entries."""
    return range(len(vectors.ends))


def _check_numbers(
    made: Pipeline, store: Any, names: list[str], vectors: Vectors, exact: list[list[Any]]
) -> None:
    codes, numbers = store.values(vectors)
    low, high = vectors.corners()
    assert ((low <= numbers) & (numbers <= high)).all()
    assert numbers.shape == (len(codes), *vectors.shape)
    stated = [[float(each) for each in row] for row in exact]  # the nearest floats
    assert _grouped(names, codes, numbers.tolist()) == made.by_unit(stated)
    if vectors.step == 1:
        assert numbers.dtype == np.int64


def _check_cells(made: Pipeline, store: Any, names: list[str]) -> None:
    cells: Cells = made.rows.cells(["ward", {"column": "age", "edges": [0, 18, 65]}])
    codes, numbers = store.cells(cells)

    def cell(row: Row) -> int:
        if row["ward"] not in WARDS or row["age"] is None or not 0 <= row["age"] <= 65:
            return -1
        return 2 * WARDS.index(row["ward"]) + (row["age"] >= 18)

    assert cells.shape == (3, 2)
    assert _grouped(names, codes, numbers.tolist()) == made.by_unit([cell(r) for r in made.plain])


def _check_keys(made: Pipeline, store: Any, names: list[str]) -> None:
    name = made.rng.choice([*made.maker.columns["text"], *made.maker.columns["integer"]])
    codes, keys = store.keys(made.rows, made.rows.value(name))
    wanted = {
        unit: [value for value in values if value is not None]
        for unit, values in made.by_unit([row[name] for row in made.plain]).items()
    }
    assert _grouped(names, codes, keys) == {unit: v for unit, v in wanted.items() if v}


def _check_partition(made: Pipeline, store: Any, names: list[str]) -> None:
    text = made.rng.random() < 0.5
    name, keys = ("town", ["Ulm", "東京", "'", "no"]) if text else ("age", [0, 17, 18, -5])
    sql, found = made.rows.partition(name, keys)
    store.divide(sql)
    firsts = {
        unit: next((value for value in values if value is not None), None)
        for unit, values in made.by_unit([row[name] for row in made.plain]).items()
    }
    for key, rows in found.items():
        codes = store.codes(rows)
        mine = {unit for unit, first in firsts.items() if first == key}
        everything = made.by_unit([0] * len(made.plain))
        wanted = {unit: everything[unit] for unit in mine}
        assert _grouped(names, codes, [0] * len(codes)) == wanted


@pytest.mark.parametrize("seed", range(examples(10, 100)))
def test_rows_have_the_same_bits_alone_in_company_and_in_another_order(
    seed: int, tmp_path: Path
) -> None:
    rng = random.Random(seed)
    rows = random_table(rng)
    names = sorted({row["who"] for row in rows if row["who"]})
    if not names:
        return
    chosen = rng.choice(names)
    columns = ["cost * 3", "age", "CASE WHEN sick THEN cost ELSE 0.125 END"]
    matrix = [[1, -2, 3], [0, 5, 7]]

    def numbers(table: list[Texts], threads: int) -> Any:
        with held(tmp_path, table, PLAN) as asked:
            store = asked.operations.real.store
            store._connection.execute(f"SET threads = {threads}")
            vectors = asked.operations._handles[0].vector(columns).linear(matrix)
            vectors = vectors.encode("clip", {"bound": 50.5}).encode("outer", {})
            codes, found = store.values(vectors)
            return found[codes == store.units().index(chosen)].tobytes()

    shuffled = rng.sample(rows, len(rows))
    own = [row for row in rows if row["who"] == chosen]
    assert numbers(rows, 1) == numbers(shuffled, 4) == numbers(own[::-1], 2)


def test_what_is_no_vector_is_refused(tmp_path: Path) -> None:
    with held(tmp_path, [], PLAN) as asked:
        rows: Rows = asked.operations._handles[0]
        for columns, words in (
            ("ward", "must be a number"),
            ("sick", "must be a number"),
            (["huge", "cost"], "at most 2\\^53"),
            ("huge * 2", "at most 2\\^53"),
            ([], "column or a list"),
            (["age"] * 10_001, "column or a list"),
            ("age + 1e-20", "at most 2\\^53"),
        ):
            with pytest.raises(InputError, match=words):
                rows.vector(columns)
        vectors = rows.vector(["age", "cost"])
        for matrix, words in (
            ([[1]], "2 whole numbers"),
            ([[1, 2], [3]], "2 whole numbers"),
            ([[1, 0.5]], "whole numbers of at most"),
            ([[True, 1]], "whole numbers of at most"),
            ([[2**53, 1]], "at most 2\\^53"),
            ([], "2 whole numbers"),
        ):
            with pytest.raises(InputError, match=words):
                vectors.linear(matrix)
        with pytest.raises(InputError, match="needs arrays"):
            rows.vector("age").linear([[1]])
        assert rows.value("age").kind is Kind.INTEGER
