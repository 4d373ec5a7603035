"""Expressions see one row: what DuckDB computes is what Python does, within the public range."""

import random
import re
from datetime import date
from fractions import Fraction

import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from random_expressions import Maker

from dpaudit.base.errors import InputError
from dpaudit.tables.expressions import Expression, read_condition, read_expression
from dpaudit.tables.schema import Kind, read_columns

duckdb = pytest.importorskip("duckdb")
pytest.importorskip("sqlglot")

EPOCH = date(1970, 1, 1).toordinal()
TEXTS = ["A1", " b'2\t", "Ünï", "", "a1", "\n"]
COLUMNS = read_columns(
    "data",
    {
        "a": {"type": "integer", "range": [-7, 110]},
        "n": {"type": "integer", "values": [3, -2, 50]},
        "huge": {"type": "integer", "range": [-(2**53), 2**53]},
        "x": {"type": "number", "range": [-2.5, 3000], "step": 0.01},
        "y": {"type": "number", "range": [0, 90], "step": 0.3},
        "d": {"type": "date", "range": ["1950-01-01", "2030-12-31"]},
        "t": {"type": "text", "values": TEXTS},
        "free": {"type": "text"},
        "yes": {"type": "boolean"},
    },
)
KNOWN = {each.name: Expression(each.shape, f"c{n}") for n, each in enumerate(COLUMNS)}
NAMES = {
    "integer": ["a", "n", "huge"],
    "number": ["x", "y"],
    "date": ["d"],
    "text": ["t", "free"],
    "boolean": ["yes"],
}
TYPES = {Kind.TEXT: "VARCHAR", Kind.BOOLEAN: "BOOLEAN"}


def carried(column, rng):
    shape = column.shape
    if rng.random() < 0.15:
        return None
    if shape.values is not None:
        return rng.choice(shape.values)
    if shape.kind is Kind.TEXT:
        return rng.choice([*TEXTS, "other", "ÄÖ "])
    return rng.choice([shape.low, shape.high, 0, rng.randint(shape.low, shape.high)])


def valued(column, carrier):
    """The value that a carrier stands for."""
    if carrier is None or not column.shape.kind.is_whole:
        return carrier
    if column.shape.kind is Kind.DATE:
        return carrier + EPOCH
    return carrier * column.shape.step


@pytest.fixture(scope="module")
def table():
    """Random rows, as values, and a connection to them as carriers."""
    rng = random.Random(7)
    rows = [[carried(each, rng) for each in COLUMNS] for _ in range(60)]
    connection = duckdb.connect()
    columns = [f"c{n} {TYPES.get(c.shape.kind, 'BIGINT')}" for n, c in enumerate(COLUMNS)]
    connection.execute(f"CREATE TABLE rows (place INTEGER, {', '.join(columns)})")
    marks = ", ".join("?" * (1 + len(COLUMNS)))
    connection.executemany(
        f"INSERT INTO rows VALUES ({marks})", [[n, *row] for n, row in enumerate(rows)]
    )
    values = [
        {c.name: valued(c, each) for c, each in zip(COLUMNS, row, strict=True)} for row in rows
    ]
    yield values, connection
    connection.close()


def computed(connection, expression):
    found = connection.execute(f"SELECT {expression.sql} FROM rows ORDER BY place").fetchall()
    return [each for (each,) in found]


def steps_of(value, shape):
    """Exactly, in steps."""
    steps = value - EPOCH if shape.kind is Kind.DATE else value / shape.step
    assert Fraction(steps).denominator == 1
    return int(steps)


LIMITS = "120 bits|years 1 to 9999|must be a text of SQL|becomes too long"


def read_or_none(sql):
    """An expression, if it is within the limits of size."""
    try:
        return read_expression(sql, KNOWN)
    except InputError as error:
        if re.search(LIMITS, str(error)):
            return None
        raise


@settings(max_examples=examples(150, 20_000), deadline=None)
@given(seed=st.integers(0, 2**63), kind=st.sampled_from([*NAMES]), depth=st.integers(1, 4))
def test_what_is_computed_is_what_python_computes_within_the_public_range(table, seed, kind, depth):
    rows, connection = table
    made = Maker(random.Random(seed), NAMES, TEXTS).make(kind, depth)
    expression = read_or_none(made.sql)
    if expression is None:
        return
    shape = expression.shape
    assert shape.kind == kind or (kind, shape.kind) == ("number", "integer"), made.sql
    for row, found in zip(rows, computed(connection, expression), strict=True):
        wanted = made.of(row)
        if wanted is None:
            assert found is None
            continue
        if not shape.kind.is_whole:
            assert type(found) is type(wanted)
            assert found == wanted
        else:
            assert found == steps_of(wanted, shape)
            assert shape.low <= found <= shape.high
        assert shape.values is None or found in shape.values


@pytest.mark.parametrize(
    "sql",
    [
        "+".join(["huge"] * 90),
        "-(" * 20 + "huge" + ")" * 20,
        " * ".join(["1"] * 90),
        "CASE WHEN yes THEN huge ELSE " * 20 + "1" + " END" * 20,
        "huge" + " // 3" * 10,
        "COALESCE(" * 20 + "huge" + ", 1)" * 20,
    ],
)
def test_the_deepest_expressions_that_are_taken_are_computed(table, sql):
    _, connection = table
    expression = read_expression(sql, KNOWN)
    found = [each for each in computed(connection, expression) if each is not None]
    assert all(expression.shape.low <= each <= expression.shape.high for each in found)


def test_no_row_makes_a_sum_or_a_quotient_leave_its_type(table):
    """Sums double through derived columns, beyond 64 bits; quotients by fractions, beyond 120."""
    _, connection = table
    known, sql, below = dict(KNOWN), "huge", "rows"
    for number in range(67):
        made = read_expression(f"{sql} + {sql}", known)
        connection.execute(
            f"CREATE OR REPLACE TABLE t{number} AS SELECT {made.sql} AS d FROM {below}"
        )
        sql, below = "doubled", f"t{number}"
        known[sql] = Expression(made.shape, "d")
    (largest,) = connection.execute(f"SELECT max(abs(d)) FROM {below}").fetchone()
    assert largest == 2**53 * 2**67
    with pytest.raises(InputError, match="120 bits"):
        read_expression(f"{sql} + {sql}", known)
    with pytest.raises(InputError, match="120 bits"):
        read_expression(f"{sql} // 0.0000001", known)
    with pytest.raises(InputError, match="120 bits"):
        read_expression("x * 1e-30 * 1e-30 + 0", KNOWN)


REFUSED = {
    "max(x) > 3": ("MAX(x)", "declare a query, or bounds known without the data"),
    "x > avg(x) OVER ()": ("AVG(x) OVER ()", "sees one row"),
    "x > (SELECT 1)": ("SELECT 1", "declare a public table to join"),
    "EXISTS (SELECT 1)": ("EXISTS", "one row"),
    "x IN (SELECT 1)": ("x IN", "without 'query'"),
    # what others take as a filter (Tumult, SmartNoise)
    "rand() < 0.5": ("RANDOM()", "a random result"),
    "uuid() = t": ("UUID()", "a random result"),
    "d < now()": ("NOW()", "clock"),
    "d < today()": ("CURRENT_DATE", "clock"),
    "read_text('/etc/passwd') = t": ("READ_TEXT", "not taken"),
    "getenv('HOME') = t": ("GETENV", "not taken"),
    "my_macro(x) > 1": ("MY_MACRO(x)", "not taken"),
    "CAST(x AS INTEGER) > 1": ("CAST(x AS INT)", "only cast is DATE"),
    "TRY_CAST(t AS DATE) = d": ("TRY_CAST", "not taken"),
    "t LIKE 'A%'": ("LIKE", "not taken"),
    "t SIMILAR TO 'A'": ("SIMILAR TO", "not taken"),
    "t < 'B'": ("'B'", "order depends on the locale"),
    "t BETWEEN 'A' AND 'B'": ("'A'", "order depends on the locale"),
    "t || 'a' = 'b'": ("||", "not taken"),
    "x / 2 > 1": ("x / 2", "not taken"),
    "x // 0 > 1": ("x // 0", "constant above 0"),
    "x // a > 1": ("x // a", "constant above 0"),
    "x % 2 > 1": ("x % 2", "needs integers"),
    "a > 1 -- note": ("comment", "leave it out"),
    "a /* note */ > 1": ("comment", "leave it out"),
    "a > 1; DROP TABLE rows": ("2 statements", "give one"),
    "DROP TABLE rows": ("DROP", "not taken"),
    "COPY rows TO 'x'": ("COPY", "not taken"),
    "rows.a > 1": ("rows.a", "without 'table'"),
    "* > 1": ("*", "not taken"),
    "rowid > 1": ("no column", "rowid"),
    '"filename" = t': ("no column", "filename"),
    "ａ > 1": ("no column", "columns are"),
    "a > ?": ("?", "not taken"),
    "a > $1": ("$1", "not taken"),
    "a IN ()": ("a IN ()", "list values"),
    "a IN (1, NULL)": ("NULL", "not taken"),
    "a IS TRUE": ("a IS TRUE", "NULL only"),
    "a IS DISTINCT FROM 1": ("DISTINCT", "not taken"),
    "list_sum([a]) > 1": ("LIST_SUM", "not taken"),
    "a > 1e999999999": ("1e999999999", "36 digits"),
    "a > 0x1F": ("0x1F", "not taken"),
    "yes > false": ("false", "truth values can only be equal"),
    "t = d": ("d", "is a date but is compared with a text; compare values of one type"),
    "a + d > 3.5": ("3.5", "compare a date with a date"),
    "t = 3": ("3", "is an integer but is compared with a text"),
    "d + 0.5 = d": ("d + ", "whole number"),
    "d + d = d": ("d + d", "whole number"),
    "d + 4000000 = d": ("d + 4000000", "9999"),
    "YEAR(a) = 1": ("YEAR", "from a date"),
    "EXTRACT(EPOCH FROM d) = 1": ("EPOCH", "from a date"),
    "LOWER(a) = 'x'": ("LOWER(a)", "must be a text"),
    "LTRIM(t) = 'x'": ("TRIM", "position"),
    "TRIM('x' FROM t) = 'x'": ("TRIM", "expression"),
    "CASE WHEN yes THEN 1 ELSE 'a' END = 1": ("CASE", "different types"),
    "CASE WHEN yes THEN NULL END = 1": ("CASE", "different types"),
    "a": ("integer", "must be true or false"),
    "NOT a": ("a", "true or false"),
    "a >": ("cannot be read: a value or an operator is missing. Line 1, Col: 3.", "a >"),
    "'open": ("cannot be read", "open"),
    "(" * 900 + "yes" + ")" * 900: ("nested too deeply", "simplify"),
    "(" * 10_000 + "yes" + ")" * 10_000: ("must be a text of SQL", "expression"),
    "NOT " * 450 + "yes": ("nested too deeply", "simplify"),
    "a" + " // 3" * 60 + " = 1": ("too long", "simplify"),
    "": ("must be a text of SQL", "expression"),
}


@pytest.mark.parametrize("sql", REFUSED, ids=lambda sql: sql[:30])
def test_whatever_could_see_more_than_one_row_is_refused_with_its_place(sql):
    with pytest.raises(InputError) as raised:
        read_condition(sql, KNOWN)
    said = str(raised.value)
    assert all(word in said for word in REFUSED[sql])
    assert len(said) < 600
    assert said.endswith(".")


@pytest.mark.parametrize("sql", ['"a" > 1', '"A" > 1', "A > 1", "DATE '2020-01-31' = d"])
def test_names_may_be_quoted_and_capital(sql):
    assert read_condition(sql, KNOWN).kind is Kind.BOOLEAN


def test_a_name_with_a_space_is_offered_in_its_quotes():
    known = {"length of stay": KNOWN["a"]}
    for text in ("Length of stay", "length of stay + 1"):
        with pytest.raises(
            InputError, match="write the column in double quotes, '\"length of stay"
        ):
            read_expression(text, known)
    assert read_expression('"Length of stay"', known).shape == KNOWN["a"].shape
