"""Random expressions: the SQL of each beside a function of Python that says what it must be.

Values are exact: fractions for numbers, ordinals for dates, texts, truth values, and None for NULL.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Any

Row = dict[str, Any]
BLANKS = " \t\r\n"
_CAPITALS = {ord(c): c.lower() for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}


@dataclass(frozen=True)
class Made:
    """One expression.

    Attributes:
        sql: as an author writes it.
        of: its value in a row.
    """

    sql: str
    of: Callable[[Row], Any]


def lower(text: str) -> str:
    return text.translate(_CAPITALS)


def all_of(*sides: bool | None) -> bool | None:
    return False if False in sides else None if None in sides else True


def any_of(*sides: bool | None) -> bool | None:
    return True if True in sides else None if None in sides else False


def negated(side: bool | None) -> bool | None:
    return None if side is None else not side


def strict(function: Callable[..., Any], *parts: Made) -> Callable[[Row], Any]:
    """NULL where a part is."""

    def of(row: Row) -> Any:
        values = [part.of(row) for part in parts]
        return None if None in values else function(*values)

    return of


_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
_PARTS: dict[str, Callable[[date], int]] = {
    "YEAR({})": lambda d: d.year,
    "EXTRACT(QUARTER FROM {})": lambda d: (d.month + 2) // 3,
    "MONTH({})": lambda d: d.month,
    "EXTRACT(DAY FROM {})": lambda d: d.day,
    "ISODOW({})": lambda d: d.isoweekday(),
}


class Maker:
    """Makes expressions over columns.

    Args:
        rng: what decides.
        columns: names by kind: integer, number, date, text, boolean.
        texts: constants to compare texts with.
    """

    def __init__(self, rng: random.Random, columns: dict[str, list[str]], texts: list[str]) -> None:
        self.rng, self.columns, self.texts = rng, columns, texts

    def make(self, kind: str, depth: int) -> Made:
        """One of a kind; of ``number`` and ``integer`` either."""
        if depth == 0 or self.rng.random() < 0.15:
            return self._leaf(kind)
        if kind != "boolean" and self.rng.random() < 0.3:
            return self.rng.choice([self._case, self._coalesce])(kind, depth - 1)
        return {
            "integer": self._integer,
            "number": self._number,
            "date": self._date,
            "text": self._text,
            "boolean": self._boolean,
        }[kind](depth - 1)

    def _leaf(self, kind: str) -> Made:
        names = self.columns.get(kind, [])
        if names and (kind == "boolean" or self.rng.random() < 0.7):
            name = self.rng.choice(names)
            return Made(name, lambda row: row[name])
        return self._constant(kind)

    def _constant(self, kind: str) -> Made:
        if kind == "boolean":
            value: Any = self.rng.random() < 0.5
            return Made(str(value).lower(), lambda row: value)
        if kind == "text":
            value = self.rng.choice(self.texts)
            return Made("'" + value.replace("'", "''") + "'", lambda row: value)
        if kind == "date":
            value = self.rng.randint(date(1900, 1, 1).toordinal(), date(2100, 1, 1).toordinal())
            return Made(f"DATE '{date.fromordinal(value).isoformat()}'", lambda row: value)
        text = str(self.rng.choice([0, 1, 2, 3, 7, 100, 12345, 2**40]))
        if kind == "number":
            text = self.rng.choice(["0.5", "1.25", "0.001", "3.14159", "1e3", "2.5e-4"])
        return Made(text, lambda row: Fraction(text))

    def _divisor(self, kind: str) -> tuple[str, Fraction]:
        texts = ["1", "2", "3", "7", "10", "365", *(["0.5", "0.03", "2.5"] * (kind == "number"))]
        text = self.rng.choice(texts)
        return text, Fraction(text)

    def _integer(self, depth: int) -> Made:
        rng = self.rng
        choice = rng.randrange(6)
        if choice == 0:
            one, (text, by) = self.make("number", depth), self._divisor("number")
            return Made(f"({one.sql} // {text})", strict(lambda a: Fraction(a // by), one))
        if choice == 1:
            one, (text, by) = self.make("integer", depth), self._divisor("integer")
            return Made(f"({one.sql} % {text})", strict(lambda a: a % by, one))
        if choice == 2:
            words, part = rng.choice([*_PARTS.items()])
            one = self.make("date", depth)
            taken = strict(lambda a: Fraction(part(date.fromordinal(int(a)))), one)
            return Made(words.format(one.sql), taken)
        if choice == 3:
            one, other = self.make("date", depth), self.make("date", depth)
            return Made(
                f"({one.sql} - {other.sql})", strict(lambda a, b: Fraction(a - b), one, other)
            )
        return self._arithmetic("integer", "integer", depth)

    def _number(self, depth: int) -> Made:
        kinds = self.rng.choice(
            [("number", "integer"), ("integer", "number"), ("number", "number")]
        )
        return self._arithmetic(*kinds, depth)

    def _arithmetic(self, first: str, second: str, depth: int) -> Made:
        one, other = self.make(first, depth), self.make(second, depth)
        sign = self.rng.choice("+-*~")
        if sign == "+":
            return Made(f"({one.sql} + {other.sql})", strict(lambda a, b: a + b, one, other))
        if sign == "-":
            return Made(f"({one.sql} - {other.sql})", strict(lambda a, b: a - b, one, other))
        if sign == "*":
            return Made(f"({one.sql} * {other.sql})", strict(lambda a, b: a * b, one, other))
        both = strict(lambda a, b: b - a, one, other)
        return Made(f"(-{one.sql} + {other.sql})", both)

    def _date(self, depth: int) -> Made:
        one, days = self.make("date", depth), self.rng.randint(0, 400)
        if self.rng.random() < 0.5:
            return Made(f"({one.sql} + {days})", strict(lambda a: a + days, one))
        return Made(f"({one.sql} - {days})", strict(lambda a: a - days, one))

    def _text(self, depth: int) -> Made:
        one = self.make("text", depth)
        if self.rng.random() < 0.5:
            return Made(f"LOWER({one.sql})", strict(lower, one))
        return Made(f"TRIM({one.sql})", strict(lambda a: a.strip(BLANKS), one))

    def _boolean(self, depth: int) -> Made:
        rng = self.rng
        choice = rng.randrange(7)
        if choice == 0:
            one, other = self.make("boolean", depth), self.make("boolean", depth)
            return Made(f"({one.sql} AND {other.sql})", lambda r: all_of(one.of(r), other.of(r)))
        if choice == 1:
            one, other = self.make("boolean", depth), self.make("boolean", depth)
            return Made(f"({one.sql} OR {other.sql})", lambda r: any_of(one.of(r), other.of(r)))
        if choice == 2:
            one = self.make("boolean", depth)
            return Made(f"(NOT {one.sql})", lambda r: negated(one.of(r)))
        kind = rng.choice(["integer", "number", "date", "text", "number"])
        if choice == 3:
            one = self.make(kind, depth)
            return Made(f"({one.sql} IS NULL)", lambda r: one.of(r) is None)
        if choice == 4 and kind != "text":
            one, low, high = (self.make(kind, depth) for _ in range(3))
            within = f"({one.sql} BETWEEN {low.sql} AND {high.sql})"
            parts = (strict(_COMPARED[">="], one, low), strict(_COMPARED["<="], one, high))
            return Made(within, lambda r: all_of(*(part(r) for part in parts)))
        if choice == 5:
            one = self.make(kind, depth)
            listed = [self._constant(kind) for _ in range(rng.randint(1, 3))]
            equal = [strict(_COMPARED["="], one, each) for each in listed]
            word = rng.choice(["IN", "NOT IN"])
            sql = f"({one.sql} {word} ({', '.join(each.sql for each in listed)}))"
            if word == "IN":
                return Made(sql, lambda r: any_of(*(each(r) for each in equal)))
            return Made(sql, lambda r: negated(any_of(*(each(r) for each in equal))))
        sign = rng.choice([*_COMPARED] if kind != "text" else ["=", "<>"])
        one, other = self.make(kind, depth), self.make(kind, depth)
        return Made(f"({one.sql} {sign} {other.sql})", strict(_COMPARED[sign], one, other))

    def _case(self, kind: str, depth: int) -> Made:
        tests = [self.make("boolean", depth) for _ in range(self.rng.randint(1, 2))]
        results = [self.make(kind, depth) for _ in tests]
        last = self.make(kind, depth) if self.rng.random() < 0.6 else None
        whens = " ".join(f"WHEN {t.sql} THEN {r.sql}" for t, r in zip(tests, results, strict=True))

        def of(row: Row) -> Any:
            for test, result in zip(tests, results, strict=True):
                if test.of(row):
                    return result.of(row)
            return None if last is None else last.of(row)

        return Made(f"(CASE {whens} {f'ELSE {last.sql} ' if last else ''}END)", of)

    def _coalesce(self, kind: str, depth: int) -> Made:
        parts = [self.make(kind, depth) for _ in range(2)]
        listed = ", ".join(part.sql for part in parts)

        def of(row: Row) -> Any:
            return next((v for v in (part.of(row) for part in parts) if v is not None), None)

        return Made(f"COALESCE({listed})", of)
