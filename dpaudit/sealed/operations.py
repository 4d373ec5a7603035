"""What the custodian answers: each request, tried on made-up rows before it is run on the data.

A request names an operation and what it is of. Operations on handles make descriptions and read no
row. Releases go through the ledger; each is first made by ledgers of the same plan over a table
without rows and one of made-up rows. What these refuse is refused in words, which follow from plan,
schema and request alone. What fails afterwards, for want of memory or room, ends the run in one
fixed sentence.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.base import validate
from dpaudit.base.applications import offered
from dpaudit.base.errors import BudgetExceededError, DpAuditError, InputError, PlanMismatchError
from dpaudit.base.validate import shown
from dpaudit.certificate.assumptions import clips
from dpaudit.ledger.units import DistinctNames
from dpaudit.mechanisms import Norm
from dpaudit.mechanisms.additive import AdditiveNoise, IntegerNoise
from dpaudit.mechanisms.choice import Choice
from dpaudit.mechanisms.continual.release import Continual
from dpaudit.mechanisms.local_randomizers import Encoding, RandomizedResponse
from dpaudit.plan import (
    AddRemove,
    Invocation,
    Membership,
    Plan,
    TrustModel,
)
from dpaudit.sealed.encoders import MOST_COLUMNS
from dpaudit.sealed.messages import field as message_field
from dpaudit.sealed.messages import read, refusal, written
from dpaudit.sealed.per_unit import UnitFunctions
from dpaudit.sealed.rows import Rows, Sample, Vectors
from dpaudit.sealed.sealable import are_alike
from dpaudit.sealed.store import ReadTable, all_rows
from dpaudit.sealed.sums import (
    Side,
    Steps,
    accepts,
    are_wider,
    total_by_sensitivity,
)

_MOST_HANDLES = 100_000
_MOST_TOLD, _LONGEST_NUMBER = 2**26, 32
"""Characters that the owner is told, each number as long as one can be: how long it is follows from
the rows, and so would whether all of them fit a message."""
OFFERED = "sealed"
"""Where applications offer operations, by their names: functions of these and a request."""
FATAL = (
    "the custodian had to stop: there was too little memory or space, or a fault occurred; "
    "what was released stays charged."
)


class FatalError(Exception):
    """A failure that no request explains; it ends the run."""


def require_additive(invocation: Invocation) -> None:
    """Refuse to add up what a mechanism takes otherwise than as a sum.

    Raises:
        InputError: if it is such a mechanism.
    """
    own = invocation.mechanism
    if not isinstance(own, AdditiveNoise) or own.norm not in (Norm.L1, Norm.L2):
        raise InputError(
            f"{invocation.describe()} adds no noise to a sum; declare gaussian or laplace, or a "
            "contribution."
        )


class Operations:
    """Answers requests about one table.

    Args:
        plan: what may be released.
        table: the declaration.
        trials: tables without rows and with made-up rows, with ledgers that nobody reads.
        real: the rows, with the ledger.
        rows: which of the rows there are; all of them where not given.
        functions: the author's, on the records of one unit, if there are any.

    Attributes:
        trials: what is tried first.
        real: the rows, with the ledger.
        owner: what the owner of the data is told, by name.
    """

    def __init__(
        self,
        plan: Plan,
        table: ReadTable,
        trials: Sequence[Side],
        real: Side,
        rows: Rows | None = None,
        functions: UnitFunctions | None = None,
    ) -> None:
        self._roster = table.roster
        self._declared = {each.at: each for each in plan.invocations}
        self.trials, self.real = trials, real
        self._handles: dict[int, Any] = {0: rows or all_rows(table)}
        self._numbers = itertools.count(1)
        self._partition: str | None = None
        self._sample: dict[str, Sample] = {}
        self._functions = functions
        self._groups: dict[str, str] = {}
        self._streams: dict[int, Steps] = {}
        self._are_alike = are_alike(plan)
        self.owner: dict[str, Any] = {}
        self._told = 0

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """What is said to a request: an answer, or why there is none.

        Raises:
            FatalError: if rows or a machine stop it.
        """
        try:
            name = message_field(request, "op", str)
            operation = _OPERATIONS.get(name) or offered(OFFERED).get(name)
            if operation is None:
                raise InputError(f"there is no operation {shown(request['op'])}.")
            return {"value": operation(self, request)}
        except DpAuditError as error:
            return refusal(error)
        except (
            ArithmeticError,
            AttributeError,
            LookupError,
            RecursionError,
            TypeError,
            ValueError,
        ):
            # of a request that no check foresaw: rows have not been read, or it would be fatal
            return {"error": "the request is malformed.", "kind": "InputError"}

    # -- descriptions ----------------------------------------------------------------------------

    def _keep(self, handle: Any) -> int:
        if len(self._handles) >= _MOST_HANDLES:
            raise InputError(
                f"there are {_MOST_HANDLES} handles, and no more can be made; reuse those that you "
                "have."
            )
        number = next(self._numbers)
        self._handles[number] = handle
        return number

    def _rows(self, request: Mapping[str, Any]) -> Rows:
        found = self._handles.get(message_field(request, "of", int))
        if not isinstance(found, Rows):
            raise InputError("the handle is not one of rows; give a handle of rows.")
        return found

    def _vectors(self, request: Mapping[str, Any]) -> Vectors:
        return self.vectors_of(message_field(request, "of", int))

    def next_number(self) -> int:
        """A number that no handle, stream or training has."""
        return next(self._numbers)

    def vectors_of(self, number: object) -> Vectors:
        """The numbers of a handle; an error where it is of rows, or there is none."""
        found = self._handles.get(number) if type(number) is int else None
        if not isinstance(found, Vectors):
            raise InputError(
                "this operation needs numbers; give a vector made of one column or of several."
            )
        return found

    def filter(self, request: Mapping[str, Any]) -> int:
        """Rows of which a condition is true."""
        return self._keep(self._rows(request).filter(request.get("condition")))

    def with_columns(self, request: Mapping[str, Any]) -> int:
        """Rows with further columns."""
        columns = message_field(request, "columns", dict)
        return self._keep(self._rows(request).with_columns(columns))

    def group_rows(self, request: Mapping[str, Any]) -> int:
        """At most so many rows of each unit."""
        return self._keep(self._rows(request).group_rows(request.get("most")))

    def of_units(self, request: Mapping[str, Any]) -> int:
        """Rows of some units of the roster."""
        return self._keep(self._rows(request).of_units(self._asked_units(request.get("units"))))

    def partition(self, request: Mapping[str, Any]) -> list[list[Any]]:
        """Rows of disjoint groups of units, by their keys."""
        sql, found = self._rows(request).partition(request.get("column"), request.get("keys"))
        if self._partition is None:
            self._require_unchosen()
            self.both(lambda side: side.store.divide(sql))
            self._partition = sql
        if self._partition != sql:
            raise InputError(
                "units are already partitioned in another way; all groups must be by the same "
                "column."
            )
        return [[key, self._keep(rows)] for key, rows in found.items()]

    def vector(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Numbers of rows, with what is public of them."""
        found = self._rows(request).vector(request.get("columns"))
        return {"handle": self._keep(found)} | found.facts

    def rows(self, request: Mapping[str, Any]) -> int:
        """A row for each number, or array."""
        return self._keep(self._vectors(request).as_rows())

    def linear(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Arrays multiplied by a public matrix."""
        found = self._vectors(request).linear(request.get("matrix"))
        return {"handle": self._keep(found)} | found.facts

    def encode(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Arrays as a trusted encoder makes them."""
        options = message_field(request, "options", dict)
        found = self._vectors(request).encode(request.get("by"), options)
        return {"handle": self._keep(found)} | found.facts

    def per_unit(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """A value of each unit, as a function makes it of the unit's records."""
        rows, functions = self._rows(request), self._functions
        if functions is None:
            raise InputError("the subject declares no functions; list them in functions.")
        wanted = functions.read(request)
        table = f"values_{next(self._numbers)}"
        found = wanted.described(rows, table)
        functions.require_answers(wanted, rows, self.trials[-1].store)

        def keep(side: Side) -> None:
            if side is self.real:
                codes, values = functions.values(wanted, rows, side.store)
            else:
                codes, values = wanted.defaults(rows, side.store)
            side.store.keep(table, codes, values)

        self.both(keep)
        for name, number in functions.failures.items():
            self.owner[f"units with the default of {name}"] = number
        return {"handle": self._keep(found)} | found.facts

    # -- releases --------------------------------------------------------------------------------

    def _invocation(
        self, request: Mapping[str, Any], rows: Rows | None, *, named: bool = False
    ) -> Invocation:
        """The declared invocation at a label, of which these rows may be released.

        Args:
            request: has the label.
            rows: of all units, or of a part of them; None of answers.
            named: whether units of the roster are named whose rows alone are released.

        Raises:
            PlanMismatchError: if there is none, or the rows are of another group or sample.
        """
        at = message_field(request, "at", str)
        if not at and len(self._declared) == 1:
            (at,) = self._declared
        found = self._declared.get(at)
        if found is None:
            raise PlanMismatchError(f"the plan declares nothing at {shown(at)}.")
        if (found.trust is TrustModel.LOCAL) is not (rows is None):
            raise PlanMismatchError(
                f"{shown(at)} is declared under {found.trust} trust; use answers under local "
                "trust, and everything else under other trust models."
            )
        if rows is None:
            return found
        by_place = found.group is not None and found.group.membership is not Membership.VALUE
        if by_place and not (named and rows.part is None):
            raise PlanMismatchError(
                f"{shown(at)} is declared for a group by position; release it from all rows, "
                "and name its units."
            )
        if found.group is not None and not by_place and rows.part != found.group.name:
            raise PlanMismatchError(
                f"{shown(at)} is declared for the group {found.group}; release the rows of "
                "that key of a partition."
            )
        if (found.sampling is None) is not (rows.sample is None) or (
            rows.sample is not None and rows.sample is not self._sample.get(at)
        ):
            raise PlanMismatchError(
                f"{shown(at)} must release rows of its own last sample if it declares sampling, "
                "and otherwise rows that were not sampled."
            )
        return found

    def both(self, release: Callable[[Side], Any]) -> Any:
        """The answer of the real side, after those without a real row refused nothing.

        Raises:
            DpAuditError: as the release of one of these does, or if a budget is used up.
            FatalError: if the real one fails.
        """
        for trial in self.trials:
            trial.ledger.stand_as(self.real.ledger)  # what a refusal left there counts no more
            release(trial)
        try:
            return written(release(self.real))
        except BudgetExceededError:
            raise  # follows from what was charged
        except Exception:  # noqa: BLE001  # its words may hold a value
            raise FatalError from None

    def sum(self, request: Mapping[str, Any]) -> Any:
        """A bounded sum."""
        vectors, given = self._vectors(request), request.get("units")
        units = None if given is None else self._asked_units(given)
        at = self._sum_at(request.get("at"), vectors, named=units is not None)
        invocation = self._declared[at]
        if invocation.contribution is None:
            require_additive(invocation)
        if units is not None:
            self._require_group(invocation, units)

        def release(side: Side) -> Any:
            def those(codes: NDArray[np.int64]) -> NDArray[np.bool_]:
                if units is None:
                    return np.ones(len(codes), dtype=np.bool_)
                return np.isin(codes, side.store.codes_of(units))

            if invocation.contribution is not None:
                numbers, codes = side.total(vectors)
                kept = those(codes)
                return side.ledger.sum(numbers[kept], units=codes[kept], at=at)
            total = total_by_sensitivity(side.store, vectors, invocation, those)
            return side.ledger.release(invocation.mechanism, total.reshape(vectors.shape), at=at)

        return self.both(release)

    def _require_unchosen(self) -> None:
        """Refuse to choose groups of unlike costs by what was released of all units.

        Parallel composition charges a unit the worst group. Where two curves cross, whoever knows
        how much an earlier release has lost can choose the one that loses more from there on.

        Raises:
            PlanMismatchError: if such a release was made.
        """
        if not self._are_alike and any(each.invocation.group is None for each in self.real.ledger):
            raise PlanMismatchError(
                "groups with different releases are chosen after a release of all units; "
                "choose them before it, or declare the same for each group."
            )

    def _require_group(self, invocation: Invocation, units: Sequence[str]) -> None:
        """Refuse units that were named for another group.

        Raises:
            PlanMismatchError: if there is one.
        """
        own = str(invocation.group)
        if invocation.group is not None and not {*units} <= self._groups.keys():
            self._require_unchosen()
        for name in units if invocation.group is not None else ():
            if self._groups.setdefault(name, own) != own:
                raise PlanMismatchError(
                    f"{shown(name)} is named for group {own}, but was named for another; "
                    "groups must be disjoint."
                )

    def _sum_at(self, at: object, vectors: Vectors, *, named: bool = False) -> str:
        """The label of a declared sum of such numbers.

        Raises:
            InputError: if its noise is of whole numbers, and these are not.
        """
        invocation = self._invocation({"at": at}, vectors.rows, named=named)
        if isinstance(invocation.mechanism, IntegerNoise) and vectors.step.denominator > 1:
            raise InputError(
                f"{invocation.describe()} adds noise to whole numbers; give a vector of whole "
                "numbers."
            )
        return invocation.at

    def mean(self, request: Mapping[str, Any]) -> Any:
        """A bounded sum and count, divided."""
        vectors = self._vectors(request)
        if vectors.rows.sample is not None:  # nor may one of both be refused after the other
            raise InputError(
                "a mean is two releases, which cannot share a sample; release the sum and the "
                "count by themselves."
            )
        total = self._sum_at(request.get("total"), vectors)
        count = self._invocation({"at": request.get("count")}, vectors.rows).at

        def release(side: Side) -> Any:
            numbers, codes = side.total(vectors)
            return side.ledger.mean(numbers, units=codes, total=total, count=count)

        return self.both(release)

    def count(self, request: Mapping[str, Any]) -> Any:
        """How many rows there are, bounded."""
        rows = self._rows(request)
        at = self._invocation(request, rows).at
        return self.both(lambda side: side.ledger.count(units=side.store.codes(rows), at=at))

    def histogram(self, request: Mapping[str, Any]) -> Any:
        """How many rows each public group has, bounded."""
        cells = self._rows(request).cells(request.get("by"))
        at = self._invocation(request, cells.rows).at

        def release(side: Side) -> Any:
            codes, numbers = side.store.cells(cells)
            found = side.ledger.histogram(numbers, range(cells.size), units=codes, at=at)
            return np.reshape(found, cells.shape)

        return self.both(release)

    def quantile(self, request: Mapping[str, Any]) -> Any:
        """A public candidate near a quantile."""
        vectors = self._vectors(request)
        if not vectors.scalar:
            raise InputError("a quantile needs numbers; give the vector of one column.")
        at = self._invocation(request, vectors.rows).at
        share = validate.open_fraction(share=request.get("share"))
        candidates = message_field(request, "candidates", list)
        for each in candidates:
            validate.finite(candidates=each)

        def release(side: Side) -> Any:
            numbers, codes = side.total(vectors)
            return side.ledger.quantile(numbers, share, candidates, units=codes, at=at)

        return self.both(release)

    def stable_histogram(self, request: Mapping[str, Any]) -> Any:
        """How many units have each key, of keys that nobody lists."""
        rows = self._rows(request)
        column = rows.value(request.get("column"))
        at = self._invocation(request, rows).at

        def release(side: Side) -> Any:
            codes, keys = side.store.keys(rows, column)
            return side.ledger.stable_histogram(keys, units=codes, at=at)

        return self.both(release)

    def choose(self, request: Mapping[str, Any]) -> Any:
        """The number of a cell with many rows; one unit moves each count by its rows."""
        cells = self._rows(request).cells(request.get("by"))
        invocation = self._invocation(request, cells.rows)
        own, at = invocation.mechanism, invocation.at
        if not isinstance(own, Choice):
            raise InputError(f"{invocation.describe()} is not a mechanism of choice; declare one.")
        if invocation.sensitivity < 1:
            raise InputError(
                f"sensitivity is {invocation.sensitivity:g}; a unit's rows can change what is "
                f"chosen by {invocation.describe()}, so declare 1."
            )
        most = cells.rows.most
        if most is None or own.utility_sensitivity < most:
            raise InputError(
                f"utility_sensitivity is {own.utility_sensitivity:g}; it must be at least the rows "
                "of a unit, which group_rows bounds."
            )
        if own.span == 1 and not isinstance(invocation.relation, AddRemove):
            raise InputError("utilities are monotonic only under add-remove; declare span 2.")

        def release(side: Side) -> Any:
            _, numbers = side.store.cells(cells)
            counts = np.bincount(numbers[numbers >= 0], minlength=cells.size)
            return side.ledger.release(own, counts.astype(np.float64), at=at)

        return self.both(release)

    def _asked_units(self, units: object) -> tuple[str, ...]:
        """Those of the roster that are asked; all where none are named.

        Raises:
            InputError: if one is not on it, or twice.
        """
        if units is None:
            return self._roster
        if not isinstance(units, list) or not units or not {*units} <= {*self._roster}:
            raise InputError("units must be a list of names of the roster.")
        if len({*units}) < len(units):
            raise InputError("units has a name twice; name each unit once.")
        return tuple(units)

    def answers(self, request: Mapping[str, Any]) -> Any:
        """Noisy answers of units of the roster; the first row of each counts, or the default."""
        vectors, invocation = self._vectors(request), self._invocation(request, None)
        if vectors.rows.sample is not None:
            raise PlanMismatchError("answers of a sample would show who was drawn; take all rows.")
        own, at = invocation.mechanism, invocation.at
        additive = isinstance(own, AdditiveNoise) and own.norm is not Norm.CHANGE
        if not additive and not isinstance(own, RandomizedResponse | Encoding):
            raise InputError(
                f"{invocation.describe()} states by itself how far a unit may move its answer, and "
                "nothing enforces that; declare laplace, gaussian or randomized-response."
            )
        units = self._asked_units(request.get("units"))
        ends = vectors.corners()
        fitting = np.zeros_like(ends[0]) + np.asarray(request.get("default", 0), dtype=np.float64)
        if fitting.shape != vectors.shape:
            raise InputError(f"default has another shape than the answers, {vectors.shape}.")
        for end in (*ends, fitting):
            own.checked(end)
        if not invocation.relation.replaces and fitting.any() and clips(own):
            raise InputError(
                f"default is not 0; under {invocation.relation} a unit without rows must "
                f"answer 0, by the sensitivity of {invocation.describe()}."
            )
        near = vectors.lie_within(invocation.sensitivity, own.norm) and not fitting.any()
        wide = not near and are_wider(invocation.sensitivity, own.norm, *ends, fitting)
        if wide and not clips(own):
            raise InputError(
                f"answers of {invocation.describe()} may differ by more than its sensitivity; "
                "clip in the mechanism, or declare the range of the column."
            )
        self._require_group(invocation, units)

        def release(side: Side) -> Any:
            codes, numbers = side.store.values(vectors)
            taken = [accepts(own, each) for each in numbers]
            codes, numbers = codes[taken], numbers[taken]
            firsts = dict(zip(codes[::-1].tolist(), numbers[::-1], strict=True))
            mine = [firsts.get(code, fitting) for code in side.store.codes_of(units)]
            return side.ledger.release_each(own, mine, units=units, at=at)

        return self.both(release)

    def names(self, side: Side, invocation: Invocation) -> DistinctNames:
        """Of all units, from which a sample is drawn; in a trial, of as many as are declared."""
        if side is self.real:
            return side.names()
        return side.names(getattr(invocation.sampling, "population", 0))

    def sample(self, request: Mapping[str, Any]) -> Any:
        """The rows, or the numbers, of units that are drawn for one release."""
        of = self._handles.get(message_field(request, "of", int))
        at = message_field(request, "at", str)
        rows = of.rows if isinstance(of, Vectors) else self._rows(request)
        invocation = self._declared.get(at)
        if invocation is None or invocation.sampling is None:
            raise PlanMismatchError(
                f"the plan declares no sampling for {shown(at)}, but the run draws a sample there; "
                "add sampling to that invocation."
            )
        if rows.sample is not None:
            raise InputError("rows are already a sample; draw the sample from all units.")
        drawn = Sample(at, f"sample_{next(self._numbers)}")

        def release(side: Side) -> None:
            places = side.ledger.sample(self.names(side, invocation), at=at)
            side.store.sample(drawn.table, places)

        self.both(release)
        self._sample[at] = drawn
        if isinstance(of, Vectors):
            found = replace(of, rows=rows.of_sample(drawn))
            return {"handle": self._keep(found)} | found.facts
        return self._keep(rows.of_sample(drawn))

    def stream(self, request: Mapping[str, Any]) -> int:
        """The number of a continual release that is opened."""
        invocation = self._declared.get(message_field(request, "at", str))
        if invocation is None or not isinstance(invocation.mechanism, Continual):
            raise PlanMismatchError(f"{shown(request['at'])} is not declared as a stream.")
        own, at = invocation.mechanism, invocation.at
        if invocation.sampling or invocation.group or invocation.trust is TrustModel.LOCAL:
            raise InputError("a sealed stream must be of all units, without sampling or groups.")
        given = message_field(request, "shape", list)
        shape = tuple(validate.integer_at_least(1, shape=each) for each in given)
        if len(shape) > 2 or math.prod(shape) > MOST_COLUMNS:
            raise InputError(f"shape must be that of a vector with at most {MOST_COLUMNS} entries.")
        number = next(self._numbers)

        def release(side: Side) -> None:
            opened = side.ledger.stream(own, shape, at=at)
            if side is self.real:
                self._streams[number] = Steps(opened, invocation, shape)

        self.both(release)
        return number

    def add(self, request: Mapping[str, Any]) -> Any:
        """The next sum of a continual release."""
        vectors, number = self._vectors(request), message_field(request, "stream", int)
        steps = self._streams.get(number)
        if steps is None:
            raise InputError("there is no such stream.")
        if vectors.rows.sample is not None:
            raise PlanMismatchError("a stream cannot add a sample.")
        if math.prod(vectors.shape) != math.prod(steps.shape):
            raise InputError(
                f"the vectors have shape {vectors.shape}; the stream has {steps.shape}."
            )
        given = request.get("units")
        units = None if given is None else self._asked_units(given)
        steps.require_named(units)

        def release(side: Side) -> Any:
            step = steps.add if side is self.real else steps.try_step
            return step(side.store, vectors, units)

        return self.both(release)

    def tell_owner(self, request: Mapping[str, Any]) -> None:
        """A number that the owner of the data alone reads; nothing is answered."""
        name = validate.label(name=validate.text(name=request.get("name")))
        found = self._handles.get(message_field(request, "of", int))
        if not isinstance(found, Rows | Vectors):
            raise InputError(
                "the handle is neither one of rows nor one of numbers; give such a handle."
            )
        numbers = len(found.ends) if isinstance(found, Vectors) else 1
        self._told += numbers * _LONGEST_NUMBER + len(json.dumps(name))
        if self._told > _MOST_TOLD:
            most = _MOST_TOLD // _LONGEST_NUMBER
            raise InputError(f"the owner takes at most {most} numbers; give fewer.")

        def exact(side: Side) -> Any:
            if isinstance(found, Rows):
                return int(side.store.codes(found).size)
            numbers, _ = side.total(found)
            return np.mean(numbers, axis=0).tolist() if len(numbers) else None

        self.owner[name] = read(self.both(exact))

    def left(self, request: Mapping[str, Any]) -> int:
        """How many releases were made."""
        return len(self.real.ledger)


_OPERATIONS: dict[str, Callable[[Operations, Mapping[str, Any]], Any]] = {
    each.__name__: each
    for each in (
        Operations.filter,
        Operations.with_columns,
        Operations.group_rows,
        Operations.of_units,
        Operations.partition,
        Operations.vector,
        Operations.rows,
        Operations.linear,
        Operations.encode,
        Operations.per_unit,
        Operations.sum,
        Operations.mean,
        Operations.count,
        Operations.histogram,
        Operations.quantile,
        Operations.stable_histogram,
        Operations.choose,
        Operations.answers,
        Operations.sample,
        Operations.stream,
        Operations.add,
        Operations.tell_owner,
        Operations.left,
    )
}
