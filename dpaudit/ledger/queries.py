"""What people release most, with a sensitivity that holds whatever the data are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.ledger.bounding import (
    Parts,
    bounded_counts,
    bounded_total,
    cells_of,
    key_counts,
    numbers_of,
    quantile_utilities,
    repeated,
)
from dpaudit.ledger.checks import shape_of, unshown
from dpaudit.ledger.entry import Key
from dpaudit.ledger.individual import IndividualSums
from dpaudit.ledger.units import Units
from dpaudit.mechanisms.additive import IntegerNoise
from dpaudit.mechanisms.base import Norm, Released
from dpaudit.plan import Invocation


class BoundedQueries(ABC):
    """Sums, counts, means, histograms and quantiles of rows, each unit's part bounded at the door.

    An invocation that declares a :class:`~dpaudit.plan.Contribution` is released by these alone.
    """

    def sum(self, rows: ArrayLike, *, units: ArrayLike | None = None, at: str = "") -> Released:
        """Release the sum of all rows, every unit's part bounded as its invocation declares.

        Rows of one unit are added up first, of at most as many as are declared; what is longer than
        the bound is scaled down to it; NaN counts as 0. So the declared sensitivity holds whatever
        the data are.

        Args:
            rows: private values, shape (n,) for numbers or (n, …) for arrays.
            units: to whom each row belongs, n texts or n whole numbers, in a list or an array;
                without it every row is a unit of its own.
            at: label of an invocation with a contribution.

        Raises:
            InputError: if the rows are no numbers, ``units`` has another length, or the mechanism
                is none of L1 or L2 norm.
            PlanMismatchError: if the invocation declares no contribution; else as :meth:`release`.
        """
        self._bounded(at)
        values = numbers_of(rows)
        return self._sum(values, Units.of(units, len(values)), at)

    def _sum(
        self, rows: NDArray[Any], members: Units, at: str, times: int | None = None
    ) -> Released:
        invocation = self._summing(at)
        total, parts = bounded_total(rows, members, **_how(invocation))
        if times is not None:
            return self._release_bounded(invocation, repeated(total, times))
        return self._release_bounded(invocation, total, lambda: parts)

    def _summing(self, at: str) -> Invocation:
        invocation = self._bounded(at)
        if invocation.mechanism.norm is Norm.CHANGE:
            raise InputError(
                f"{invocation.describe()} states by itself how far a unit may move its value, "
                "and a bounded sum cannot enforce that; declare it without a contribution, "
                "and use release."
            )
        return invocation

    def count(
        self, n: int | None = None, *, units: ArrayLike | None = None, at: str = ""
    ) -> Released:
        """Release the number of rows, those of one unit counting up to the declared bound.

        Args:
            n: how many rows there are; may be left out where ``units`` is given.
            units: as for :meth:`sum`.
            at: as for :meth:`sum`.
        """
        if n is None and units is None:
            raise InputError("n and units are missing; give the number of rows, or their units.")
        if n is not None:
            n = unshown(partial(validate.integer_at_least, 0), n=n)
        if units is None:
            return self._sum(np.ones(1, dtype=np.int64), Units(None, 1), at, times=n)
        members = Units.alone(units) if n is None else Units.of(units, n)
        assert members.codes is not None
        return self._sum(np.ones(members.codes.size, dtype=np.int64), members, at)

    def mean(
        self,
        rows: ArrayLike,
        *,
        units: ArrayLike | None = None,
        total: str = "sum",
        count: str = "count",
    ) -> Released:
        """Release the sum and the number of rows, and divide them; less than one row counts as one.

        Args:
            rows: as for :meth:`sum`.
            units: as for :meth:`sum`.
            total: label of the invocation of the sum.
            count: label of that of the number.
        """
        values = numbers_of(rows)
        added = self.sum(values, units=units, at=total)
        return added / max(1.0, float(self.count(len(values), units=units, at=count)))

    def histogram(
        self,
        keys: Sequence[Any] | NDArray[Any],
        public: Sequence[Any],
        *,
        units: ArrayLike | None = None,
        at: str = "",
    ) -> Released:
        """Release how many rows have each of some public keys; other keys are left out.

        Args:
            keys: of the rows, n texts, numbers or tuples of these, in a list or an array.
            public: the keys that are counted, known without the data.
            units: as for :meth:`sum`.
            at: as for :meth:`sum`.

        Returns:
            Shape (number of public keys,).
        """
        invocation = self._summing(at)
        cells = cells_of(keys, public)
        members = Units.of(units, cells.size)
        total, parts = bounded_counts(cells, len(public), members, **_how(invocation))
        return self._release_bounded(invocation, total, parts)

    def stable_histogram(
        self, keys: Sequence[Key] | NDArray[Any], *, units: ArrayLike | None = None, at: str = ""
    ) -> dict[Key, int]:
        """Release how many units have each key, of keys that nobody knows beforehand.

        Of a unit the first distinct keys count, as many as its contribution has rows, each once.
        Noisy counts from the threshold on are told by their keys, in the order of the keys; what is
        not told is in no release, no error and no journal.

        Args:
            keys: of the rows, n texts or n whole numbers, in a list, a tuple or an array; of what
                no file can hold (lone surrogates, more than 256 bits) a part is replaced.
            units: as for :meth:`sum`.
            at: label of an invocation of a stable histogram, whose contribution has rows.

        Raises:
            InputError: if the keys are others, or more of a unit than the mechanism covers.
        """
        invocation = self._bounded(at)
        return self._release_keyed(invocation, key_counts(invocation, keys, units))

    def quantile(
        self,
        values: ArrayLike,
        share: float,
        candidates: Sequence[float],
        *,
        units: ArrayLike | None = None,
        at: str = "",
    ) -> float:
        """Choose, of public candidates, one with about that share of the values below it.

        The exponential mechanism with utility −|(1 − q) #below − q #above|, which one row moves by
        at most max(q, 1 − q), and a row that is replaced by at most 1 (Smith 2011).

        >>> from dpaudit import AddRemove, Contribution, ExponentialMechanism, Invocation
        >>> from dpaudit import Ledger, Plan, PrivacyUnit, TrustModel
        >>> choice = ExponentialMechanism(epsilon=2.0, utility_sensitivity=0.5)
        >>> about = (PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL)
        >>> used = Invocation.bounded(choice, Contribution(1.0, rows=1), *about, at="median")
        >>> with Ledger(Plan.of(used), rng=np.random.default_rng(0)) as ledger:
        ...     ledger.quantile(range(101), 0.5, [0.0, 25.0, 50.0, 75.0], at="median")
        50.0

        Args:
            values: private numbers, shape (n,); NaN counts on neither side.
            share: q, in (0, 1).
            candidates: increasing numbers, known without the data.
            units: as for :meth:`sum`.
            at: label of an invocation of the exponential mechanism with a contribution.

        Raises:
            InputError: if the mechanism's utility sensitivity is below that of the utility.
        """
        q = unshown(validate.open_fraction, share=share)
        invocation = self._bounded(at)
        utilities = quantile_utilities(invocation, values, q, candidates, units)
        return float(candidates[int(self._release_bounded(invocation, utilities))])

    def individual(self, shape: Sequence[int], *, at: str = "") -> IndividualSums:
        """Open a run of noisy sums in which every unit has a budget of its own.

        Args:
            shape: shape of one row of a unit; () for numbers.
            at: label of an invocation of :class:`~dpaudit.mechanisms.IndividualGaussian` with a
                contribution, whose bound is the budget.

        Raises:
            PlanMismatchError: if no such is declared there; else as :meth:`release`.
        """
        return self._open_bounded(self._bounded(at), shape_of(shape))

    @abstractmethod
    def _open_bounded(self, invocation: Invocation, shape: tuple[int, ...]) -> IndividualSums:
        """Open a stream of sums of parts that it bounds."""

    @abstractmethod
    def _bounded(self, at: str) -> Invocation:
        """The declared invocation, if its parts are bounded."""

    @abstractmethod
    def _release_keyed(self, invocation: Invocation, counts: Mapping[Key, int]) -> dict[Key, int]:
        """Release counts of keys that are private."""

    @abstractmethod
    def _release_bounded(
        self, invocation: Invocation, total: NDArray[Any], parts: Parts | None = None
    ) -> Released:
        """Release a sum of parts that were bounded."""


def _how(invocation: Invocation) -> dict[str, Any]:
    """How the parts of a sum are bounded."""
    mechanism = invocation.mechanism
    whole = isinstance(mechanism, IntegerNoise)
    return {"contribution": invocation.contribution, "norm": mechanism.norm, "whole": whole}
