"""What a table adds to a ledger: sums of parts that are bounded, and running sums of them.

One side of a run is the real table with its ledger; others have no rows, or made-up ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.base.errors import InputError, PlanMismatchError
from dpaudit.base.validate import shown
from dpaudit.ledger import FloatNoise, Ledger, SecureNoise
from dpaudit.ledger.bounding import bounded_total
from dpaudit.ledger.entry import NoiseBackend, SizedNoise
from dpaudit.ledger.stream import Stream
from dpaudit.ledger.units import DistinctNames, Units
from dpaudit.mechanisms import Mechanism, Norm
from dpaudit.mechanisms.additive import IntegerNoise
from dpaudit.mechanisms.continual.release import Continual
from dpaudit.plan import Contribution, Invocation, PoissonSampling
from dpaudit.sealed.rows import Vectors
from dpaudit.sealed.store import UNITS_TO_TRY, Store


@dataclass
class Side:
    """A table and the ledger that releases of it.

    Attributes:
        store: the rows, or none.
        ledger: of the plan.
        trainings: of an application, by their number.
    """

    store: Store
    ledger: Ledger
    trainings: dict[int, Any] = field(default_factory=dict)
    _names: dict[int, DistinctNames] = field(default_factory=dict)

    def names(self, population: int = 0) -> DistinctNames:
        """Of all units, from which a sample is drawn; with others, as many as there are to be."""
        if population not in self._names:
            found = self.store.units()
            others = (f"without rows {n}" for n in range(len(found), population))
            self._names[population] = DistinctNames.of([*found, *others])
        return self._names[population]

    def total(self, vectors: Vectors) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Numbers of the rows, and the codes of their units."""
        codes, numbers = self.store.values(vectors)
        return numbers, codes


class _TrialNoise(FloatNoise):
    """Noise of a table that is tried, which refuses what that of another ledger would."""

    def __init__(self, other: NoiseBackend) -> None:
        super().__init__(np.random.default_rng(0))
        self._other = other

    def sample(self, invocation: Invocation, units: Sequence[str]) -> list[int]:
        """All units that have made-up rows: what is done with rows is tried, whoever is drawn."""
        return list(range(min(len(units), UNITS_TO_TRY)))

    def require_size(self, invocation: Invocation, entries: int) -> None:
        if isinstance(self._other, SizedNoise):
            self._other.require_size(invocation, entries)


def trial_of(ledger: Ledger) -> Ledger:
    """A ledger of the same plan that nobody reads."""
    return Ledger(ledger.plan, noise=_TrialNoise(ledger.noise or SecureNoise()))


@dataclass
class Steps:
    """A running stream, and at which steps each unit took part."""

    stream: Stream
    invocation: Invocation
    shape: tuple[int, ...]
    taken: dict[int, list[int]] = field(default_factory=dict)
    named: dict[str, list[int]] = field(default_factory=dict)

    def add(self, store: Store, vectors: Vectors, units: Sequence[str] | None) -> NDArray[Any]:
        """Release the sum so far with the bounded parts of those units that may take part."""
        step = self.stream.taken
        total, codes = self._step(store, vectors, units, self.taken)
        released = self.stream.add(total)
        for code in codes:
            self.taken.setdefault(code, []).append(step)
        for name in units or ():
            self.named.setdefault(name, []).append(step)
        return released

    def try_step(self, store: Store, vectors: Vectors, units: Sequence[str] | None) -> None:
        """Refuse a step of a table that is tried, as it would be refused of the real one."""
        self.stream.require(self._step(store, vectors, units, {})[0])

    def _step(
        self,
        store: Store,
        vectors: Vectors,
        units: Sequence[str] | None,
        taken: Mapping[int, list[int]],
    ) -> tuple[NDArray[Any], set[int]]:
        """What one step adds, and the codes of the units that take part."""
        may: set[int] = set()

        def those(codes: NDArray[np.int64]) -> NDArray[np.bool_]:
            listed = np.unique(codes).tolist() if units is None else store.codes_of(units)
            may.update(each for each in listed if self._may(taken.get(each, [])))
            return np.isin(codes, list(may))

        total = total_by_sensitivity(store, vectors, self.invocation, those).reshape(self.shape)
        if getattr(self.invocation.mechanism, "is_symmetric", False):
            total = (total + total.T) / 2  # no part becomes longer, and no row can end the run
        return total, may

    def require_named(self, units: Sequence[str] | None) -> None:
        """Refuse units of the next step: public facts, from which all steps of a unit follow.

        Raises:
            InputError: if none is named where the plan declares that steps are fixed.
            PlanMismatchError: if one is named for more steps than are declared, or too soon.
        """
        if units is None and is_of_fixed_steps(self.invocation):
            raise InputError(
                f"{self.invocation.describe()} declares fixed_steps; name the units of each step."
            )
        for name in units or ():
            if not self._may(self.named.get(name, [])):
                raise PlanMismatchError(
                    f"{shown(name)} is named for more steps than {self.invocation.describe()} "
                    f"declares; {self.invocation.mechanism.kind} lets it take part in fewer, or "
                    "further apart."
                )

    def _may(self, before: list[int]) -> bool:
        mechanism = self.invocation.mechanism
        assert isinstance(mechanism, Continual)
        return mechanism.may_take_part([*before, self.stream.taken])


def is_of_fixed_steps(invocation: Invocation) -> bool:
    """Tell whether a unit that is replaced takes part at the same steps as before."""
    fixed = getattr(invocation.mechanism, "fixed_steps", None)
    return bool(invocation.relation.replaces and fixed)


def total_by_sensitivity(
    store: Store,
    vectors: Vectors,
    invocation: Invocation,
    those: Callable[[NDArray[np.int64]], NDArray[np.bool_]],
) -> NDArray[Any]:
    """The sum of every unit's part, bounded so that the declared sensitivity holds.

    What an encoder keeps within that distance by itself is added as it is, exactly, where no part
    needs a bound of its own.

    Args:
        store: holds the rows.
        vectors: numbers of rows.
        invocation: as it is declared.
        those: of codes of units, which of them are added.
    """
    near = vectors.lie_within(invocation.sensitivity, invocation.mechanism.norm)
    if near and vectors.rows.most == 1 and not _counts_parts(invocation):
        codes, steps = store.encodings(vectors)
        total = steps[those(codes)].astype(object).sum(axis=0)
        return np.array([float(int(each) * vectors.step) for each in total])
    codes, numbers = store.values(vectors)
    kept = those(codes)
    bound = invocation.sensitivity / invocation.relation.contribution_factor
    own = Units.of(codes[kept], int(kept.sum()))
    whole = isinstance(invocation.mechanism, IntegerNoise)
    norm = invocation.mechanism.norm
    return bounded_total(numbers[kept], own, Contribution(bound), norm, whole=whole)[0]


def _counts_parts(invocation: Invocation) -> bool:
    """Tell whether a proof rests on how long one unit's part is, and not only on how far two lie.

    A sample may leave one of two units out, and one stream may have the one where another has the
    other. Two parts within the sensitivity may each be longer than half of it.
    """
    replaces, mechanism = invocation.relation.replaces, invocation.mechanism
    stray = isinstance(mechanism, Continual) and not is_of_fixed_steps(invocation)
    return replaces and (isinstance(invocation.sampling, PoissonSampling) or stray)


def are_wider(sensitivity: float, norm: Norm, *points: NDArray[Any]) -> bool:
    """Tell whether two answers within a box can lie further from each other than declared."""
    ends = (np.ravel(end).tolist() for end in (np.min(points, axis=0), np.max(points, axis=0)))
    sizes = [Fraction(high) - Fraction(low) for low, high in zip(*ends, strict=True)]
    if norm is Norm.CHANGE:
        return any(sizes) and sensitivity < 1
    if norm is Norm.L1:
        return sum(sizes) > Fraction(sensitivity)
    return sum(each * each for each in sizes) > Fraction(sensitivity) ** 2


def accepts(mechanism: Mechanism, value: NDArray[Any]) -> bool:
    """Tell whether a mechanism takes a value."""
    try:
        mechanism.checked(value)
    except InputError:
        return False
    return True
