"""Rows and vectors as the custodian knows them: SQL over the table, and what is public of it.

Each is a description. Making one reads no row, so that whatever is refused follows from schema and
request alone. Rows of a unit are in the order of a keyed hash; never of their place in a file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.base.validate import shown
from dpaudit.mechanisms import Norm
from dpaudit.sealed.encoders import MOST_COLUMNS, Encoded, Whole, encode, linear
from dpaudit.tables.expressions import Expression, quoted, read_condition, read_expression
from dpaudit.tables.grouping import Groups, column_of, read_groups
from dpaudit.tables.schema import LARGEST, Kind, Shape

_LONGEST, _DEEPEST = 200_000, 200
"""Characters of what describes rows, and queries within each other."""
_LONGEST_VECTOR = 10_000_000


@dataclass(frozen=True)
class Sample:
    """Units that were drawn for one release.

    Attributes:
        at: label of the release.
        table: of their codes.
    """

    at: str
    table: str


@dataclass(frozen=True)
class Rows:
    """Some rows of the table.

    Attributes:
        sql: a query that gives the code of the unit, the place of the row, and its carriers.
        known: expressions over these, by lower-case name.
        most: how many rows of a unit there can be; None where nothing bounds them.
        part: the key of these units, if units were partitioned.
        sample: whose rows they are, where units were drawn.
        made: whether they are of numbers that a function made.
    """

    sql: str
    known: Mapping[str, Expression]
    most: int | None = None
    part: str | None = None
    sample: Sample | None = None
    made: bool = False

    def __post_init__(self) -> None:
        if len(self.sql) > _LONGEST or self.sql.count("FROM (") > _DEEPEST:
            raise InputError("rows are described by too many steps; take fewer filters.")

    def filter(self, condition: object) -> Rows:
        """Those of which a condition is true.

        Raises:
            InputError: if it is no condition that sees one row.
        """
        found = read_condition(condition, self.known)
        return replace(self, sql=f"SELECT * FROM ({self.sql}) WHERE coalesce({found.sql}, false)")

    def with_columns(self, columns: Mapping[str, Any]) -> Rows:
        """The same rows with further columns.

        Raises:
            InputError: if a name is taken, or an expression is wrong.
        """
        known = dict(self.known)
        for name, text in columns.items():
            if name.casefold() in known:
                raise InputError(f"{shown(name)} is already a column; choose another name.")
            known[name.casefold()] = read_expression(text, known)
        return replace(self, known=known)

    def group_rows(self, most: object) -> Rows:
        """At most so many rows of each unit."""
        number = validate.integer_at_least(1, most=most)
        place = "row_number() OVER (PARTITION BY code ORDER BY place)"
        first = f"SELECT * FROM ({self.sql}) QUALIFY {place} <= {number}"
        return replace(self, sql=first, most=min(number, self.most or number))

    def of_units(self, names: Sequence[str]) -> Rows:
        """The rows of some units, by their public names."""
        listed = ", ".join(map(quoted, names))
        own = f"SELECT code FROM units WHERE u IN ({listed})"
        return replace(self, sql=f"SELECT * FROM ({self.sql}) WHERE code IN ({own})")

    def partition(self, column: object, keys: object) -> tuple[str, dict[str | int, Rows]]:
        """The rows of the units whose first row with a value has each of some public keys.

        Args:
            column: of texts or whole numbers.
            keys: public ones; those that the schema lists where None.

        Returns:
            A query that gives the rows with the key of their unit, for the table ``divided``; and
            the rows of each key, read from that table.

        Raises:
            InputError: if the column has no such keys, or the rows are of some units alone.
        """
        if self.part is not None or self.sample is not None:
            raise InputError("rows are those of some units only; partition all units, once.")
        of = column_of(validate.text(column=column), self.known)
        listed = of.shape.values if keys is None else keys
        kind = str if of.kind is Kind.TEXT else int
        if (of.kind not in (Kind.TEXT, Kind.INTEGER)) or not isinstance(listed, Sequence):
            raise InputError(f"column {shown(column)} must be of texts or integers, with keys.")
        if not listed or any(type(each) is not kind for each in listed):
            raise InputError(
                f"keys must be {'texts' if kind is str else 'integers'} of the column."
            )
        if len(set(listed)) < len(listed):
            raise InputError("keys has a key twice; list each once.")
        of_unit = f"SELECT code, arg_min({of.sql}, place) AS k FROM ({self.sql}) GROUP BY code"
        found = {}
        for key in listed:
            literal = quoted(key) if kind is str else str(key)
            rows = f"SELECT * EXCLUDE (k) FROM divided WHERE k = {literal}"
            found[key] = replace(self, sql=rows, part=str(key))
        return f"SELECT * FROM ({self.sql}) JOIN ({of_unit}) USING (code) ORDER BY k, place", found

    def of_sample(self, sample: Sample) -> Rows:
        """The rows of the units that were drawn.

        Raises:
            InputError: if these are rows of a sample already.
        """
        if self.sample is not None:
            raise InputError("rows are already a sample; draw the sample from all rows.")
        rows = f"SELECT * FROM ({self.sql}) SEMI JOIN {sample.table} USING (code)"
        return replace(self, sql=rows, sample=sample)

    def vector(self, columns: object) -> Vectors:
        """A number for each row, or an array of numbers.

        Args:
            columns: an expression, or a list of them, of numbers.

        Raises:
            InputError: if one of them is no number, or too large for whole numbers of 2^53.
        """
        texts = [columns] if isinstance(columns, str) else columns
        if not isinstance(texts, list) or not 1 <= len(texts) <= MOST_COLUMNS:
            raise InputError(
                f"vector is given {shown(columns)}; it must be a column or a list of them."
            )
        found = [read_expression(text, self.known) for text in texts]
        for text, each in zip(texts, found, strict=True):
            if not each.kind.is_whole or each.kind is Kind.DATE:
                raise InputError(f"{shown(text)} is a {each.kind}; it must be a number.")
        step = _common([each.shape.step for each in found])
        ratios = [each.shape.step / step for each in found]
        parts = tuple(
            f"coalesce(({each.sql})::HUGEINT * {int(ratio)}, 0)::BIGINT"
            for each, ratio in zip(found, ratios, strict=True)
        )
        if sum(map(len, parts)) > _LONGEST_VECTOR:
            raise InputError("vector is described by too many steps; take fewer columns.")
        ends = np.array(
            [
                [min(each.shape.low * int(ratio), 0), max(each.shape.high * int(ratio), 0)]
                for each, ratio in zip(found, ratios, strict=True)
            ],
            dtype=object,
        )
        return Vectors(self, parts, isinstance(columns, str), step, ends)

    def cells(self, by: object) -> Cells:
        """Numbers of public groups of one or several columns; of other values there is none.

        Raises:
            InputError: as :func:`~dpaudit.tables.grouping.read_groups`.
        """
        groups = read_groups(by, self.known)
        if not groups.columns:
            raise InputError("by is missing; name a column, or a column with edges.")
        return Cells(self, groups)

    def value(self, column: object) -> Expression:
        """A column of texts or of whole numbers.

        Raises:
            InputError: if it is another, or there is none.
        """
        found = column_of(validate.text(column=column), self.known)
        if found.kind not in (Kind.TEXT, Kind.INTEGER):
            raise InputError(f"{shown(column)} is a {found.kind}; keys are texts or integers.")
        return found


@dataclass(frozen=True, eq=False)
class Vectors:
    """An array of whole numbers of a step for each row.

    Attributes:
        rows: whose they are.
        parts: SQL of the entries, before they are encoded.
        scalar: whether each is one number and no array.
        step: what one whole number stands for.
        ends: smallest and largest whole number of each entry, shape (d, 2), 0 among them.
        encoded: by what, one after another.
    """

    rows: Rows
    parts: tuple[str, ...]
    scalar: bool
    step: Fraction
    ends: NDArray[Any]
    encoded: tuple[Encoded, ...] = ()

    def __post_init__(self) -> None:
        numerator, denominator = self.step.numerator, self.step.denominator
        largest = max(map(abs, self.ends.ravel().tolist()))
        if largest * numerator > LARGEST or denominator > LARGEST:
            raise InputError(
                f"an entry of the vector may be {largest:.3g} steps large; at most 2^53 are "
                "allowed, so use a larger step or a smaller range."
            )
        if len(self.encoded) > _DEEPEST:
            raise InputError("vectors are encoded by too many steps; take fewer.")

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the array of a row; () for numbers."""
        return () if self.scalar else (len(self.ends),)

    @property
    def facts(self) -> dict[str, Any]:
        """What is public of it: its shape and the range of each entry."""
        ends = [[self.natural(end) for end in pair] for pair in self.ends.tolist()]
        return {"shape": list(self.shape), "step": self.natural(1), "ranges": ends}

    def corners(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """The smallest and the largest array that a row can have."""
        low, high = (
            np.array([self.natural(end) for end in ends]).reshape(self.shape)
            for ends in self.ends.T.tolist()
        )
        return low, high

    def natural(self, steps: int) -> int | float:
        """So many steps, as a number."""
        return steps if self.step == 1 else float(steps * self.step)

    def as_rows(self) -> Rows:
        """A row for each number, with the column ``value``; of arrays ``value_1``, ``value_2``, ….

        Raises:
            InputError: if they are encoded.
        """
        if self.encoded:
            raise InputError("vectors are encoded; call rows before encode.")
        names = ["value"] if self.scalar else [f"value_{n + 1}" for n in range(len(self.parts))]
        known = {
            name: Expression(Shape(Kind.NUMBER, self.step, *ends), f"({part})")
            for name, part, ends in zip(names, self.parts, self.ends.tolist(), strict=True)
        }
        return replace(self.rows, known=known)

    def linear(self, matrix: object) -> Vectors:
        """Each array multiplied by a public matrix of whole numbers.

        Args:
            matrix: shape (entries of the result, entries).

        Raises:
            InputError: if it has another shape, or the results may be larger than 2^53 steps.
        """
        if self.scalar:
            raise InputError("linear needs arrays; give the vector of a list of columns.")
        return self._then(linear(self.ends, self.step, matrix))

    def encode(self, by: object, options: Mapping[str, Any]) -> Vectors:
        """Each array as an encoder makes it.

        Raises:
            InputError: if there is none, or the results may be larger than 2^53 steps.
        """
        return self._then(encode(by, options, self.ends, self.step))

    def _then(self, last: Encoded) -> Vectors:
        return replace(self, step=last.step, ends=last.ends, encoded=(*self.encoded, last))

    def lie_within(self, sensitivity: float, norm: Norm) -> bool:
        """Tell whether an encoder keeps any two arrays, and 0, within that distance."""
        diameter = self.encoded[-1].diameter if self.encoded else None
        return diameter is not None and norm is Norm.L2 and diameter <= sensitivity

    def encodings(self, steps: Whole) -> Whole:
        """Whole numbers of entries before encoding, as they are after it, shape (n, entries)."""
        for each in self.encoded:
            steps = each.of(steps)
        return steps

    def numbers(self, steps: Whole) -> NDArray[Any]:
        """Whole numbers of entries before encoding, as numbers: integers, or the nearest floats.

        Args:
            steps: shape (n, d).
        """
        encoded = self.encodings(steps)
        found = encoded[:, 0] if self.scalar else encoded
        if self.step == 1:
            return found
        return found.astype(np.float64) * self.step.numerator / self.step.denominator


@dataclass(frozen=True)
class Cells:
    """The public group of each row.

    Attributes:
        rows: whose they are.
        groups: of one or several columns.
    """

    rows: Rows
    groups: Groups

    @property
    def shape(self) -> tuple[int, ...]:
        """How many groups each column has, others left out."""
        return tuple(len(each.labels) for each in self.groups.columns)

    @property
    def size(self) -> int:
        """How many cells there are."""
        return math.prod(self.shape)

    def numbers(self, places: Sequence[Whole]) -> Whole:
        """The number of each row's cell, −1 of a value that is in no group.

        Args:
            places: of each column the group of each row.
        """
        inside = np.logical_and.reduce([p < n for p, n in zip(places, self.shape, strict=True)])
        found = np.full(len(inside), -1, dtype=np.int64)
        found[inside] = np.ravel_multi_index([each[inside] for each in places], self.shape)
        return found


def _common(steps: Sequence[Fraction]) -> Fraction:
    """The largest step of which all of them are multiples."""
    denominator = math.lcm(*(each.denominator for each in steps))
    return Fraction(math.gcd(*(int(each * denominator) for each in steps)), denominator)
