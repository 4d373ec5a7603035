"""Functions of the author on each unit: what a request asks, and what becomes of their answers."""

from __future__ import annotations

import hmac
import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.base.validate import shown
from dpaudit.sealed.encoders import MOST_COLUMNS, Whole
from dpaudit.sealed.messages import field as message_field
from dpaudit.sealed.messages import require_readable
from dpaudit.sealed.rows import Rows, Vectors
from dpaudit.sealed.store import ALL_ROWS, Store
from dpaudit.sealed.workers import Call, Functions, Job
from dpaudit.tables.schema import LARGEST

_TRIED = 8
"""Made-up units on which a function is tried."""


@dataclass(frozen=True, eq=False)
class UnitValues:
    """A function of the records of one unit, and the values that it may have.

    Attributes:
        call: the function, with public parameters.
        state: name of the state that a unit keeps; empty where it keeps none.
        shape: of a value; () for a number.
        step: of which all values are multiples.
        ends: smallest and largest whole number of each entry, shape (entries, 2).
        default: whole numbers of a unit whose function fails.
    """

    call: Call
    state: str
    shape: tuple[int, ...]
    step: Fraction
    ends: NDArray[Any]
    default: Whole

    @classmethod
    def read(cls, request: Mapping[str, Any]) -> UnitValues:
        """What a request asks.

        Raises:
            InputError: naming the first field that is wrong.
        """
        file, name = _function(request.get("function"))
        shape = _shape(request.get("shape"))
        entries = math.prod(shape)
        step = Fraction(str(validate.positive(step=request.get("step"))))
        if max(step.numerator, step.denominator) > LARGEST:
            raise InputError(f"step is {shown(request['step'])}; it must be from 1e-15 to 1e15.")
        low, high = (_entries(request, end, shape) for end in ("low", "high"))
        ends = np.array(
            [
                [math.ceil(Fraction(str(least)) / step), math.floor(Fraction(str(most)) / step)]
                for least, most in zip(low.tolist(), high.tolist(), strict=True)
            ],
            dtype=object,
        ).reshape(entries, 2)
        if any(least > most for least, most in ends.tolist()):
            raise InputError("low is above high, or no step lies between them; widen the range.")
        if max(map(abs, ends.ravel().tolist())) > LARGEST:
            raise InputError("low and high are more than 2^53 steps from 0; take a larger step.")
        state = request.get("state")
        if not isinstance(state, str) or len(state) > 100:
            raise InputError(f"state is {shown(state)}; it must be a name, or empty.")
        parameters = message_field(request, "parameters", dict)
        for each in parameters.values():
            require_readable(each)
        call = Call(file, name, parameters, entries, bool(state))
        made = cls(call, state, shape, step, ends, np.zeros(entries, dtype=np.int64))
        default = made._whole(_entries(request, "default", shape))
        return cls(call, state, shape, step, ends, default)

    def described(self, rows: Rows, table: str) -> Vectors:
        """The values of the units of some rows, as a table of that name keeps them.

        Raises:
            InputError: if a state would keep which units of a sample were drawn, or the rows are
                none of the table.
        """
        if rows.made:
            raise InputError(
                "rows belong to numbers that a function returned; call a function on rows of the "
                "table."
            )
        if rows.sample is not None and self.state:
            raise InputError(
                "rows are a sample, and a state would reveal who was drawn; call the function on "
                "all rows, and then draw a sample of its numbers."
            )
        of = Rows(f"SELECT * FROM {table}", {}, 1, rows.part, rows.sample, made=True)
        ends = np.stack([np.minimum(self.ends[:, 0], 0), np.maximum(self.ends[:, 1], 0)], axis=1)
        parts = tuple(f"x{n}" for n in range(self.call.entries))
        return Vectors(of, parts, not self.shape, self.step, ends)

    def defaults(self, rows: Rows, store: Store) -> tuple[list[int], Whole]:
        """The codes of the units of rows, and for each the value of a function that fails."""
        codes = [code for code, _ in store.records(rows)]
        return codes, np.tile(self.default, (len(codes), 1))

    def job(self, records: Mapping[str, Any], unit: str, key: bytes, state: str) -> Job:
        """What one worker is given: all of it follows from its unit."""
        seed = hmac.digest(key, unit.encode(), "sha256").hex()
        return Job(records, seed, state)

    def of(self, said: Mapping[str, Any]) -> tuple[Whole, str]:
        """The value that was said as whole numbers within the range, and what is wrong with it.

        A value that is none, of another shape or not finite is the default.
        """
        if "value" not in said:
            why = said.get("failed")
            return self.default, why if isinstance(why, str) else "it used up its time or memory"
        try:
            value = np.array(said["value"], dtype=np.float64)
        except (TypeError, ValueError, OverflowError, RecursionError):
            return self.default, "it returned neither a number nor an array of numbers"
        if value.shape != self.shape:
            return self.default, f"it returned an array of shape {value.shape}"
        if not np.isfinite(value).all():
            return self.default, "it returned a number that is not finite"
        if self.state and not isinstance(said.get("state"), str):
            return self.default, "it returned no state"
        return self._whole(value.ravel()), ""

    def _whole(self, value: NDArray[np.float64]) -> Whole:
        with np.errstate(over="ignore"):  # what is too large is the end of the range
            steps = np.rint(value * float(self.step.denominator) / float(self.step.numerator))
        low, high = self.ends.astype(np.float64).T
        return np.asarray(np.clip(steps, low, high), dtype=np.int64)


def _function(named: object) -> list[str]:
    """File and name of a function.

    Raises:
        InputError: if it is a lambda, a method, or a function within another.
    """
    file, name = named if isinstance(named, list) and len(named) == 2 else ("", named)
    if isinstance(file, str) and file and isinstance(name, str) and name.isidentifier():
        return [file, name]
    raise InputError(
        f"function is {shown(name)}; it must be one that is defined by def at the top of a file of "
        "the code."
    )


def _shape(shape: object) -> tuple[int, ...]:
    if not isinstance(shape, list) or len(shape) > 1:
        raise InputError(f"shape is {shown(shape)}; it must be [] for a number, or [entries].")
    if shape:
        validate.integer_at_least(1, shape=shape[0])
        if shape[0] > MOST_COLUMNS:
            raise InputError(
                f"shape is {shown(shape)}; at most {MOST_COLUMNS} entries are allowed."
            )
    return tuple(shape)


def _entries(request: Mapping[str, Any], name: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """A number, or one for each entry, as an array of all entries."""
    given = request.get(name)
    listed = given if isinstance(given, list) else [given] * math.prod(shape)
    if len(listed) != math.prod(shape):
        raise InputError(f"{name} does not have the shape of the value, {list(shape)}.")
    return np.array([validate.finite(**{name: each}) for each in listed], dtype=np.float64)


class UnitFunctions:
    """The author's functions in one run: what runs them, what they may be, and states of units.

    Args:
        functions: runs them.
        declared: files and names of those that the subject declares.
        secret: of this run; what a unit draws follows from it, the call and the unit's name.
        say: shows a sentence to whoever runs this.
    """

    def __init__(
        self,
        functions: Functions,
        declared: Collection[tuple[str, str]],
        secret: bytes,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._functions = functions
        self._declared = frozenset(declared)
        self._secret = secret
        self._say = say
        self._calls = 0
        self._tried: set[tuple[Any, ...]] = set()
        self._states: dict[str, dict[int, str]] = {}
        self._names: list[str] = []
        self.failures: Counter[str] = Counter()

    def read(self, request: Mapping[str, Any]) -> UnitValues:
        """What a request asks.

        Raises:
            InputError: if it is wrong, or the subject does not declare the function.
        """
        found = UnitValues.read(request)
        self._calls += 1  # by requests, as whether there are units follows from the data
        if (found.call.file, found.call.name) not in self._declared:
            raise InputError(
                f"{shown(found.call.name)} is not a function that the subject declares; list it in "
                "functions."
            )
        return found

    def require_answers(self, wanted: UnitValues, rows: Rows, made_up: Store) -> None:
        """Try a function on made-up rows, once for each way to call it; that tells no secret.

        Raises:
            InputError: if it fails on all of them, or the parameters cannot be read.
        """
        self.failures[wanted.call.name] += 0  # said of every function, whatever the data
        call = wanted.call
        key = call.file, call.name, wanted.shape, call.keeps_state, *sorted(call.parameters)
        if key in self._tried:
            self._functions.run(call, [])  # of which the parameters are read
            return
        self._tried.add(key)
        every = Rows(ALL_ROWS, rows.known)
        records = [record for _, record in made_up.records(every)][:_TRIED]
        jobs = [wanted.job(record, str(n), b"made up", "") for n, record in enumerate(records)]
        reasons = [wanted.of(said)[1] for said in self._functions.run(call, jobs)]
        wrong = [why for why in reasons if why]
        if not wrong:
            return
        which = f"function {call.name} fails on {len(wrong)} of {len(jobs)} made-up units"
        if len(wrong) == len(jobs):
            raise InputError(f"{which}: {wrong[0]}.")
        self._say(f"{which}, which count as its default: {wrong[0]}.\n")

    def values(self, wanted: UnitValues, rows: Rows, store: Store) -> tuple[list[int], Whole]:
        """The codes of the units of rows, and their values, shape (n, entries)."""
        units = store.records(rows)
        self._names = self._names or store.units()
        key = hmac.digest(self._secret, str(self._calls).encode(), "sha256")
        states = self._states.setdefault(wanted.state, {})
        codes = [code for code, _ in units]
        jobs = [
            wanted.job(records, self._names[code], key, states.get(code, ""))
            for code, records in units
        ]
        values: list[Whole] = []
        for code, said in zip(codes, self._functions.run(wanted.call, jobs), strict=True):
            value, wrong = wanted.of(said)
            values.append(value)
            self.failures[wanted.call.name] += bool(wrong)
            if wanted.state and not wrong:
                state = said.get("state")
                states[code] = state if isinstance(state, str) else ""
        whole = np.array(values, dtype=np.int64)
        return codes, whole.reshape(len(codes), wanted.call.entries)
