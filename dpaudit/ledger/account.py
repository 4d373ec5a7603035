"""What a plan still admits, and what has been charged to whom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace

from dpaudit.base.errors import InputError, PlanMismatchError
from dpaudit.base.validate import shown
from dpaudit.ledger.units import Name
from dpaudit.mechanisms import Mechanism
from dpaudit.plan import Group, Invocation, Membership, Plan
from dpaudit.plan.sampling import (
    CyclicPoissonSampling,
    FixedSizeSampling,
    MixtureSampling,
    RandomAllocation,
    TruncatedPoissonSampling,
    WithReplacementSampling,
)

_Uses = tuple[tuple[str, int], ...]
_DRAWN_IN_RUNS = (
    CyclicPoissonSampling | MixtureSampling | RandomAllocation | WithReplacementSampling
)


class Account:
    """Charges by invocation and unit, beside what the plan declares.

    A release without a unit touches every unit: of its group where it has one, else of all. A named
    unit belongs to the group of its first release.

    Args:
        plan: what the algorithm declared.
        within: what all its labels begin with, which the code leaves out.
    """

    def __init__(self, plan: Plan, within: str = "") -> None:
        self._within = within
        self.declared = {invocation.at: invocation for invocation in plan.invocations}
        self._charges: dict[str, Counter[str | None]] = {at: Counter() for at in self.declared}
        self._totals = dict.fromkeys(self.declared, 0)
        self._most = dict.fromkeys(self.declared, 0)  # releases that one named unit has had
        self._group: dict[Name, str] = {}
        self._named_by: type | None = None  # whole numbers and texts name one unit twice
        self._fresh: dict[str, bool] = {}  # whether a sample waits for its release, by label

    def take_over(self, other: Account) -> None:
        """Charge what another account of the same plan has charged, and no more."""
        self._charges = {at: Counter(own) for at, own in other._charges.items()}
        self._totals, self._most = dict(other._totals), dict(other._most)
        self._group, self._named_by = dict(other._group), other._named_by
        self._fresh = dict(other._fresh)

    def found(self, at: str) -> tuple[str, Invocation | None]:
        """A label, which may be empty where only one is declared, and what is declared there."""
        if not at and len(self.declared) == 1:
            at = next(iter(self.declared))
        elif self._within and not at.startswith(self._within):
            at = self._within + at
        return at, self.declared.get(at)

    def admissible(
        self, mechanism: Mechanism, at: str, units: Mapping[str | None, int]
    ) -> Invocation:
        """The declared invocation, if further uses of it are within the plan.

        Args:
            mechanism: must equal the declared one.
            at: label of the invocation; may be empty if there is only one.
            units: how often each unit is about to be touched.

        Raises:
            InputError: if ``mechanism`` is none.
            PlanMismatchError: if the plan does not declare it, or not so often, or for another
                group of units.
        """
        if not isinstance(mechanism, Mechanism):
            raise InputError(f"mechanism is a {type(mechanism).__name__}; it must be a Mechanism.")
        at, invocation = self.found(at)
        if invocation is None:
            places = ", ".join(repr(place) for place in self.declared)
            raise PlanMismatchError(
                f"{mechanism.kind} was requested at a label that is not declared; the plan "
                f"declares {places:.400}."
            )
        own = invocation.mechanism
        if mechanism is not own and (type(mechanism) is not type(own) or mechanism != own):
            raise PlanMismatchError(
                f"the plan declares {own!r} at {shown(at)}, but {_unlike(own, mechanism)} ran."
            )
        if self._fresh.get(at) is False:
            raise PlanMismatchError(f"{invocation.describe()} needs a sample for each release.")
        for unit, times in units.items():
            self.require_member(invocation, unit)
            self._require_left(invocation, unit, times)
        charged = self._totals[at]
        if charged + sum(units.values()) > invocation.releases:
            raise PlanMismatchError(
                f"{invocation.describe()} is declared {invocation.releases} times in all and has "
                f"been released {charged} times."
            )
        return invocation

    def sampled(self, at: str, units: int) -> Invocation:
        """What is declared with sampling at a label; each release has one sample, no more.

        Raises:
            PlanMismatchError: if none is declared there, or the last sample waits for its release.
            InputError: if the units are not the declared population.
        """
        at, invocation = self.found(at)
        sampling = None if invocation is None else invocation.sampling
        if isinstance(sampling, _DRAWN_IN_RUNS):
            raise PlanMismatchError(
                f"{sampling.kind} samples are not drawn by the ledger; draw them in the run."
            )
        if invocation is None or sampling is None:
            where = "that label" if invocation is None else shown(at)
            raise PlanMismatchError(
                f"the plan declares no sampling for {where}, but the run draws a sample there; add "
                "sampling to that invocation."
            )
        if self._fresh.get(at):
            raise PlanMismatchError(
                f"{shown(at)} has a sample that has not been released yet; release it first."
            )
        if isinstance(sampling, FixedSizeSampling) and units != sampling.population:
            raise InputError(f"units must be the declared population of {sampling.population}.")
        if isinstance(sampling, TruncatedPoissonSampling) and units > sampling.population:
            raise InputError(f"units must be at most the population of {sampling.population}.")
        self._fresh[at] = True
        return invocation

    def require_member(self, invocation: Invocation, unit: Name | None) -> None:
        """Refuse a unit that belongs to another group, or is named otherwise than all before it.

        Raises:
            PlanMismatchError: if it does, or is.
        """
        if unit is not None and self._named_by not in (None, type(unit)):
            raise PlanMismatchError(
                f"{invocation.describe()} names units by texts and by whole numbers in one run; "
                "use one of the two for all."
            )
        if unit is None or invocation.group is None:
            return
        group = self._group.get(unit, invocation.group.name)
        if group != invocation.group.name:
            name = shown(invocation.group.name)
            raise PlanMismatchError(
                f"{invocation.describe()} is declared for the group {name}, and this "
                f"{invocation.unit} has belonged to {shown(group)} since its first release; "
                "groups are disjoint, so declare these invocations without groups."
            )

    def _require_left(self, invocation: Invocation, unit: str | None, times: int) -> None:
        charges = self._charges[invocation.at]
        # A release that touches everybody charges every unit, named or not.
        own = self._most[invocation.at] if unit is None else charges[unit]
        if own + charges[None] + times > invocation.count:
            whom = "this one" if unit is not None else "any one unit"
            raise PlanMismatchError(
                f"{invocation.describe()} is declared {invocation.count} times for one "
                f"{invocation.unit}; {whom} has been charged that often."
            )

    def charge(self, invocation: Invocation, unit: str | None) -> None:
        """Count one use."""
        if invocation.at in self._fresh:
            self._fresh[invocation.at] = False
        charges = self._charges[invocation.at]
        charges[unit] += 1
        self._totals[invocation.at] += 1
        if unit is not None:
            self._most[invocation.at] = max(self._most[invocation.at], charges[unit])
            self.join(invocation, unit)

    def join(self, invocation: Invocation, unit: Name) -> None:
        """Remember to which group a unit belongs, and how units are named."""
        self._named_by = type(unit)
        if invocation.group is not None:
            self._group.setdefault(unit, invocation.group.name)

    def most_for_one(self, at: str) -> int:
        """The most that one unit has been charged at an invocation."""
        return self._most[at] + self._charges[at][None]

    def charged(self, at: str) -> int:
        """How often an invocation was used in all."""
        return self._totals[at]

    def check(self) -> None:
        """Compare what ran with what was declared.

        Raises:
            PlanMismatchError: naming the first invocation that ran less often than declared. (One
                that is undeclared, different or too frequent is refused when it is asked for.)
        """
        for sentence in self.left():
            raise PlanMismatchError(f"{sentence}; declare what runs.")

    def left(self) -> Iterator[str]:
        """What ran less often than declared, each in a sentence without its end."""
        for at, invocation in self.declared.items():
            declared, ran = invocation.releases, self.charged(at)
            if ran != declared:
                yield f"{invocation.describe()} is declared {declared} times and ran {ran} times"

    def spent(self) -> Plan:
        """What ran, as a plan; units that were charged alike are one group, so it stays small.

        Raises:
            PlanMismatchError: if nothing ran yet.
        """
        invocations = [*self._of_everyone(), *self._of_groups()]
        if not invocations:
            raise PlanMismatchError("nothing has been released yet, so nothing has been spent.")
        return Plan.of(*invocations)

    def _of_everyone(self) -> Iterator[Invocation]:
        """What touched every unit, in whatever group."""
        for at, counter in self._charges.items():
            if counter[None] and self.declared[at].group is None:
                yield replace(self.declared[at], count=counter[None], total=counter[None])

    def _of_groups(self) -> Iterator[Invocation]:
        """What touched some units: each kind of history that a unit can have is a group."""
        shared: dict[str, _Uses] = {}  # what touched every unit of a declared group
        for at, counter in self._charges.items():
            group = self.declared[at].group
            if counter[None] and group is not None:
                shared[group.name] = (*shared.get(group.name, ()), (at, counter[None]))
        own: dict[str, list[tuple[str, int]]] = {}
        for at, counter in self._charges.items():
            for unit, count in counter.items():
                if unit is not None:
                    own.setdefault(unit, []).append((at, count))
        alike = Counter((self._group.get(unit), tuple(uses)) for unit, uses in own.items())
        number = 0
        for (home, uses), units in sorted(alike.items(), key=repr):
            # A unit that was named without a group may be in any of those that are shared.
            known = [shared.get(home, ())] if home is not None else [(), *shared.values()]
            for everyone in dict.fromkeys(known):
                number += 1
                name = f"{units} units charged alike ({number})"
                both = Counter(dict(uses)) + Counter(dict(everyone))
                yield from self._group_of(name, number, tuple(both.items()), units)
        for place, (name, uses) in enumerate(shared.items(), start=number + 1):
            yield from self._group_of(name, place, uses, 1)

    def _group_of(self, name: str, number: int, uses: _Uses, units: int) -> Iterator[Invocation]:
        for at, count in uses:
            invocation = self.declared[at]
            by_value = invocation.group is not None and invocation.group.membership
            membership = by_value or Membership.POSITION
            yield replace(
                invocation,
                count=count,
                total=count * units,
                group=Group(name, membership),
                at=f"{at} ({number})",
            )


def _unlike(own: Mechanism, other: Mechanism) -> str:
    """What another mechanism is, without its values, which the run may have made of data."""
    if type(own) is not type(other):
        return f"a {type(other).__name__:.60}"
    names = [each.name for each in fields(own) if each.compare]
    differing = [name for name in names if getattr(own, name) != getattr(other, name)]
    return f"one with another {' and '.join(differing) or 'state'}"
