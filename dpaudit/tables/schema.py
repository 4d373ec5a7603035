"""The public schema of a table: its columns, what each may hold, and whose a row is.

What a file holds is read by this schema alone: nothing is detected. A value that does not fit, an
infinity and NaN are NULL; a number or a date outside its range is taken as the nearest end. A
column is carried as text, as truth values, or as whole numbers of steps, so that no sum is ever
rounded. Release files and expressions are read against a schema, and engines cast by it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from fractions import Fraction
from typing import Any

from dpaudit.base import toml_tables, validate
from dpaudit.base.errors import InputError
from dpaudit.base.validate import shown
from dpaudit.tables.keys import COLUMN

LARGEST = 2**53
"""Of the whole numbers that a column carries: floats hold each of them."""
MOST_VALUES = 100_000
"""Of a list of public values."""
_EPOCH = date(1970, 1, 1).toordinal()


class Kind(StrEnum):
    """What a column holds."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    DATE = "date"
    BOOLEAN = "boolean"

    @property
    def is_whole(self) -> bool:
        """Whether it is carried as whole numbers of steps."""
        return self in (Kind.INTEGER, Kind.NUMBER, Kind.DATE)

    @property
    def named(self) -> str:
        """With its article, for sentences."""
        return f"{'an' if self is Kind.INTEGER else 'a'} {self}"


@dataclass(frozen=True)
class Shape:
    """What is publicly known of a value.

    Attributes:
        kind: text, truth value, or whole numbers of steps.
        step: of numbers; 1 of integers and dates (days since 1970).
        low: smallest whole number of steps.
        high: largest one.
        values: what a text can be, or an integer, in order; None where nobody lists them.
    """

    kind: Kind
    step: Fraction = Fraction(1)
    low: int = 0
    high: int = 0
    values: tuple[Any, ...] | None = None

    def of_steps(self, steps: int) -> Any:
        """The value of that many steps: an integer, the nearest float, or a date as text."""
        if self.kind is Kind.DATE:
            return date.fromordinal(_EPOCH + steps).isoformat()
        return steps if self.step == 1 else float(steps * self.step)

    def steps_of(self, value: Any, **field: object) -> int:
        """The number of steps of a public value, such as an edge.

        Raises:
            InputError: if it is of another type, or no multiple of the step.
        """
        ((name, _),) = (field or {"value": None}).items()
        if self.kind is Kind.DATE:
            return day_of(value, **{name: value})
        exact = Fraction(str(validate.finite(**{name: value}))) / self.step
        if exact.denominator != 1:
            raise InputError(
                f"{name} is {shown(value)}; it must be a multiple of the step {float(self.step):g}."
            )
        return int(exact)


TRUTH = Shape(Kind.BOOLEAN, high=1, values=(False, True))
"""False or true."""


def day_of(value: object, **field: object) -> int:
    """Days since 1970 of a public date.

    Raises:
        InputError: if it is none.
    """
    ((name, _),) = field.items()
    try:
        day = value if isinstance(value, date) else date.fromisoformat(str(value))
    except ValueError:
        raise InputError(
            f"{name} is {shown(value)}; it must be a date, such as 2024-01-31."
        ) from None
    return date(day.year, day.month, day.day).toordinal() - _EPOCH


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes:
        name: as the source calls it.
        shape: what it can hold.
    """

    name: str
    shape: Shape

    @classmethod
    def read(cls, name: str, table: object) -> Column:
        """A column of a release file.

        Raises:
            InputError: if a key or a value is wrong.
        """
        with toml_tables.within(f"columns.{name:.80}"):
            validate.text(column=name)
            given = toml_tables.table("column", table, COLUMN)
            kind = Kind(toml_tables.chosen([*Kind], type=given.pop("type", None)))
            if kind is not Kind.NUMBER and "step" in given:
                raise InputError(f"step is given for {kind} values; only numbers have one.")
            if kind in (Kind.TEXT, Kind.BOOLEAN) and "range" in given:
                raise InputError(
                    f"range is given for {kind} values; only numbers and dates have one."
                )
            return cls(name, _SHAPES[kind](kind, given))


def _text(kind: Kind, given: Mapping[str, Any]) -> Shape:
    values = given.get("values")
    return Shape(kind, values=None if values is None else _listed(values, str))


def _boolean(kind: Kind, given: Mapping[str, Any]) -> Shape:
    if "values" in given:
        raise InputError("values is given for booleans, which are false and true; leave it out.")
    return TRUTH


def _whole(kind: Kind, given: Mapping[str, Any]) -> Shape:
    if "values" in given:
        if kind is not Kind.INTEGER:
            raise InputError(f"values is given for {kind.named}; give its range.")
        if "range" in given:
            raise InputError("values and range are both given; keep one of them.")
        values = tuple(sorted(_listed(given["values"], int)))
        return _fitting(Shape(kind, low=values[0], high=values[-1], values=values))
    ends = given.get("range")
    if not isinstance(ends, list | tuple) or len(ends) != 2:
        raise InputError(
            f"range is {shown(ends)}; it must have two ends, such as range = [0, 110]."
        )
    if kind is not Kind.DATE and any(isinstance(end, str) for end in ends):
        raise InputError(
            f"range is {shown(ends)}; it must have numbers that are known without the data."
        )
    step = Fraction(1)
    if kind is Kind.NUMBER:
        step = Fraction(str(validate.positive(step=given.get("step"))))
    ruler = Shape(kind, step)
    low, high = (ruler.steps_of(end, range=end) for end in ends)
    if low >= high:
        raise InputError(f"range is {shown(list(ends))}; the first end must be below the second.")
    return _fitting(Shape(kind, step, low, high))


def _fitting(shape: Shape) -> Shape:
    if max(-shape.low, shape.high) > LARGEST:
        raise InputError(
            f"range has more than {LARGEST} steps on one side of 0; take larger steps."
        )
    return shape


def _listed(values: object, kind: type) -> tuple[Any, ...]:
    """Public values, each once."""
    if not isinstance(values, list | tuple) or not values or len(values) > MOST_VALUES:
        raise InputError(
            f"values must be a list of 1 to {MOST_VALUES} public values, known without the data; "
            "to release values that are not listed, use a query with keys."
        )
    for each in values:
        if type(each) is not kind:
            named = "texts" if kind is str else "integers"
            raise InputError(f"values has {shown(each)}; they must be {named}.")
        if kind is str and each:
            validate.text(values=each)
    if len(set(values)) < len(values):
        twice, _ = Counter(values).most_common(1)[0]
        raise InputError(f"values has {shown(twice)} twice; list each once.")
    return tuple(values)


_SHAPES = {
    Kind.TEXT: _text,
    Kind.BOOLEAN: _boolean,
    Kind.INTEGER: _whole,
    Kind.NUMBER: _whole,
    Kind.DATE: _whole,
}


def read_columns(place: str, tables: object) -> tuple[Column, ...]:
    """The columns of a table, in the order of the file.

    Raises:
        InputError: if there is none, or one of them is wrong.
    """
    if not isinstance(tables, Mapping) or not tables:
        raise InputError(f'{place} needs columns, as columns.age = {{ type = "integer", … }}.')
    return tuple(Column.read(name, table) for name, table in tables.items())


def by_name(columns: Sequence[Column]) -> dict[str, Column]:
    """Columns by their names.

    Raises:
        InputError: if two have one name, capital letters apart: expressions do not tell them.
    """
    found: dict[str, Column] = {}
    for column in columns:
        if found.setdefault(column.name.casefold(), column) is not column:
            raise InputError(f"column {shown(column.name)} is declared twice; rename one of them.")
    return found
