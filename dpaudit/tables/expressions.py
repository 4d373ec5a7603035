"""Expressions that see one row: a small part of SQL, read into whole numbers that cannot overflow.

A text is parsed by ``sqlglot``, and only listed nodes are taken: columns, literals, integer
arithmetic on steps, comparison, BETWEEN, IN, CASE, COALESCE, floor division by constants, LOWER and
TRIM of ASCII, and parts of dates. Whatever could see another row, the clock, a file or chance has
no node here, and is refused with its place. Every expression is total: where an operand is NULL the
result is NULL, and no operand is out of reach, as the public ranges of the columns bound every
result before any data are read. What leaves is SQL that names no column and no text of its author
but as a quoted literal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from math import gcd
from typing import Any

from dpaudit.base.errors import InputError
from dpaudit.base.optional_import import optional_import
from dpaudit.base.validate import shown
from dpaudit.tables.schema import TRUTH, Kind, Shape, day_of

_MOST = 2**120
"""Whole numbers of 128 bits hold sums and products of no more than this."""
_LONGEST, _LONGEST_SQL = 2_000, 100_000
"""Characters of an expression, and of what is made of it."""
_DEEPEST = 100
"""Nodes within nodes; DuckDB takes a thousand, of which each of ours makes several."""
_DECIMAL = re.compile(r"[0-9.]+(e[+-]?[0-9]{1,2})?", re.IGNORECASE)
_CAPITALS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_BLANKS = " \t\r\n"
_EPOCH_SQL = "DATE '1970-01-01'"
_PARTS = {
    "YEAR": (-9999, 9999),
    "QUARTER": (1, 4),
    "MONTH": (1, 12),
    "DAY": (1, 31),
    "ISODOW": (1, 7),
}
_REMEDIES = {
    "aggregate": "an expression sees one row; declare a query, or bounds known without the data",
    "subquery": "an expression sees one row; declare a public table to join",
    "division": "a quotient has no step; multiply by a constant such as "
    "0.1, or use // with a constant",
    "chance": "a random result cannot be repeated; leave it out",
    "clock": "a result that depends on the clock cannot be repeated; write the date as a constant",
}
KNOWN = (
    "columns, constants, + − *, // by a constant, comparison, BETWEEN, IN, AND, OR, NOT, CASE, "
    "COALESCE, IS NULL, LOWER, TRIM, YEAR, QUARTER, MONTH, DAY and ISODOW"
)
"""What expressions have, in words."""


@dataclass(frozen=True)
class Expression:
    """A function of one row.

    Attributes:
        shape: what it can be.
        sql: its SQL over the carriers of columns.
        constant: its value where it is a constant: a text, a truth value or a fraction.
        depth: how many nodes lie within each other, those of derived columns included.
    """

    shape: Shape
    sql: str
    constant: Any = None
    depth: int = 0

    @property
    def kind(self) -> Kind:
        """What it is."""
        return self.shape.kind


def quoted(text: str) -> str:
    """A text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def day_sql(date: Expression) -> str:
    """The date that is carried as days, in SQL."""
    return f"({_EPOCH_SQL} + CAST({date.sql} AS INTEGER))"


def read_expression(text: object, known: Mapping[str, Expression]) -> Expression:
    """An expression over columns.

    Args:
        text: in SQL.
        known: the columns that it may name, by lower-case name.

    Raises:
        InputError: if it cannot be parsed, or holds what sees more than one row, chance, a clock
            or a file; it names the place.
        UnsupportedError: if sqlglot is not installed.
    """
    if not isinstance(text, str) or not text.strip() or len(text) > _LONGEST:
        raise InputError(f"expression is {shown(text)}; it must be a text of SQL.")
    sqlglot = optional_import("tables", "sqlglot", what="an expression over a table")
    try:
        reader = _Reader(known)
        return replace(reader.read(_parsed(text)), depth=reader.deepest)
    except RecursionError:
        raise InputError(f"expression {shown(text)} is nested too deeply; simplify it.") from None
    except sqlglot.errors.SqlglotError as error:
        raise InputError(f"expression {shown(text)} {_unreadable(text, error, known)}") from None
    except InputError as error:
        raise InputError(f"expression {shown(text)}: {error}") from None


def _unreadable(text: str, error: Exception, known: Mapping[str, Expression]) -> str:
    """Why it cannot be read: most often it is a name with a space, without its quotes."""
    for name in known:
        if not name.isidentifier() and name in text.lower():
            return f"cannot be read; write the column in double quotes, '\"{name}\"'."
    return f"cannot be read: {_said(error)}."


def _parsed(text: str) -> Any:
    """Its one statement."""
    sqlglot = optional_import("tables", "sqlglot", what="an expression over a table")
    if any(token.comments for token in sqlglot.tokenize(text, read="duckdb")):
        raise InputError("it has a comment; leave it out.")
    statements = [each for each in sqlglot.parse(text, read="duckdb") if each is not None]
    if len(statements) != 1:
        raise InputError(f"it has {len(statements)} statements; give one.")
    return statements[0]


def read_condition(text: object, known: Mapping[str, Expression]) -> Expression:
    """An expression that is true, false or NULL.

    Raises:
        InputError: as :func:`read_expression`, or if it is no condition.
    """
    found = read_expression(text, known)
    if found.kind is not Kind.BOOLEAN:
        raise InputError(f"{shown(text)} is {found.kind.named}; a condition must be true or false.")
    return found


def _said(error: BaseException) -> str:
    first = str(error).partition("\n")[0].strip().rstrip(".")
    first = re.sub("Required keyword.* for <class .*>", "a value or an operator is missing", first)
    return first[:120] or type(error).__name__


class _Reader:
    """Reads the nodes of one expression."""

    def __init__(self, known: Mapping[str, Expression]) -> None:
        self._known = known
        self._depth = self.deepest = 0

    def read(self, node: Any) -> Expression:
        name = type(node).__name__
        reader = _NODES.get(name)
        if reader is None:
            raise _refused(node, name)
        self._depth += 1
        self._reach(self._depth)
        found = reader(self, node)
        self._depth -= 1
        shape = found.shape
        _require_held(node, *_ends(found), shape.step.numerator, shape.step.denominator)
        if len(found.sql) > _LONGEST_SQL:
            raise InputError(f"{_place(node)} becomes too long; simplify it.")
        return found

    def _reach(self, depth: int) -> None:
        self.deepest = max(self.deepest, depth)
        if depth > _DEEPEST:
            raise RecursionError

    # -- columns and constants -------------------------------------------------------------------

    def column(self, node: Any) -> Expression:
        _only(node, "this")
        name = node.this.name
        if name.casefold() not in self._known:
            known = ", ".join(sorted(self._known)[:20])
            raise InputError(f"there is no column {shown(name)}; the columns are {known}.")
        found = self._known[name.casefold()]
        self._reach(self._depth + found.depth)
        return found

    def literal(self, node: Any) -> Expression:
        if node.is_string:
            text = str(node.this)
            return Expression(Shape(Kind.TEXT, values=(text,)), quoted(text), text)
        if not _DECIMAL.fullmatch(str(node.this)):
            raise InputError(f"{_place(node)} is not a decimal number of at most 36 digits.")
        value = Fraction(str(node.this))
        step = Fraction(1, value.denominator)
        kind = Kind.INTEGER if step == 1 else Kind.NUMBER
        shape = Shape(kind, step, value.numerator, value.numerator)
        return Expression(shape, f"{value.numerator}::HUGEINT", value)

    def boolean(self, node: Any) -> Expression:
        value = bool(node.this)
        return Expression(TRUTH, str(value), value)

    def cast(self, node: Any) -> Expression:
        """A date constant: no other cast is one that cannot fail."""
        if node.to.sql() != "DATE" or not _is_text(node.this):
            raise InputError(
                f"{_place(node)}: the only cast is DATE '2024-01-31'; declare the type instead."
            )
        return _day(str(node.this.this))

    def paren(self, node: Any) -> Expression:
        return self.read(node.this)

    # -- arithmetic ------------------------------------------------------------------------------

    def negative(self, node: Any) -> Expression:
        one = self._numeric(node.this)
        shape = replace(one.shape, low=-one.shape.high, high=-one.shape.low, values=None)
        constant = None if one.constant is None else -one.constant
        return Expression(shape, f"(-{one.sql})", constant)

    def add(self, node: Any) -> Expression:
        one, other = self._whole(node.this), self._whole(node.expression)
        subtracts = type(node).__name__ == "Sub"
        dates = [each.kind is Kind.DATE for each in (one, other)]
        if all(dates) and subtracts:
            kind = Kind.INTEGER
        elif any(dates):
            days = other if dates[0] else one
            if all(dates) or days.shape.step != 1 or (dates[1] and subtracts):
                raise InputError(
                    f"{_place(node)}: only a whole number of days can be added to a date."
                )
            kind = Kind.DATE
        else:
            kind = _wider(one.kind, other.kind)
        (a, low_a, high_a), (b, low_b, high_b), step = _common(node, one, other)
        low, high = low_a + low_b, high_a + high_b
        if subtracts:
            low, high = low_a - high_b, high_a - low_b
        if kind is Kind.DATE and not (low >= -719_162 and high <= 2_932_896):
            raise InputError(f"{_place(node)} may leave the years 1 to 9999; take fewer days.")
        if max(-low, high) >= 2**63:
            a = f"({a})::HUGEINT"
        return Expression(Shape(kind, step, low, high), f"({a} {'-' if subtracts else '+'} {b})")

    def multiply(self, node: Any) -> Expression:
        one, other = self._numeric(node.this), self._numeric(node.expression)
        ends = [
            a * b
            for a in (one.shape.low, one.shape.high)
            for b in (other.shape.low, other.shape.high)
        ]
        shape = Shape(
            _wider(one.kind, other.kind), one.shape.step * other.shape.step, min(ends), max(ends)
        )
        return Expression(shape, f"({_huge(one)} * {_huge(other)})")

    def floor_divide(self, node: Any) -> Expression:
        one, by = self._numeric(node.this), self._positive(node.expression)
        share = one.shape.step / by
        scaled_ends = [end * share.numerator for end in _ends(one)]
        _require_held(node, *scaled_ends, share.numerator, share.denominator)
        low, high = (end // share.denominator for end in scaled_ends)
        scaled = f"({_huge(one)} * {share.numerator})"
        return Expression(
            Shape(Kind.INTEGER, low=low, high=high), _floored(scaled, share.denominator)
        )

    def remainder(self, node: Any) -> Expression:
        one, by = self._numeric(node.this), self._positive(node.expression)
        if one.shape.step != 1 or by.denominator != 1:
            raise InputError(f"{_place(node)}: a remainder needs integers, and an integer divisor.")
        whole = _floored(_huge(one), int(by))
        return Expression(
            Shape(Kind.INTEGER, high=int(by) - 1), f"({_huge(one)} - {whole} * {int(by)})"
        )

    def date_part(self, node: Any) -> Expression:
        part = type(node).__name__
        part = str(node.this).upper() if part == "Extract" else _PART_NODES[part]
        one = self.read(node.expression if type(node).__name__ == "Extract" else node.this)
        if part not in _PARTS or one.kind is not Kind.DATE:
            raise InputError(
                f"{_place(node)}: only {', '.join(_PARTS)} can be extracted, from a date."
            )
        low, high = _PARTS[part]
        if part == "YEAR":
            low, high = (int(one.shape.of_steps(end)[:4]) for end in _ends(one))
        values = None if part == "YEAR" else tuple(range(low, high + 1))
        shape = Shape(Kind.INTEGER, low=low, high=high, values=values)
        return Expression(shape, f"CAST(date_part('{part.lower()}', {day_sql(one)}) AS BIGINT)")

    # -- texts -----------------------------------------------------------------------------------

    def lower(self, node: Any) -> Expression:
        _only(node, "this")
        small = _CAPITALS.lower()
        table = str.maketrans(_CAPITALS, small)
        return self._mapped(
            node.this, lambda sql: f"translate({sql}, '{_CAPITALS}', '{small}')", table
        )

    def trim(self, node: Any) -> Expression:
        _only(node, "this")
        blanks = " || ".join(f"chr({ord(each)})" for each in _BLANKS)
        return self._mapped(node.this, lambda sql: f"trim({sql}, {blanks})", None)

    def _mapped(self, node: Any, sql: Callable[[str], str], table: Any) -> Expression:
        one = self.read(node)
        if one.kind is not Kind.TEXT:
            raise InputError(f"{_place(node)} is {one.kind.named}; it must be a text.")
        values = one.shape.values
        if values is not None:
            made = (v.translate(table) if table else v.strip(_BLANKS) for v in values)
            values = tuple(dict.fromkeys(made))
        return Expression(Shape(Kind.TEXT, values=values), sql(one.sql))

    # -- conditions ------------------------------------------------------------------------------

    def compare(self, node: Any) -> Expression:
        return _truth(
            self._compared(self.read(node.this), _SIGNS[type(node).__name__], node.expression)
        )

    def between(self, node: Any) -> Expression:
        _only(node, "this", "low", "high")
        one = self.read(node.this)
        ends = (
            self._compared(one, ">=", node.args["low"]),
            self._compared(one, "<=", node.args["high"]),
        )
        return _truth(" AND ".join(ends))

    def within(self, node: Any) -> Expression:
        _only(node, "this", "expressions")
        if not node.expressions:
            raise InputError(f"{_place(node)} has an empty list; list values.")
        one = self.read(node.this)
        either = " OR ".join(self._compared(one, "=", each) for each in node.expressions)
        if one.kind is Kind.TEXT and all(_is_text(each) for each in node.expressions):
            listed = ", ".join(quoted(str(each.this)) for each in node.expressions)
            either = f"{one.sql} IN ({listed})"
        return _truth(either)

    def _compared(self, one: Expression, sign: str, node: Any) -> str:
        other = self.read(node)
        if one.kind is Kind.DATE and other.kind is Kind.TEXT and other.constant is not None:
            other = _day(other.constant)
        if one.kind.is_whole and other.kind.is_whole:
            if (one.kind is Kind.DATE) != (other.kind is Kind.DATE):
                raise InputError(
                    f"{_place(node)} is {other.kind.named} but is compared with {one.kind.named}; "
                    "compare a date with a date, such as day >= '2024-01-31'."
                )
            (a, *_), (b, *_), _ = _common(node, one, other)
            return f"({a} {sign} {b})"
        if one.kind is not other.kind:
            raise InputError(
                f"{_place(node)} is {other.kind.named} but is compared with {one.kind.named}; "
                "compare values of one type, such as school = 'North'."
            )
        if one.kind is Kind.BOOLEAN and sign not in ("=", "<>"):
            raise InputError(f"{_place(node)}: truth values can only be equal or not.")
        if one.kind is Kind.TEXT and sign not in ("=", "<>"):
            raise InputError(
                f"{_place(node)}: texts can only be equal or not, because their order depends on "
                "the locale."
            )
        return f"({one.sql} {sign} {other.sql})"

    def both(self, node: Any) -> Expression:
        word = "AND" if type(node).__name__ == "And" else "OR"
        sides = f" {word} ".join(self._condition(e) for e in (node.this, node.expression))
        return _truth(sides)

    def negated(self, node: Any) -> Expression:
        return _truth(f"NOT {self._condition(node.this)}")

    def is_null(self, node: Any) -> Expression:
        if type(node.expression).__name__ != "Null":
            raise InputError(f"{_place(node)}: IS works with NULL only; use =.")
        return _truth(f"{self.read(node.this).sql} IS NULL")

    def _condition(self, node: Any) -> str:
        one = self.read(node)
        if one.kind is not Kind.BOOLEAN:
            raise InputError(f"{_place(node)} is {one.kind.named}; it must be true or false.")
        return one.sql

    # -- choices ---------------------------------------------------------------------------------

    def case(self, node: Any) -> Expression:
        subject = node.args.get("this")
        tests, results = [], []
        for branch in node.args["ifs"]:
            if subject is None:
                tests.append(self._condition(branch.this))
            else:
                tests.append(self._compared(self.read(subject), "=", branch.this))
            results.append(self._or_null(branch.args["true"]))
        default = node.args.get("default")
        results.append(None if default is None else self._or_null(default))
        shape, texts = _joined(node, results)
        whens = " ".join(f"WHEN {t} THEN {r}" for t, r in zip(tests, texts[:-1], strict=True))
        return Expression(shape, f"(CASE {whens} ELSE {texts[-1]} END)")

    def coalesce(self, node: Any) -> Expression:
        results = [self._or_null(each) for each in (node.this, *node.expressions)]
        shape, texts = _joined(node, results)
        return Expression(shape, f"coalesce({', '.join(texts)})")

    def _or_null(self, node: Any) -> Expression | None:
        return None if type(node).__name__ == "Null" else self.read(node)

    # -- operands --------------------------------------------------------------------------------

    def _whole(self, node: Any) -> Expression:
        one = self.read(node)
        if not one.kind.is_whole:
            raise InputError(f"{_place(node)} is {one.kind.named}; it must be a number or a date.")
        return one

    def _numeric(self, node: Any) -> Expression:
        one = self._whole(node)
        if one.kind is Kind.DATE:
            raise InputError(f"{_place(node)} is a date; it must be a number.")
        return one

    def _positive(self, node: Any) -> Fraction:
        one = self._numeric(node)
        if one.constant is None or one.constant <= 0:
            raise InputError(f"{_place(node)}: the divisor must be a constant above 0.")
        return Fraction(one.constant)


_PART_NODES = {
    "Year": "YEAR",
    "Quarter": "QUARTER",
    "Month": "MONTH",
    "Day": "DAY",
    "DayOfMonth": "DAY",
    "DayOfWeekIso": "ISODOW",
}
_SIGNS = {"EQ": "=", "NEQ": "<>", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">="}
_NODES: dict[str, Callable[[_Reader, Any], Expression]] = {
    "Column": _Reader.column,
    "Literal": _Reader.literal,
    "Boolean": _Reader.boolean,
    "Cast": _Reader.cast,
    "Paren": _Reader.paren,
    "Neg": _Reader.negative,
    "Add": _Reader.add,
    "Sub": _Reader.add,
    "Mul": _Reader.multiply,
    "IntDiv": _Reader.floor_divide,
    "Mod": _Reader.remainder,
    "Extract": _Reader.date_part,
    "Lower": _Reader.lower,
    "Trim": _Reader.trim,
    "Between": _Reader.between,
    "In": _Reader.within,
    "And": _Reader.both,
    "Or": _Reader.both,
    "Not": _Reader.negated,
    "Is": _Reader.is_null,
    "Case": _Reader.case,
    "Coalesce": _Reader.coalesce,
    **dict.fromkeys(_SIGNS, _Reader.compare),
    **dict.fromkeys(_PART_NODES, _Reader.date_part),
}
"""The nodes that are taken, by the names that sqlglot gives them; all others are refused."""


def _place(node: Any) -> str:
    return shown(str(node.sql(dialect="duckdb"))[:80])


def _only(node: Any, *parts: str) -> None:
    """Refuse a node with more to it than that, such as a table before a column."""
    for name, value in node.args.items():
        if name not in parts and value not in (None, False, [], ()):
            raise InputError(
                f"{_place(node)} has an option that is not supported; write it without {name!r}."
            )


def _refused(node: Any, name: str) -> InputError:
    exp = optional_import("tables", "sqlglot.expressions", what="an expression over a table")
    kind = ""
    if isinstance(node, exp.AggFunc | exp.Window):
        kind = "aggregate"
    elif isinstance(node, exp.Query | exp.Subquery | exp.Exists):
        kind = "subquery"
    elif name == "Div":
        kind = "division"
    elif name in ("Rand", "Randn", "Uuid"):
        kind = "chance"
    elif name.startswith("Current") or name.startswith("Now") or _word(node) in _CLOCKS:
        kind = "clock"
    remedy = _REMEDIES.get(kind, f"expressions have {KNOWN}")
    return InputError(f"{_place(node)} is not taken: {remedy}.")


_CLOCKS = ("now", "today", "get_current_time", "transaction_timestamp", "current_localtime")


def _word(node: Any) -> str:
    return str(node.this).lower() if type(node).__name__ == "Anonymous" else ""


def _is_text(node: Any) -> bool:
    return type(node).__name__ == "Literal" and bool(node.is_string)


def _day(text: str) -> Expression:
    day = day_of(text, date=None)
    return Expression(Shape(Kind.DATE, low=day, high=day), str(day), Fraction(day))


def _truth(sql: str) -> Expression:
    return Expression(TRUTH, f"({sql})")


def _wider(one: Kind, other: Kind) -> Kind:
    return Kind.NUMBER if Kind.NUMBER in (one, other) else Kind.INTEGER


def _ends(one: Expression) -> tuple[int, int]:
    return one.shape.low, one.shape.high


def _huge(one: Expression) -> str:
    return f"({one.sql})::HUGEINT"


def _floored(sql: str, by: int) -> str:
    """Floor division; that of SQL is towards zero."""
    return f"(({sql} - (({sql} % {by} + {by}) % {by})) // {by})"


def _require_held(node: Any, *numbers: int) -> None:
    """Refuse what whole numbers of 128 bits may not hold."""
    if max(map(abs, numbers)) > _MOST:
        raise InputError(f"{_place(node)} may need more than 120 bits; take fewer digits.")


def _scaled(node: Any, one: Expression, step: Fraction) -> tuple[str, int, int]:
    factor = int(one.shape.step / step)
    low, high = (end * factor for end in _ends(one))
    _require_held(node, factor, low, high)
    return one.sql if factor == 1 else f"({_huge(one)} * {factor})", low, high


def _common(node: Any, one: Expression, other: Expression) -> tuple[Any, Any, Fraction]:
    """Both in steps of one size, of which the steps of each are multiples."""
    step = _divisor([one.shape.step, other.shape.step])
    return _scaled(node, one, step), _scaled(node, other, step), step


def _divisor(steps: Sequence[Fraction]) -> Fraction:
    """The largest fraction of which all are whole multiples."""

    def two(a: Fraction, b: Fraction) -> Fraction:
        return Fraction(
            gcd(a.numerator * b.denominator, b.numerator * a.denominator),
            a.denominator * b.denominator,
        )

    return reduce(two, steps)


def _joined(node: Any, results: Sequence[Expression | None]) -> tuple[Shape, list[str]]:
    """What one of several results can be, and their SQL on common steps."""
    known = [each for each in results if each is not None]
    kinds = {each.kind for each in known}
    if kinds == {Kind.INTEGER, Kind.NUMBER}:
        kinds = {Kind.NUMBER}
    if len(kinds) != 1:
        raise InputError(f"{_place(node)} has results of different types; they must have one.")
    (kind,) = kinds
    if not kind.is_whole:
        values: tuple[Any, ...] | None = ()
        for each in known:
            own = each.shape.values
            values = None if values is None or own is None else (*values, *own)
        shape = replace(known[0].shape, values=values and tuple(dict.fromkeys(values)))
        return shape, ["NULL" if each is None else each.sql for each in results]
    step = _divisor([each.shape.step for each in known])
    scaled = [None if each is None else _scaled(node, each, step) for each in results]
    ends = [end for each in scaled if each is not None for end in each[1:]]
    lists = [_values_of(each) for each in known]
    values = None
    if step == 1 and all(each is not None for each in lists):
        values = tuple(sorted({value for each in lists for value in each or ()}))
    shape = Shape(kind, step, min(ends), max(ends), values)
    return shape, ["NULL" if each is None else each[0] for each in scaled]


def _values_of(one: Expression) -> tuple[Any, ...] | None:
    if one.constant is not None and one.kind is Kind.INTEGER:
        return (int(one.constant),)
    return one.shape.values
