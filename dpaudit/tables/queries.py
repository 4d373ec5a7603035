"""The queries of a release: each with what it costs, what an engine computes, and its error.

A query is one class. It says its releases for a share of the budget, its measures in SQL, and what
is told of what left. Bounds of a unit's rows and groups hold for every table, so that the declared
sensitivities are facts of the query alone: no row is needed to know them.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpaudit.base.errors import InputError
from dpaudit.base.numbers import down, up
from dpaudit.mechanisms import (
    DiscreteLaplace,
    ExponentialMechanism,
    Gaussian,
    Laplace,
    Mechanism,
    StableHistogram,
    TopK,
)
from dpaudit.mechanisms.rounding import round_up
from dpaudit.tables.expressions import Expression, day_sql
from dpaudit.tables.grouping import Groups, number_of
from dpaudit.tables.measures import Aggregate, Measure, Selection
from dpaudit.tables.noise import CONFIDENCE, half_width, mean_reach, ratio_intervals
from dpaudit.tables.schema import Kind

_NO_INTERVAL = "an interval of values would need the rows between them, which are private"
_LARGEST_WHOLE = 2**62
_LARGEST_FLOAT = 2**53


class Noise(StrEnum):
    """What is added to counts and sums."""

    LAPLACE = "laplace"
    GAUSSIAN = "gaussian"


@dataclass(frozen=True)
class Part:
    """The releases of a query at one label.

    Attributes:
        at: the label.
        mechanism: what draws.
        sensitivity: in its norm.
        count: at how many of them, at most, neighbours differ.
        total: how many there are.
    """

    at: str
    mechanism: Mechanism
    sensitivity: float
    count: int = 1
    total: int = 1


Parts = tuple[Part, ...]


@dataclass(frozen=True)
class Estimate:
    """One released number, or word, with the interval of its noise.

    Attributes:
        cell: labels of its group, one for each column of ``by``.
        value: the number; the chosen value of a query that chooses.
        low: end of an interval that holds the true number with the stated probability, where there
            is one; true is what the bounds left.
        high: its other end.
        note: what else is known of its error, in words.
    """

    cell: tuple[str, ...]
    value: Any
    low: float | None = None
    high: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Query:
    """Base of all queries.

    Attributes:
        name: of the query, and label of its releases.
        rows: how many rows of a unit count, at most.
        replaces: whether a unit is replaced in a neighbour, and not absent from it.
        weight: share of the budget, relative to that of the other queries.
        where: which rows count; all without it.
        groups: in which cells.
        groups_per_unit: in how many cells a unit counts, at most; as many as rows without it.
    """

    kind: ClassVar[str] = ""
    name: str
    rows: int
    replaces: bool
    weight: float = 1.0
    where: Expression | None = None
    groups: Groups = field(default_factory=Groups)
    groups_per_unit: int | None = None

    @abstractmethod
    def parts(self, share: float, noise: Noise, delta: float) -> Parts:
        """Its releases, for a share of ε; of a δ, where it needs one."""

    @abstractmethod
    def measures(self) -> tuple[Measure, ...]:
        """What an engine computes for it."""

    @abstractmethod
    def estimates(self, parts: Parts, released: Mapping[str, Any]) -> tuple[Estimate, ...]:
        """What is told, of what the ledger released at its labels."""

    @abstractmethod
    def expected_error(self, parts: Parts) -> str:
        """How far a number lies from the truth at most, with 95 % probability, before any data."""

    def noise_unit(self, part: Part) -> str:
        """In what the noise of a part is counted, where it is neither rows nor units."""
        return ""

    @abstractmethod
    def describe(self) -> str:
        """The query in words, without its name."""

    def private_value(self, at: str, found: NDArray[Any], part: Part) -> list[NDArray[Any]]:
        """What is released at a label, one value for each release; whole numbers within floats."""
        most = _LARGEST_WHOLE if isinstance(part.mechanism, DiscreteLaplace) else _LARGEST_FLOAT
        kind = np.int64 if most == _LARGEST_WHOLE else np.float64
        clipped = [min(max(int(each), -most), most) for each in found.ravel().tolist()]
        return [np.array(clipped, dtype=kind)]

    @property
    def columns(self) -> tuple[str, ...]:
        """What the labels of its cells are called."""
        return self.groups.names

    def exact(self, integers: Mapping[str, int]) -> Any:
        """One cell without noise, for the owner alone, of the integers at its labels."""
        return integers[self.name]

    # -- what one unit does ----------------------------------------------------------------------

    @property
    def touched(self) -> int:
        """In how many cells one unit counts, at most."""
        most = self.rows if self.groups_per_unit is None else self.groups_per_unit
        return min(self.rows, most, self.groups.size)

    @property
    def moved(self) -> int:
        """How many cells differ between neighbours, at most."""
        return min(self.touched * (2 if self.replaces else 1), self.groups.size)

    def selection(self, condition: str = "") -> Selection:
        """The rows that count."""
        both = [each for each in (self.where.sql if self.where else "", condition) if each]
        return Selection(
            " AND ".join(f"({each})" for each in both) or "true",
            self.groups.sql,
            self.groups.size,
            self.rows,
            self.touched if self.touched < min(self.rows, self.groups.size) else None,
        )

    def _by(self) -> str:
        names = self.groups.names
        return f" by {' and '.join(names)}" if names else ""

    def _sum_part(
        self, at: str, largest: int, span: int, share: float, noise: Noise, *, whole: bool
    ) -> Part:
        """A sum over all cells, of rows that add −largest to largest, within a span around 0."""
        one, both, several = self.rows * largest, self.rows * max(span, 1), self.groups.size > 1
        if noise is Noise.GAUSSIAN:
            length = round_up(Fraction(one))
            if self.replaces:
                apart = _root(2 * one * one) if several else 0.0
                length = max(apart, round_up(Fraction(both)))
            return Part(at, Gaussian(sigma=_up(length / share)), length)
        far = round_up(Fraction((2 * one if several else both) if self.replaces else one))
        kind = DiscreteLaplace if whole else Laplace
        return Part(at, kind(scale=_up(far / share)), far)

    def _cells(self) -> tuple[tuple[str, ...], ...]:
        return tuple(self.groups.labels())


@dataclass(frozen=True)
class Count(Query):
    """How many rows there are, of each unit at most so many as are declared."""

    kind: ClassVar[str] = "count"
    counted: ClassVar[str] = "rows"

    def parts(self, share: float, noise: Noise, delta: float) -> Parts:
        """One sum of ones."""
        return (self._sum_part(self.name, 1, 1, share, noise, whole=True),)

    def measures(self) -> tuple[Measure, ...]:
        """The number of rows."""
        return (Measure(self.name, self.selection(), Aggregate.ROWS),)

    def estimates(self, parts: Parts, released: Mapping[str, Any]) -> tuple[Estimate, ...]:
        """The noisy numbers, which may be below 0, with intervals that are not."""
        return _around(self._cells(), released[self.name], half_width(parts[0].mechanism))

    def expected_error(self, parts: Parts) -> str:
        """The half width of each interval."""
        return f"at most {half_width(parts[0].mechanism):g} {self.counted} off"

    def describe(self) -> str:
        """Counts of what."""
        return f"counts of {self.counted}{self._by()}"


@dataclass(frozen=True)
class UnitCount(Count):
    """How many units have a row, in each cell."""

    kind: ClassVar[str] = "count_units"
    counted: ClassVar[str] = "units"

    def parts(self, share: float, noise: Noise, delta: float) -> Parts:
        """One vector, of which a unit moves so many entries by 1 each."""
        if noise is Noise.GAUSSIAN:
            length = _root(self.moved)
            return (Part(self.name, Gaussian(sigma=_up(length / share)), length),)
        laplace = DiscreteLaplace(scale=_up(self.moved / share))
        return (Part(self.name, laplace, float(self.moved)),)

    def measures(self) -> tuple[Measure, ...]:
        """The number of units; where all are in one cell nothing of a unit needs a bound."""
        selection = self.selection()
        if self.groups.size == 1:
            selection = replace(selection, rows=None, groups=None)
        return (Measure(self.name, selection, Aggregate.UNITS),)


@dataclass(frozen=True)
class Sum(Query):
    """The sum of a column, or of an expression; rows where it is NULL do not count.

    Attributes:
        of: what is summed.
    """

    kind: ClassVar[str] = "sum"
    of: Expression = field(kw_only=True)

    def parts(self, share: float, noise: Noise, delta: float) -> Parts:
        """One sum, in steps."""
        low, high = self.of.shape.low, self.of.shape.high
        span = max(high, 0) - min(low, 0)
        return (self._sum_part(self.name, max(-low, high, 1), span, share, noise, whole=False),)

    def measures(self) -> tuple[Measure, ...]:
        """The sum of steps."""
        selection = self.selection(f"{self.of.sql} IS NOT NULL")
        return (Measure(self.name, selection, Aggregate.SUM, self.of.sql),)

    def estimates(self, parts: Parts, released: Mapping[str, Any]) -> tuple[Estimate, ...]:
        """The noisy sums in the column's own unit."""
        step, width = float(self.of.shape.step), half_width(parts[0].mechanism)
        steps = np.asarray(released[self.name], dtype=np.float64)
        return _around(self._cells(), steps * step, width * step, least=-math.inf)

    def exact(self, integers: Mapping[str, int]) -> Any:
        """The sum in the column's own unit."""
        return float(integers[self.name] * self.of.shape.step)

    def expected_error(self, parts: Parts) -> str:
        """The half width of each interval."""
        return f"at most {up(half_width(parts[0].mechanism) * float(self.of.shape.step))} off"

    def noise_unit(self, part: Part) -> str:
        """The step of the column, in which its sums are counted."""
        return f"in steps of {float(self.of.shape.step):g}"

    def describe(self) -> str:
        """Sums of what."""
        return f"sums{self._by()}"


@dataclass(frozen=True)
class Mean(Sum):
    """The mean of a column, or of an expression, over rows where it is not NULL.

    It is made of two releases: the sum of distances from the middle of the range, which is the
    least that a row can add at most, and the number of rows.
    """

    kind: ClassVar[str] = "mean"

    @property
    def _middle(self) -> int:
        return (self.of.shape.low + self.of.shape.high) // 2

    @property
    def _labels(self) -> tuple[str, str]:
        return f"{self.name}: sum", f"{self.name}: count"

    def parts(self, share: float, noise: Noise, delta: float) -> Parts:
        """Sum and number, for half of the share each; for normal noise the squares add up."""
        half = share / (math.sqrt(2) if noise is Noise.GAUSSIAN else 2)
        low, high = self.of.shape.low - self._middle, self.of.shape.high - self._middle
        total, count = self._labels
        return (
            self._sum_part(total, max(-low, high, 1), high - low, half, noise, whole=False),
            self._sum_part(count, 1, 1, half, noise, whole=True),
        )

    def measures(self) -> tuple[Measure, ...]:
        """Sum and number of the same rows."""
        selection = self.selection(f"{self.of.sql} IS NOT NULL")
        total, count = self._labels
        return (
            Measure(total, selection, Aggregate.SUM, f"({self.of.sql} - ({self._middle}))"),
            Measure(count, selection, Aggregate.ROWS),
        )

    def estimates(self, parts: Parts, released: Mapping[str, Any]) -> tuple[Estimate, ...]:
        """The quotients within the range, and the means that fit both noises together."""
        shape, middle = self.of.shape, self._middle
        step = float(shape.step)
        ends = float(shape.low - middle), float(shape.high - middle)
        totals, counts = (np.ravel(released[each]).astype(np.float64) for each in self._labels)
        laws = parts[0].mechanism, parts[1].mechanism
        means = np.clip(totals / np.maximum(1.0, counts), *ends)
        lows, highs = ratio_intervals(totals, counts, *laws, ends)
        found = (means, np.minimum(lows, means), np.maximum(highs, means))
        numbers = (((each + middle) * step).tolist() for each in found)
        return tuple(map(Estimate, self._cells(), *numbers))

    def exact(self, integers: Mapping[str, int]) -> Any:
        """The mean; None of no rows."""
        total, count = (integers[each] for each in self._labels)
        return (
            float((Fraction(total, count) + self._middle) * self.of.shape.step) if count else None
        )

    def expected_error(self, parts: Parts) -> str:
        """Of few rows, and of so many that their noise hardly matters, at the ends of the range."""
        over, under = (part.mechanism for part in parts)
        furthest = self.of.shape.high - self._middle
        rows = 10 ** math.ceil(math.log10(20 * max(1.0, half_width(under))))
        off = mean_reach(over, under, float(furthest)) * float(self.of.shape.step) / rows
        few = rows // 10  # of which the noise of their number takes up to a half
        shape = self.of.shape
        width = float((shape.high - shape.low) * shape.step)
        most = min(off * rows / (few - half_width(under)), width)
        more = f"{off:.3g} for {rows}, {off / 2:.3g} for {2 * rows}"
        return f"about {most:.3g} off for {few} rows, {more}"

    def noise_unit(self, part: Part) -> str:
        """The step of the column for the sum; the number of rows has none."""
        return super().noise_unit(part) if part.at == self._labels[0] else ""

    def describe(self) -> str:
        """Means of what."""
        return f"means{self._by()}"


@dataclass(frozen=True)
class Quantiles(Query):
    """Quantiles of a column in each cell, chosen of public candidates by exponential mechanisms.

    Attributes:
        of: whose quantiles.
        at: which ones, in (0, 1), as fractions.
        candidates: in steps, increasing.
    """

    kind: ClassVar[str] = "quantiles"
    of: Expression = field(kw_only=True)
    at: tuple[Fraction, ...] = field(kw_only=True)
    candidates: tuple[int, ...] = field(kw_only=True)

    @property
    def columns(self) -> tuple[str, ...]:
        """Those of the cell, and which quantile it is."""
        return (*self.groups.names, "quantile")

    def _label(self, share: Fraction) -> str:
        return f"{self.name}: {float(share):g}"

    def _move(self, share: Fraction) -> int:
        """By how much a unit moves a utility −|(d − n) #below − n #above| of q = n/d, at most."""
        one = max(share.numerator, share.denominator - share.numerator)
        return self.rows * (share.denominator if self.replaces else one)

    def parts(self, share: float, noise: Noise, delta: float) -> Parts:
        """A choice for each quantile and cell; a unit moves those of its own cells."""
        each = _down(share / (self.moved * len(self.at)))
        return tuple(
            Part(
                self._label(q),
                ExponentialMechanism(epsilon=each, utility_sensitivity=float(self._move(q))),
                1.0,
                self.moved,
                self.groups.size,
            )
            for q in self.at
        )

    def measures(self) -> tuple[Measure, ...]:
        """How many values are at and between the candidates: bin 2j below, 2j + 1 at the j-th."""
        value, places = self.of.sql, self.candidates
        ends = [end for place in places for end in (place, place + 1)]
        selection = self.selection(f"{value} IS NOT NULL")
        bins = 2 * len(places) + 1
        return (Measure(self.name, selection, Aggregate.BINS, number_of(value, ends), bins),)

    def private_value(self, at: str, found: NDArray[Any], part: Part) -> list[NDArray[Any]]:
        """The utilities of all candidates, for each cell."""
        share = next(q for q in self.at if self._label(q) == at)
        n, d = share.numerator, share.denominator
        values = []
        for counts in found:
            ends = np.cumsum(counts)
            below, above = ends[0:-1:2], ends[-1] - ends[1::2]
            lost = np.abs((d - n) * below - n * above)
            values.append(-np.minimum(lost, _LARGEST_FLOAT).astype(np.float64))
        return values

    def estimates(self, parts: Parts, released: Mapping[str, Any]) -> tuple[Estimate, ...]:
        """The chosen candidates."""
        found = []
        for q, part in zip(self.at, parts, strict=True):
            note = f"{_behind(self._rows_off(q, part))}, {CONFIDENCE:.0%}; {_NO_INTERVAL}"
            places = np.ravel(released[part.at]).tolist()
            for cell, chosen in zip(self._cells(), places, strict=True):
                value = self.of.shape.of_steps(self.candidates[chosen])
                found.append(Estimate((*cell, f"{float(q):g}"), value, note=note))
        return tuple(found)

    def _rows_off(self, share: Fraction, part: Part) -> float:
        """McSherry and Talwar 2007, Theorem 6, for as many candidates as there are."""
        assert isinstance(part.mechanism, ExponentialMechanism)
        few = math.log(len(self.candidates) / (1 - CONFIDENCE)) * 2 / part.mechanism.epsilon
        return few * part.mechanism.utility_sensitivity / share.denominator

    def expected_error(self, parts: Parts) -> str:
        """How many rows lie between the chosen candidate and the best one, of any quantile."""
        return _behind(max(map(self._rows_off, self.at, parts)))

    def describe(self) -> str:
        """Quantiles of what."""
        return f"quantiles {', '.join(f'{float(q):g}' for q in self.at)}{self._by()}"


@dataclass(frozen=True)
class MostFrequent(Query):
    """Which of the public values of a column most units have, in order; no count is told.

    Attributes:
        values: the groups of the column whose values are ranked; ``other`` is no candidate.
        k: how many are told.
    """

    kind: ClassVar[str] = "top"
    values: Groups = field(kw_only=True)
    k: int = field(kw_only=True)

    @property
    def columns(self) -> tuple[str, ...]:
        """The rank alone."""
        return ("rank",)

    def parts(self, share: float, noise: Noise, delta: float) -> Parts:
        """K choices at once: of each value one unit changes the number by 1 at most."""
        mechanism = TopK(epsilon=_down(share / self.k), utility_sensitivity=1.0, k=self.k)
        return (Part(self.name, mechanism, 1.0),)

    def measures(self) -> tuple[Measure, ...]:
        """How many units have each value; nothing of a unit needs a bound."""
        where = self.selection().where
        selection = Selection(where, self.values.sql, self.values.size)
        return (Measure(self.name, selection, Aggregate.UNITS),)

    def private_value(self, at: str, found: NDArray[Any], part: Part) -> list[NDArray[Any]]:
        """The numbers of units, without *other*."""
        return [np.minimum(found.ravel()[:-1], _LARGEST_FLOAT).astype(np.float64)]

    def estimates(self, parts: Parts, released: Mapping[str, Any]) -> tuple[Estimate, ...]:
        """The values by rank."""
        labels = [each[0] for each in self.values.labels()]
        chosen = np.ravel(released[self.name]).tolist()
        note = f"{self.expected_error(parts)}, {CONFIDENCE:.0%} for all"
        return tuple(
            Estimate((str(rank),), labels[int(place)], note=note)
            for rank, place in enumerate(chosen, start=1)
        )

    def expected_error(self, parts: Parts) -> str:
        """McSherry and Talwar 2007, Theorem 6, for each of the choices."""
        assert isinstance(parts[0].mechanism, TopK)
        each = parts[0].mechanism.epsilon
        units = 2 / each * math.log((self.values.size - 1) * self.k / (1 - CONFIDENCE))
        return f"each at most {math.ceil(units)} units behind the best remaining one"

    def describe(self) -> str:
        """The most frequent values of which column."""
        several = f"{self.k} most frequent values" if self.k > 1 else "most frequent value"
        return f"the {several} of {self.values.names[0]}"


@dataclass(frozen=True)
class UnknownKeys(Query):
    """How many units have each key, of keys that nobody lists; only frequent ones are told.

    Attributes:
        names: of the columns whose values are the keys; rows where one is NULL do not count.
        expressions: the same in SQL.
    """

    kind: ClassVar[str] = "keys"
    names: tuple[str, ...] = field(kw_only=True)
    expressions: tuple[Expression, ...] = field(kw_only=True)

    @property
    def columns(self) -> tuple[str, ...]:
        """Those whose values are the keys."""
        return self.names

    @property
    def _keys_of_one(self) -> int:
        return self.rows if self.groups_per_unit is None else self.groups_per_unit

    def parts(self, share: float, noise: Noise, delta: float) -> Parts:
        """One stable histogram."""
        if not delta > 0:
            raise InputError(
                f"query {self.name!r} has keys that nobody lists, which needs a δ; state one in "
                "the claim, such as delta = 1e-6."
            )
        moved = self._keys_of_one * (2 if self.replaces else 1)
        made = StableHistogram.calibrated(epsilon=share, delta=delta, key_sensitivity=moved)
        scale = _up(made.scale)
        if scale > made.scale:
            made = StableHistogram.calibrated(
                epsilon=_down(moved / scale), delta=delta, key_sensitivity=moved
            )
        return (Part(self.name, made, 1.0),)

    def measures(self) -> tuple[Measure, ...]:
        """How many units have each key, of a unit so many keys."""
        shown = [day_sql(e) if e.kind is Kind.DATE else e.sql for e in self.expressions]
        listed = ", ".join(f"CAST({each} AS VARCHAR)" for each in shown)
        present = " AND ".join(f"{each.sql} IS NOT NULL" for each in self.expressions)
        chosen = replace(
            self.selection(present),
            cell=f"[{listed}]",
            cells=0,
            rows=None,
            groups=self._keys_of_one,
        )
        return (Measure(self.name, chosen, Aggregate.KEYS),)

    def estimates(self, parts: Parts, released: Mapping[str, Any]) -> tuple[Estimate, ...]:
        """The keys whose noisy count is told, with intervals that hold for each key beforehand."""
        keys, counts = released[self.name]
        width = half_width(DiscreteLaplace(scale=_histogram(parts).scale))
        return tuple(
            Estimate(key, int(count), max(1.0, count - width), count + width)
            for key, count in zip(keys, np.ravel(counts).tolist(), strict=True)
            if count
        )

    def expected_error(self, parts: Parts) -> str:
        """The half width, and the least noisy count that is told."""
        mechanism = _histogram(parts)
        width = half_width(DiscreteLaplace(scale=mechanism.scale))
        return f"at most {width:g} units off; noisy counts below {mechanism.threshold:g} are hidden"

    def describe(self) -> str:
        """Frequent keys of which columns."""
        return f"frequent values of {' and '.join(self.names)}"


def _histogram(parts: Parts) -> StableHistogram:
    mechanism = parts[0].mechanism
    assert isinstance(mechanism, StableHistogram)
    return mechanism


def _around(
    cells: tuple[tuple[str, ...], ...], released: Any, width: float, least: float = 0.0
) -> tuple[Estimate, ...]:
    """Noisy numbers with intervals of one width."""
    return tuple(
        Estimate(cell, value, max(least, value - width), max(least, value + width))
        for cell, value in zip(cells, np.ravel(released).tolist(), strict=True)
    )


def _behind(rows: float) -> str:
    return f"in rank at most {math.ceil(rows)} rows further off than the best candidate"


def _root(square: int) -> float:
    """Its root, rounded up."""
    return round_up(Fraction(math.isqrt(square << 128) + 1, 1 << 64))


def _up(value: float) -> float:
    """Six digits, rounded up: what a person reads is what is used."""
    return float(up(value).replace("∞", "inf"))


def _down(value: float) -> float:
    return float(down(value))
