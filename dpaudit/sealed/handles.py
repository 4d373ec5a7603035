"""What the author's code holds of the data: handles, which can be asked about and not read.

A handle has a number and a line to the custodian, and nothing else. It has no length, no order and
no content, and is not written or copied. Results leave through the ledger alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.base.errors import DpAuditError, InputError
from dpaudit.plan import Plan
from dpaudit.sealed.messages import error_of, read, written

Ask = Callable[[Mapping[str, Any]], dict[str, Any]]
"""Sends a request and returns what is said to it."""


def _asked(ask: Ask, op: str, **request: Any) -> Any:
    """The answer to a request.

    Raises:
        DpAuditError: of the kind that the custodian says.
        InputError: if the request is none that can be sent.
    """
    try:
        said = ask({"op": op} | request)
    except DpAuditError:
        raise
    except (TypeError, ValueError, RecursionError):
        raise InputError(f"{op} takes only finite numbers, texts and lists of these.") from None
    if "error" in said:
        raise error_of(said)
    return said["value"]


def code_of(function: Any) -> tuple[str, str]:
    """File and name of a function, by which a request names it."""
    code = getattr(function, "__code__", None)
    return getattr(code, "co_filename", ""), getattr(function, "__qualname__", "")


class Handle:
    """Private data that code can ask about and not read."""

    __slots__ = ("_ask", "_number")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, ask: Ask, number: int) -> None:
        self._ask = ask
        self._number = number

    @property
    def number(self) -> int:
        """By which requests name it."""
        return self._number

    def __repr__(self) -> str:
        return f"<{type(self).__name__.lower()} {self._number} of private data>"

    def _refuse(self, *_: Any) -> NoReturn:
        raise InputError(
            f"{type(self).__name__.lower()} of private data have no length, order or content; "
            "release what you need through the ledger."
        )

    __len__ = __iter__ = __bool__ = __getitem__ = __contains__ = __reduce_ex__ = _refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __int__ = __float__ = __index__ = __array__ = __copy__ = __deepcopy__ = _refuse


Handled = TypeVar("Handled", "Rows", "Vectors")


class Rows(Handle):
    """Rows of the table, each of one unit."""

    __slots__ = ()

    def filter(self, condition: str) -> Rows:
        """The rows of which a condition is true.

        Args:
            condition: SQL that sees one row, such as ``"age >= 18"``.

        Raises:
            InputError: if it is no such condition.
        """
        return self._made("filter", condition=condition)

    def with_columns(self, **columns: str) -> Rows:
        """The same rows with further columns, each an expression over one row.

        Raises:
            InputError: if a name is taken, or an expression is wrong.
        """
        return self._made("with_columns", columns=columns)

    def group_rows(self, most: int) -> Rows:
        """At most so many rows of each unit, chosen by a keyed hash."""
        return self._made("group_rows", most=most)

    def of_units(self, names: Sequence[str]) -> Rows:
        """The rows of some units, by their names on the public roster.

        Raises:
            InputError: if one is not on it, or twice.
        """
        return self._made("of_units", units=list(names))

    def partition(
        self, column: str, keys: Sequence[str] | Sequence[int] | None = None
    ) -> dict[Any, Rows]:
        """The units divided by a column of their first row, for releases of disjoint groups.

        There is one partition in a run; draw samples, and take rows away, from what it gives.

        Args:
            column: of texts or integers.
            keys: public ones; those that the schema lists where not given.

        Returns:
            The rows of each key. Units with another value are in none of them.

        Raises:
            InputError: if the column has no such keys.
        """
        listed = None if keys is None else list(keys)
        found = _asked(self._ask, "partition", of=self._number, column=column, keys=listed)
        return {key: Rows(self._ask, number) for key, number in found}

    def vector(self, columns: str | Sequence[str]) -> Vectors:
        """A number for each row, or an array of numbers.

        Args:
            columns: an expression, or a list of them.

        Raises:
            InputError: if one of them is no number.
        """
        listed = columns if isinstance(columns, str) else list(columns)
        return Vectors.of(self._ask, _asked(self._ask, "vector", of=self._number, columns=listed))

    def per_unit(
        self,
        function: Callable[..., Any],
        *,
        low: ArrayLike,
        high: ArrayLike,
        shape: Sequence[int] = (),
        step: float = 1e-6,
        default: ArrayLike | None = None,
        parameters: Mapping[str, Any] | None = None,
        state: str = "",
    ) -> Vectors:
        """A number or an array of each unit, as a function makes it of the unit's rows alone.

        The function runs in a process of its own for each unit, as ``function(records, rng,
        **parameters)``: ``records`` has a list of values for each column, and ``rng`` follows from
        a secret and the unit. Where it fails, returns another shape or uses up its time or memory,
        the value is the default.

        Args:
            function: at the top of a file of the code; the subject lists it in ``functions``.
            low: smallest value, a number or one for each entry; what is below is moved there.
            high: largest value.
            shape: () for a number, or (entries,).
            step: of which values are multiples, the nearest one.
            default: ``low`` if not given.
            parameters: public facts and what was released: numbers, texts, lists, arrays.
            state: name of a state of each unit, if the function keeps one. It is called as
                ``function(records, rng, state, **parameters)`` then, with None at first, and
                returns its value and the state that its unit's next call with this name gets.

        Raises:
            InputError: if an argument is wrong, or the function fails on all of some made-up units.
        """
        ends = {"low": low, "high": high, "default": low if default is None else default}
        asked = _asked(
            self._ask,
            "per_unit",
            of=self._number,
            function=list(code_of(function)),
            shape=list(shape),
            step=step,
            parameters={name: written(value) for name, value in (parameters or {}).items()},
            state=state,
            **{name: np.asarray(end).tolist() for name, end in ends.items()},
        )
        return Vectors.of(self._ask, asked)

    def tell_owner(self, name: str) -> None:
        """Tell the owner of the data, and nobody else, how many rows these are."""
        _asked(self._ask, "tell_owner", of=self._number, name=name)

    def _like(self, asked: Any) -> Rows:
        return Rows(self._ask, asked)

    def _made(self, op: str, **request: Any) -> Rows:
        return Rows(self._ask, _asked(self._ask, op, of=self._number, **request))


class Vectors(Handle):
    """An array of numbers for each row, all of the same public shape and ranges.

    Attributes:
        shape: of the array of a row; () for numbers.
        step: of which all numbers are multiples.
        ranges: smallest and largest number of each entry.
    """

    __slots__ = ("ranges", "shape", "step")
    shape: tuple[int, ...]
    step: float
    ranges: tuple[tuple[float, float], ...]

    @classmethod
    def of(cls, ask: Ask, facts: Mapping[str, Any]) -> Vectors:
        """The handle that the custodian describes."""
        made = cls(ask, facts["handle"])
        made.shape, made.step = tuple(facts["shape"]), facts["step"]
        made.ranges = tuple(map(tuple, facts["ranges"]))
        return made

    def rows(self) -> Rows:
        """A row for each number, with the column ``value``; of arrays ``value_1``, ``value_2``, ….

        So expressions may be taken of what a function made: ``made.rows().filter("value > 3")``.

        Raises:
            InputError: if they are encoded.
        """
        return Rows(self._ask, _asked(self._ask, "rows", of=self._number))

    def linear(self, matrix: ArrayLike) -> Vectors:
        """Each array multiplied by a public matrix of integers, shape (entries, d)."""
        rows = np.asarray(matrix).tolist()
        return Vectors.of(self._ask, _asked(self._ask, "linear", of=self._number, matrix=rows))

    def encode(self, by: str, **options: Any) -> Vectors:
        """Each array as a trusted encoder makes it, by exact integer arithmetic.

        Args:
            by: ``"clip"``: scaled to a public ``bound`` of its ``norm``, "l2" or "l1", where it is
                longer; ``"outer"``: the products of all pairs of entries, d² of them, row after
                row, of which the norm is that of the array, squared; ``"regression"``: of features
                φ, scaled to norm 1, and a value v, ``weight`` times φφᵀ beside v φ.
            options: of the encoder.

        Raises:
            InputError: if it takes others, or its results may have more than 2^53 steps.
        """
        asked = _asked(self._ask, "encode", of=self._number, by=by, options=options)
        return Vectors.of(self._ask, asked)

    def tell_owner(self, name: str) -> None:
        """Tell the owner of the data, and nobody else, the mean of these."""
        _asked(self._ask, "tell_owner", of=self._number, name=name)

    def _like(self, asked: Any) -> Vectors:
        return Vectors.of(self._ask, asked)


class SealedStream:
    """A running release of sums: each step adds the rows of units that may take part then."""

    def __init__(self, ask: Ask, number: int) -> None:
        self._ask = ask
        self._number = number

    def add(self, vectors: Vectors, *, units: Sequence[str] | None = None) -> Any:
        """Add the bounded parts of these rows' units, and receive the noisy sum so far.

        A unit that took part as often as is declared, or too soon before, adds nothing.

        Args:
            vectors: numbers or arrays of rows, of as many entries as the stream has.
            units: names of the roster whose rows are added, and no others: who takes part at which
                step is then public, as ``fixed_steps`` of a plan says.

        Raises:
            PlanMismatchError: if one is named for more steps than are declared.
        """
        named = None if units is None else list(units)
        added = _asked(self._ask, "add", of=_number(vectors), stream=self._number, units=named)
        return read(added)


class SealedLedger:
    """The door of a sealed run: what is released of handles, by the labels of the plan.

    Attributes:
        plan: what is declared.
    """

    def __init__(self, plan: Plan, ask: Ask) -> None:
        self.plan = plan
        self._ask = ask

    def __len__(self) -> int:
        """How many releases were made."""
        return int(_asked(self._ask, "left"))

    def sum(self, vectors: Vectors, *, units: Sequence[str] | None = None, at: str = "") -> Any:
        """Release the sum, each unit's part bounded as its invocation declares.

        Args:
            vectors: numbers or arrays of rows.
            units: names of the roster whose rows are added, and no others; those of a group by
                position are named.
            at: label of an invocation that adds noise to a sum.

        Raises:
            PlanMismatchError: if the plan does not declare it, or not so often.
            InputError: if the request is wrong. Nothing is charged then.
        """
        named = None if units is None else list(units)
        return self._released("sum", vectors, units=named, at=at)

    def mean(self, vectors: Vectors, *, total: str = "sum", count: str = "count") -> Any:
        """Release sum and number of rows, and divide them; less than one row counts as one."""
        return self._released("mean", vectors, total=total, count=count)

    def count(self, rows: Rows, *, at: str = "") -> Any:
        """Release the number of rows, those of a unit counting up to the declared bound."""
        return self._released("count", rows, at=at)

    def histogram(self, rows: Rows, by: Any, *, at: str = "") -> Any:
        """Release how many rows each public group has; rows of other values are left out.

        Args:
            rows: what is counted.
            by: a column whose values the schema lists, ``{"column": …, "edges": […]}``, or a list.
            at: label of an invocation with a contribution.

        Returns:
            Counts, shape (groups of the first column, of the second, …).
        """
        return self._released("histogram", rows, by=by, at=at)

    def quantile(
        self, vectors: Vectors, share: float, candidates: Sequence[float], *, at: str = ""
    ) -> float:
        """Choose, of public candidates, one with about that share of the values below it."""
        listed = [float(each) for each in candidates]
        return float(self._released("quantile", vectors, share=share, candidates=listed, at=at))

    def stable_histogram(self, rows: Rows, column: str, *, at: str = "") -> dict[Any, int]:
        """Release how many units have each key, of keys that nobody knows beforehand."""
        found: dict[Any, int] = self._released("stable_histogram", rows, column=column, at=at)
        return found

    def choose(self, rows: Rows, by: Any, *, at: str = "") -> Any:
        """Choose a public group with many rows, by the declared mechanism.

        Args:
            rows: bounded by :meth:`Rows.group_rows`.
            by: as for :meth:`histogram`.
            at: label of an invocation of a choice without a contribution.

        Returns:
            Its number; those of several where the mechanism chooses several.
        """
        return self._released("choose", rows, by=by, at=at)

    def answers(
        self,
        vectors: Vectors,
        *,
        units: Sequence[str] | None = None,
        default: ArrayLike = 0,
        at: str = "",
    ) -> list[Any]:
        """Release the noisy answer of each unit of the roster, under local trust.

        Args:
            vectors: answers; of a unit with several rows the first counts, by a keyed hash.
            units: names of those that are asked; the whole roster if not given.
            default: answer of a unit without a row that the mechanism takes.
            at: label of an invocation under local trust.

        Returns:
            One for each unit that is asked, in the order of ``units`` or of the roster.
        """
        given = np.asarray(default).tolist()
        asked = None if units is None else list(units)
        found: list[Any] = self._released("answers", vectors, default=given, units=asked, at=at)
        return found

    def sample(self, rows: Handled, *, at: str) -> Handled:
        """The rows, or numbers, of units that are drawn, secretly, for the next release there."""
        asked = _asked(self._ask, "sample", of=_number(rows), at=at)
        return rows._like(asked)

    def stream(self, shape: Sequence[int] = (), *, at: str) -> SealedStream:
        """Open a continual release, which is one invocation whatever the number of its steps.

        Args:
            shape: of a step: () for a number, (entries,), or (m, m) for symmetric noise, to which
                arrays of m² entries are added, row after row, each matrix X as (X + Xᵀ)/2.
            at: label of a continual invocation.
        """
        opened = _asked(self._ask, "stream", shape=list(shape), at=at)
        return SealedStream(self._ask, opened)

    def asked(self, op: str, **request: Any) -> Any:
        """What is said to a request that an application has an operation for."""
        return read(_asked(self._ask, op, **request))

    def _released(self, op: str, handle: Handle, **request: Any) -> Any:
        return read(_asked(self._ask, op, of=_number(handle), **request))


def _number(handle: object) -> int:
    if not isinstance(handle, Handle):
        raise InputError(
            f"a sealed ledger releases handles of private data; this is a "
            f"{type(handle).__name__:.60}."
        )
    return handle._number
