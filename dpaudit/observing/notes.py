"""What an observed run drew, and the plan that declares just that.

``dpaudit observe`` writes it. Where a library says nothing of a sensitivity, the plan proves
nothing until a person says it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction

from dpaudit.base.errors import InputError
from dpaudit.base.finding_table import FindingTable
from dpaudit.certificate import Claim, Finding
from dpaudit.mechanisms import Mechanism, Norm, Opaque
from dpaudit.observing.calls import Call, Charge
from dpaudit.plan import Invocation, Membership, Plan, PrivacyUnit, Relation, TrustModel

KNOWN = ("diffprivlib", "numpy", "opendp", "pipeline_dp", "snsql", "tmlt", "torch")
"""Libraries that have an adapter."""
_found = FindingTable(__name__)
_NEAR = 1e-6
_Kind = tuple[str, Mechanism, float | None]


@dataclass(frozen=True)
class Noted:
    """Calls that are one invocation of a plan.

    Attributes:
        invocation: as it is declared.
        calls: those that it stands for.
        known: whether somebody says its sensitivity.
    """

    invocation: Invocation
    calls: tuple[Call, ...]
    known: bool


@dataclass
class Notes:
    """The record of what libraries did while they were observed; it holds private values.

    Attributes:
        calls: every draw, in order.
        charges: what the libraries say it cost.
        findings: what a reader must know of the libraries.
        totals: what sums the charges of a library, where it has a rule of its own.
        loose: draws that have met no value yet, by law.
        lines: where the first of each law was drawn.
        drew: the generators that noise comes from, with its primitive, until that was told.
        handled: the generators that the code took in hand, how and where.
        relation: which data sets a library states to be neighbours, where nobody else says.
        open: whether a library may still state it.
        nan: who states of data that numbers may be NaN (True) or that none is.
    """

    calls: list[Call] = field(default_factory=list)
    charges: list[Charge] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    totals: dict[str, Callable[[], tuple[float, float]]] = field(default_factory=dict)
    loose: dict[str, int] = field(default_factory=dict)
    lines: dict[str, str] = field(default_factory=dict)
    drew: dict[Hashable, str] = field(default_factory=dict)
    handled: dict[Hashable, tuple[str, str]] = field(default_factory=dict)
    relation: Relation | None = None
    open: bool = False
    nan: dict[bool, str] = field(default_factory=dict)

    @property
    def excludes_nan(self) -> str:
        """Who states that no number of the data is NaN; nobody if somebody allows one."""
        return "" if True in self.nan else self.nan.get(False, "")

    def claim(self, delta: float) -> Claim | None:
        """Return what the libraries say that the run has cost; None where they say nothing.

        Args:
            delta: at which a ρ is told as an ε.
        """
        charged = [each for each in self.charges if each.library not in self.totals]
        own = [total() for total in self.totals.values()]
        own += [(each.epsilon, each.delta) for each in charged]
        epsilon, lost = sum(each[0] for each in own), sum(each[1] for each in own)
        rho = sum(each.rho for each in charged)
        if not self.charges or lost >= 1:
            return None
        source = "charged by " + ", ".join(dict.fromkeys(each.library for each in self.charges))
        if not rho:
            return Claim(epsilon, lost, source)
        if lost:
            return None  # a ρ beside a δ: no library here states their sum
        stated = {"rho": rho + epsilon**2 / 2, "delta": delta}
        return Claim.from_dict(stated | {"source": source})

    def noted(self, unit: PrivacyUnit, relation: Relation) -> tuple[Noted, ...]:
        """Return the calls as invocations of a plan, equal ones together.

        Raises:
            InputError: if nothing was drawn.
        """
        if not self.calls:
            left = {law: draws for law, draws in self.loose.items() if draws > 0}
            drew = f"no noise of an observed library was drawn; known are {', '.join(KNOWN)}"
            for law, draws in left.items():
                drew = (
                    f"{draws} draws of {law} at {self.lines[law]} were not added, unchanged, to "
                    "any value"
                )
            raise InputError(f"nothing was recorded: {drew}.")
        parts = self._parts()
        groups: dict[_Kind, list[int]] = {}
        for number, call in enumerate(self.calls):
            groups.setdefault(_kind(call), []).append(number)
        labels: dict[str, int] = {}
        found = []
        for (at, mechanism, sensitivity), numbers in groups.items():
            turn = labels[at] = labels.get(at, 0) + 1
            invocation = Invocation(
                mechanism,
                1.0 if sensitivity is None or mechanism.norm is Norm.CHANGE else sensitivity,
                unit,
                relation,
                TrustModel.CENTRAL,
                count=self._touched(numbers, parts, relation, mechanism),
                total=len(numbers),
                at=at if turn == 1 else f"{at} ({turn})",
            )
            calls = tuple(self.calls[number] for number in numbers)
            found.append(Noted(invocation, calls, sensitivity is not None))
        return tuple(found)

    def _touched(
        self, numbers: list[int], parts: list[int], relation: Relation, mechanism: Mechanism
    ) -> int:
        """Count how many of some calls one unit moves.

        Whoever is replaced may leave one part and enter another.
        """
        summed = mechanism.zeroed_is_absent
        twice = 2 if relation.moves_between(Membership.VALUE, summed=summed) else 1
        among = Counter(self.calls[number].reading.among for number in numbers)
        disjoint = [parts[n] for n in numbers if self.calls[n].reading.among is None]
        own = sum(Fraction(min(twice, each), each) for each in disjoint)
        bounded = (min(twice * known[0], times) for known, times in among.items() if known)
        return math.ceil(own) + sum(bounded)

    def _parts(self) -> list[int]:
        """Count of each call as how many disjoint parts its charge takes those it is about.

        A library that charges less than the sum of what its calls state takes them as calls on
        disjoint data, where that gives a whole number which divides the calls of every place.
        """
        parts = [1] * len(self.calls)
        for charge in self.charges:
            calls = self.calls[charge.start : charge.end]
            stated = [call.reading.stated or (0.0, 1.0) for call in calls]
            if not charge.epsilon or charge.delta or any(delta for _, delta in stated):
                continue
            share = sum(epsilon for epsilon, _ in stated) / charge.epsilon
            whole = round(share)
            alike = Counter(map(_kind, calls)).values()
            even = whole > 1 and all(times % whole == 0 for times in alike)
            if even and abs(share - whole) <= _NEAR * share:
                parts[charge.start : charge.end] = [whole] * len(calls)
        return parts

    def all_findings(self, noted: tuple[Noted, ...]) -> tuple[Finding, ...]:
        """Return what a reader of the plan must know, each said once."""
        left = (
            _found("noise-without-value", draws=draws, primitive=law, line=self.lines[law])
            for law, draws in self.loose.items()
            if draws > 0
        )
        return tuple(dict.fromkeys((*self.findings, *_of_plan(noted), *left)))


def _kind(call: Call) -> _Kind:
    """Return what calls of one invocation have in common."""
    return call.at, call.reading.declared, call.reading.sensitivity


def plan_of(noted: tuple[Noted, ...]) -> Plan:
    """Return the plan of these invocations."""
    return Plan.of(*(each.invocation for each in noted))


def _of_plan(noted: tuple[Noted, ...]) -> Iterator[Finding]:
    for each in noted:
        call, own = each.calls[0], each.invocation
        name, library = call.reading.primitive, call.library
        if not each.known:
            yield _found("unknown-sensitivity", own.at, primitive=name, line=call.line)
        elif isinstance(own.mechanism, Opaque):
            cost = {"epsilon": own.mechanism.epsilon, "delta": own.mechanism.delta}
            yield _found("stated-by-library", own.at, primitive=name, library=library, **cost)
        if own.count < own.releases:
            facts = {"at": own.at, "releases": own.releases, "count": own.count}
            yield _found("taken-as-disjoint", own.at, library=library, unit=own.unit, **facts)
