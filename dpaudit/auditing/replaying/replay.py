"""Replays: two neighbours through the code with equal releases, and what must not differ.

The first run is recorded. The second, on the neighbour, uses the same generators, and every release
gives out *what the first run released*. So all that differs between the two runs is due to the
private data alone, and must be no more than the plan declares: pre-noise values that are at most
the sensitivity apart, for at most ``count`` releases of one invocation, in the same control flow.
What is shown of the run, and what it prints, must not differ at all.

A replay is deterministic: what it finds is a fact about these two data sets, with no error rate.
What it does not find may still be wrong for other data.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.auditing.replaying.recording import (
    Choose,
    Ended,
    OtherLosers,
    RecordingNoise,
    ReplayingNoise,
    Run,
    Runnable,
    Step,
    equal,
    ran,
    shown,
)
from dpaudit.base.finding_table import FindingTable
from dpaudit.certificate import Finding
from dpaudit.ledger import FloatNoise
from dpaudit.ledger.selection import losers
from dpaudit.mechanisms.pairs import Floats
from dpaudit.plan import AddRemove
from dpaudit.project.foreign import place_of

_found = FindingTable(__name__)

OF_SENSITIVITY = 1e-9
"""Slack for rounding, relative to the sensitivity."""
OF_VALUES = 2.0**-40
"""Slack for rounding, relative to the values: sums of thousands of numbers are off by less. It is
small, as a large public constant in a value must not hide a large distance."""
OF_SINGLE = 2.0**-20
"""Slack for the rounding of other libraries, which compute in 32-bit floats, relative to both."""

OF_PARTS = 1e-3
"""Slack of a unit's part, relative to its bound: who computes for all rows at once may round one of
them in another way where there are more rows."""


def _slack(one: Step, two: Step) -> float:
    size = max(float(np.abs(each.value).max(initial=0.0)) for each in (one, two))
    if one.single:
        return OF_SINGLE * (one.invocation.sensitivity + size)
    return OF_SENSITIVITY * one.invocation.sensitivity + OF_VALUES * size


@dataclass(frozen=True)
class Telling:
    """The measure of what findings tell of the data that show them.

    Attributes:
        values: whether names of units and distances of values are told. Both are private; without
            them a place is told by label and line, and a distance by its order of magnitude.
    """

    values: bool = True

    def place(self, step: Step) -> str:
        """Tell where a release was asked for."""
        return step.place if self.values else f"{step.invocation.at!r} ({step.source})"

    def apart(self, observed: float, declared: float) -> str:
        """Tell how far two values are apart."""
        if self.values:
            return f"{observed:.6g} apart"
        if not 0 < declared < observed < math.inf:
            return "too far apart"
        times = 10 ** math.floor(math.log10(observed / declared))
        return "too far apart" if times == 1 else f"more than {times} times too far apart"


EVERYTHING = Telling()


def too_far(
    compared: Sequence[tuple[Step, Step]], telling: Telling = EVERYTHING, hops: float = 1
) -> list[Finding]:
    """Pre-noise values further apart than declared; the first of each invocation."""
    found: dict[str, Finding] = {}
    reached: dict[str, float] = {}
    for one, two in compared:
        call = one.invocation
        observed = one.distance(two)
        if one.adds_up:
            earlier = reached.get(call.at, 0.0) if one.turn else 0.0
            reached[call.at] = observed = math.hypot(earlier, observed)
        if observed > hops * call.sensitivity + _slack(one, two) and call.at not in found:
            others = any(each.at == call.at for each in parts_of_others(compared, telling, hops))
            found[call.at] = _found(
                "moved-by-others" if others else "sensitivity-understated",
                call.at,
                place=telling.place(one),
                apart=telling.apart(observed, hops * call.sensitivity),
                norm=call.mechanism.norm.value,
                steps=_steps(hops),
                declared=call.sensitivity,
            )
    return list(found.values())


def _steps(hops: float) -> str:
    return "" if hops == 1 else f", {hops:g} steps from each other"


def differ(one: Step, two: Step) -> bool:
    """Tell whether pre-noise values differ by more than rounding."""
    return one.distance(two) > _slack(one, two)


def _differing(compared: Sequence[tuple[Step, Step]]) -> list[Step]:
    return [one for one, two in compared if differ(one, two)]


def too_often(
    compared: Sequence[tuple[Step, Step]], telling: Telling = EVERYTHING, hops: float = 1
) -> list[Finding]:
    """One unit that moves more releases of an invocation than ``count``."""
    differing, found = _differing(compared), []
    moved, seen = Counter(one.invocation.at for one in differing), Counter[str]()
    for one in differing:
        call = one.invocation
        seen[call.at] += 1
        if seen[call.at] == hops * one.touches + 1:
            facts = {"unit": call.unit, "label": call.at, "touches": one.touches}
            facts |= {"steps": _steps(hops), "number": seen[call.at], "moved": moved[call.at]}
            found.append(_found("touched-too-often", call.at, place=telling.place(one), **facts))
    return found


def groups_overlap(
    compared: Sequence[tuple[Step, Step]], telling: Telling = EVERYTHING, hops: float = 1
) -> list[Finding]:
    """One unit that moves releases of two groups, which compose in parallel only if disjoint."""
    groups: dict[str, Step] = {}
    for one in _differing(compared):
        group = one.invocation.group
        if group is None or group.name in groups:
            continue
        groups[group.name] = one
        allowed = 2 if all(each.invocation.moves_unit for each in groups.values()) else 1
        if len(groups) > hops * allowed:
            name, earlier = next(iter(groups.items()))
            facts = {"unit": one.invocation.unit, "one": name, "two": group.name}
            places = {"earlier": telling.place(earlier), "place": telling.place(one)}
            return [_found("groups-overlap", one.invocation.at, **facts, **places)]
    return []


def parts_of_others(
    compared: Sequence[tuple[Step, Step]], telling: Telling = EVERYTHING, hops: float = 1
) -> list[Finding]:
    """Bounded sums in which more parts differ than one unit's, however little the sum moves.

    Parts are compared whoever they are of, as names may be numbers of places.
    """
    found: dict[str, Finding] = {}
    for one, two in compared:
        call = one.invocation
        if one.parts is None or two.parts is None or np.array_equal(one.parts, two.parts):
            continue
        assert call.contribution is not None
        relation, bound = call.relation, call.contribution.bound
        gone, come = (_without(*each, OF_PARTS * bound) for each in _both(one.parts, two.parts))
        moved = gone + come if isinstance(relation, AddRemove) else max(gone, come)
        units = math.floor(call.sensitivity / (relation.contribution_factor * bound))
        if moved > hops * units and call.at not in found:
            facts = {"unit": call.unit, "place": telling.place(one), "steps": _steps(hops)}
            found[call.at] = _found("parts-of-others", call.at, **facts)
    return list(found.values())


def _both(one: Floats, two: Floats) -> Iterator[tuple[Floats, Floats]]:
    """Yield what the first has more often beside what the second has, and the other way round."""
    kinds = Counter(map(bytes, one)), Counter(map(bytes, two))
    gone, come = (
        np.frombuffer(b"".join(more.elements())).reshape(-1, one.shape[1])
        for more in (kinds[0] - kinds[1], kinds[1] - kinds[0])
    )
    yield gone, come
    yield come, gone


def _without(parts: Floats, others: Floats, near: float) -> int:
    """Tell how many parts have none of the others near."""
    if not len(others):
        return len(parts)
    from scipy.spatial import KDTree

    distances, _ = KDTree(others).query(parts, distance_upper_bound=near)
    return int(np.isinf(distances).sum())


def facts_differ(
    compared: Sequence[tuple[Step, Step]], telling: Telling = EVERYTHING, hops: float = 1
) -> list[Finding]:
    """Numbers that a library draws by as if they were public, though they follow from the data."""
    found: dict[str, Finding] = {}
    for one, two in compared:
        both = one.facts.keys() | two.facts.keys()
        names = [name for name in sorted(both) if one.facts.get(name) != two.facts.get(name)]
        if names and one.invocation.at not in found:
            facts = {"place": telling.place(one), "names": ", ".join(names)}
            found[one.invocation.at] = _found("private-parameters", one.invocation.at, **facts)
    return list(found.values())


@dataclass(frozen=True)
class Comparison:
    """One release in both runs.

    Attributes:
        at: label of the invocation.
        unit: whom it belongs to; None for all.
        source: place in the code.
        declared: the declared sensitivity.
        observed: distance of the pre-noise values, in the mechanism's norm.
        moved: whether that is more than rounding.
    """

    at: str
    unit: str | None
    source: str
    declared: float
    observed: float
    moved: bool = False

    @property
    def share(self) -> float:
        """How far apart values are, in units of the declared sensitivity."""
        if self.declared == 0:
            return math.inf if self.observed else 0.0
        return self.observed / self.declared


@dataclass(frozen=True)
class ReplayReport:
    """The findings of a replay, release by release.

    Attributes:
        comparisons: every release up to the first divergence of control flow.
        findings: what does not hold, in the order of the code.
        raised: what the run on the neighbour raised, as type and place; empty if nothing.
        before: how many releases had been made when it raised.
        at_the_door: whether the ledger raised it, over a value that reached it.
    """

    comparisons: tuple[Comparison, ...]
    findings: tuple[Finding, ...]
    raised: str = ""
    before: int = 0
    at_the_door: bool = False

    @property
    def clean(self) -> bool:
        """Whether nothing was found."""
        return not self.findings


def replay(algorithm: Runnable, x: Any, x_prime: Any, seed: int = 0) -> ReplayReport:
    """Run an algorithm on two neighbours with the same noise, and compare what it released.

    Args:
        algorithm: a subject, or a :class:`Routine`.
        x: one data set.
        x_prime: its neighbour under the plan's relation.
        seed: of the noise and of the algorithm's own randomness.

    Raises:
        PlanMismatchError: if the run on x itself is not what the plan declares.

    Example:
        >>> from dpaudit import Laplace, Plan, Invocation, PrivacyUnit, AddRemove, TrustModel
        >>> from dpaudit.auditing.replaying.recording import Routine
        >>> noise = Laplace(1.0)
        >>> plan = Plan.of(Invocation(noise, 1.0, PrivacyUnit("row"), AddRemove(),
        ...                           TrustModel.CENTRAL, at="total"))
        >>> double = Routine(plan, lambda rows, ledger, rng: ledger.release(noise, 2 * sum(rows)))
        >>> replay(double, [1.0, 1.0], [1.0]).findings[0].rule
        'sensitivity-understated'
    """
    first = record(algorithm, x, seed)
    unstable = first.unstable(x)
    if unstable is not None:
        return ReplayReport((), (unstable,))
    report = first.against(x_prime)
    if report.raised:
        raise first.error
    return report


def record(
    algorithm: Runnable,
    x: Any,
    seed: int = 0,
    choose: Choose | None = None,
    telling: Telling = EVERYTHING,
) -> RecordedRun:
    """Run an algorithm once, and keep what it released.

    Args:
        algorithm: what runs.
        x: on what.
        seed: of the noise and of the algorithm's own randomness.
        choose: says who takes part, where it is not drawn.
        telling: how much findings tell of the data.

    Raises:
        PlanMismatchError: if the run is not what the plan declares.
        Exception: what the run raises.
    """
    run = ran(algorithm, x, RecordingNoise(_generators(seed)[0], choose), _generators(seed)[1])
    if run.error is not None:
        raise run.error
    return RecordedRun(algorithm, seed, run, telling)


def own_generator(seed: int) -> np.random.Generator:
    """That of the algorithm's own randomness, in every run that is recorded with a seed."""
    return _generators(seed)[1]


def _generators(seed: int) -> list[np.random.Generator]:
    """That of the ledger, that of the algorithm, and another one for the ledger."""
    return [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(3)]


class RecordedRun:
    """A run on x, with which runs on other data are compared.

    Attributes:
        algorithm: what ran.
        seed: of the noise and of the algorithm's own randomness.
        run: the run.
        telling: how much findings tell of the data.
        error: what the last run on other data raised.
    """

    def __init__(self, algorithm: Runnable, seed: int, run: Run, telling: Telling) -> None:
        self.algorithm = algorithm
        self.seed = seed
        self.run = run
        self.telling = telling
        self.error: BaseException = RuntimeError()

    def again(
        self,
        data: Any,
        *,
        other: bool = False,
        choose: Choose | None = None,
    ) -> Run:
        """Run on data with the releases and samples of the first run.

        Args:
            data: of any kind that the algorithm takes.
            other: give the ledger another generator, which nothing released depends on.
            choose: says who takes part, in place of the samples.
        """
        generators = _generators(self.seed)
        noise = ReplayingNoise(generators[2 if other else 0], self.run.steps, choose)
        return ran(self.algorithm, data, noise, generators[1])

    def unstable(self, x: Any) -> Finding | None:
        """Return what differs between two runs on the same data with the same seeds and releases.

        The second run's ledger has a generator of its own, so that a result which knows the noise
        differs too.
        """
        first, again = self.run, self.again(x, other=True)
        for one, two in zip(first.steps, again.steps, strict=False):
            alike = one.keys == two.keys and np.array_equal(one.value, two.value, equal_nan=True)
            if not (one.follows(two) and alike):
                at, place = one.invocation.at, self.telling.place(one)
                return _found("hidden-randomness", at, place=place)
        if again.ended is not first.ended or len(again.steps) != len(first.steps):
            return _found("hidden-randomness", place="its end")
        if first.finished and equal(first.shown, again.shown):
            return None
        return _found("hidden-randomness", place="its result")

    def with_other_samples(self, x: Any) -> list[Finding]:
        """Return what shows who took part, but the values before noise; nothing may."""
        if not any(step.sample for step in self.run.steps):
            return []
        other = FloatNoise(np.random.default_rng([self.seed, 1])).sample
        again = self.again(x, choose=other)
        return [*_diverged(self.run, again, self.telling), *_leaks(self.run, again)]

    def with_other_losers(self, x: Any) -> list[Finding]:
        """Return what shows runs of a selection that were not the best; nothing may."""
        lost = losers(self.run.scores)
        if not lost:
            return []
        generators = _generators(self.seed)
        noise = OtherLosers(generators[2], self.run.steps, lost)
        again = ran(self.algorithm, x, noise, generators[1])
        differing = shown(self.run.shown, again.shown)
        same = not differing and self.run.printed == again.printed
        if same or not (self.run.finished and again.finished):
            return []
        return [_found("losers-leave", differing=differing or "what it prints")]

    def against(self, x_prime: Any, *, hops: float = 1) -> ReplayReport:
        """Compare with a run on other data.

        Args:
            x_prime: a neighbour of x, or data that are further away.
            hops: how many steps from neighbour to neighbour lead there. Values, touches and groups
                may differ by so many times what is declared, control flow and results never.
        """
        first, second = self.run, self.again(x_prime)
        compared = list(zip(first.steps, second.common(first), strict=False))
        found: list[Finding] = []
        for check in (too_far, too_often, groups_overlap, parts_of_others, facts_differ):
            found += check(compared, self.telling, hops)
        comparisons = tuple(
            Comparison(
                one.invocation.at,
                one.unit,
                one.source,
                one.invocation.sensitivity,
                one.distance(two),
                differ(one, two),
            )
            for one, two in compared
        )
        if second.ended is Ended.RAISED:
            assert second.error is not None
            self.error = second.error
            raised = f"{type(second.error).__name__}{place_of(second.error)}"
            before = len(second.steps)
            return ReplayReport(comparisons, tuple(found), raised, before, second.at_the_door)
        diverged = _diverged(first, second, self.telling)
        if diverged:  # one left out shifts the others, of which only the code knows which is which
            repeated = _repeated(first) | _repeated(second)
            found = [each for each in found if each.at not in repeated]
        found += [*diverged, *_leaks(first, second)]
        return ReplayReport(comparisons, tuple(found))


def _repeated(run: Run) -> set[str]:
    """Labels of several releases that an observed library drew."""
    drawn = Counter(step.invocation.at for step in run.steps if step.external and step.facts)
    return {at for at, times in drawn.items() if times > 1}


def _diverged(first: Run, second: Run, telling: Telling) -> list[Finding]:
    """A different sequence of releases, though all earlier releases were the same."""
    common = len(second.common(first))
    if second.finished and common == len(first.steps):
        return []
    expected = (
        telling.place(first.steps[common]) if common < len(first.steps) else "the end of the run"
    )
    if len(second.steps) > common:
        instead = telling.place(second.steps[common])
    elif second.ended is Ended.REFUSED:
        why = f": {second.error}" if telling.values else ""
        instead = f"a release that the plan refuses{why}"
    else:
        instead = "the end of the run"
    at = first.steps[min(common, len(first.steps) - 1)].invocation.at if first.steps else ""
    facts = {"common": common, "expected": expected, "instead": instead}
    return [_found("private-control-flow", at, **facts)]


def _leaks(first: Run, second: Run) -> list[Finding]:
    """A result, a printed line or a use of randomness that equal releases do not explain."""
    if not (first.finished and second.finished):
        return []
    found = []
    differing = shown(first.shown, second.shown)
    if not differing and not equal(first.scores, second.scores):
        differing = "what a run of a selection returned"
    if differing:
        found.append(_found("result-not-from-releases", differing=differing))
    if first.printed != second.printed:
        found.append(_found("prints-private-data"))
    if not found and not equal(first.randomness, second.randomness):
        found.append(_found("private-use-of-randomness"))
    return found
