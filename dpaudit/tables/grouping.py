"""Public groups: values or edges of one or several columns, each with an *other* group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

from dpaudit.base import toml_tables
from dpaudit.base.errors import InputError
from dpaudit.base.validate import shown
from dpaudit.tables.expressions import Expression, quoted
from dpaudit.tables.schema import Kind, Shape

OTHER = "other"
MOST_CELLS = 1_000_000
_MOST_INTEGERS = 1_000
"""Of a range of integers that is grouped by its values."""
_FEW = 40
"""Texts that are compared one by one; of more, the place is looked up in a list."""


@dataclass(frozen=True)
class Grouping:
    """The groups of one column.

    Attributes:
        name: of the column.
        labels: of the groups, without *other*.
        sql: number of a row's group; that of *other* is the number of labels.
    """

    name: str
    labels: tuple[str, ...]
    sql: str

    @classmethod
    def by_values(cls, name: str, of: Expression) -> Grouping:
        """One group for each public value.

        Raises:
            InputError: if nobody lists its values.
        """
        shape = of.shape
        values = shape.values
        if values is None and shape.kind is Kind.INTEGER:
            size = shape.high - shape.low + 1
            values = tuple(range(shape.low, shape.high + 1)) if size <= _MOST_INTEGERS else None
        if values is None:
            wanted = "values" if shape.kind is Kind.TEXT else "edges"
            raise InputError(
                f"{shown(name)} is a column whose values are not listed; give {wanted}, or "
                "release unlisted keys with a query that has keys."
            )
        labels = tuple(map(_label, values))
        if OTHER in labels:
            raise InputError(
                f"{shown(name)} is a column with the value {OTHER!r}, the name for everything "
                "that is not listed; leave this value out, or rename it by a derived column."
            )
        return cls(name, labels, _place_of(of.sql, values, shape.kind))

    @classmethod
    def by_edges(cls, name: str, of: Expression, edges: object) -> Grouping:
        """One group between each two edges, the upper edge out but for the last group.

        Raises:
            InputError: if the edges are no increasing values of the column.
        """
        places = edges_of(of.shape, edges)
        labels = [
            f"{_label(of.shape.of_steps(low))} to {_label(of.shape.of_steps(high))}"
            for low, high in pairwise(places)
        ]
        inner = number_of(of.sql, places[1:-1])
        outside = f"{of.sql} IS NULL OR {of.sql} < {places[0]} OR {of.sql} > {places[-1]}"
        return cls(name, tuple(labels), f"CASE WHEN {outside} THEN {len(labels)} ELSE {inner} END")


@dataclass(frozen=True)
class Groups:
    """The cells of all columns together."""

    columns: tuple[Grouping, ...] = ()

    @property
    def size(self) -> int:
        """How many cells there are, those of *other* included."""
        size = 1
        for each in self.columns:
            size *= len(each.labels) + 1
        return size

    @property
    def sql(self) -> str:
        """The number of a row's cell."""
        sql = "0"
        for each in self.columns:
            sql = f"({sql} * {len(each.labels) + 1} + ({each.sql}))"
        return sql

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns."""
        return tuple(each.name for each in self.columns)

    def labels(self) -> Iterator[tuple[str, ...]]:
        """The labels of each cell, in the order of their numbers."""
        return product(*((*each.labels, OTHER) for each in self.columns))


def read_groups(by: object, known: Mapping[str, Expression]) -> Groups:
    """The groups of a query.

    Args:
        by: names of columns, or tables of a column and its edges, one or a list.
        known: the columns, by lower-case name.

    Raises:
        InputError: if a column is unknown or twice, or there are too many cells.
    """
    listed = by if isinstance(by, list | tuple) else [] if by is None else [by]
    found = []
    for each in listed:
        if isinstance(each, str):
            found.append(Grouping.by_values(each, column_of(each, known)))
            continue
        given = toml_tables.table("by", each, ("column", "edges"))
        name = str(given.get("column"))
        found.append(Grouping.by_edges(name, column_of(name, known), given.get("edges")))
    groups = Groups(tuple(found))
    if len(set(map(str.casefold, groups.names))) < len(found):
        raise InputError("by has a column twice; name each once.")
    if groups.size > MOST_CELLS:
        raise InputError(f"by makes {groups.size} cells; it may make at most {MOST_CELLS}.")
    return groups


def column_of(name: str, known: Mapping[str, Expression]) -> Expression:
    """A column by its name.

    Raises:
        InputError: if there is none; with the nearest.
    """
    if name.casefold() not in known:
        nearest = toml_tables.nearest(name, list(known))
        raise InputError(f"there is no column {shown(name)}; {nearest}")
    return known[name.casefold()]


def edges_of(shape: Shape, edges: object) -> tuple[int, ...]:
    """Edges, or candidates, in steps of a column.

    Raises:
        InputError: if they are no increasing values of it, two to ten thousand.
    """
    if not shape.kind.is_whole:
        raise InputError(
            f"edges are given for {shape.kind.named}; only numbers and dates have edges, so leave "
            "them out."
        )
    if not isinstance(edges, list | tuple) or not 2 <= len(edges) <= 10_000:
        raise InputError(f"edges is {shown(edges)}; they must be 2 to 10000 increasing values.")
    places = tuple(shape.steps_of(edge, edges=edge) for edge in edges)
    if any(low >= high for low, high in pairwise(places)):
        raise InputError(f"edges is {shown(list(edges))}; they must increase.")
    return places


def number_of(value: str, places: Sequence[int]) -> str:
    """How many of some increasing places a value reaches, in SQL: by halves, as a tree is read."""
    if not places:
        return "0"

    def between(low: int, high: int) -> str:
        if low == high:
            return str(low)
        middle = (low + high) // 2
        left, right = between(low, middle), between(middle + 1, high)
        return f"CASE WHEN {value} < {places[middle]} THEN {left} ELSE {right} END"

    return between(0, len(places))


def _place_of(sql: str, values: Sequence[Any], kind: Kind) -> str:
    """The place of a value in a list, or its length."""
    listed = [quoted(each) if kind is Kind.TEXT else str(each) for each in values]
    if len(values) <= _FEW:
        whens = " ".join(f"WHEN {each} THEN {place}" for place, each in enumerate(listed))
        return f"CASE {sql} {whens} ELSE {len(values)} END"
    if kind.is_whole and len(values) == values[-1] - values[0] + 1:  # in order, each once
        inside = f"{sql} BETWEEN {values[0]} AND {values[-1]}"
        return f"CASE WHEN {inside} THEN {sql} - {values[0]} ELSE {len(values)} END"
    pairs = ", ".join(f"{each}: {place}" for place, each in enumerate(listed))
    return f"coalesce(MAP {{{pairs}}}[{sql}], {len(values)})"


def _label(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value}"
