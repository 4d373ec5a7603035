"""The runs of one rehearsal, one after the other, and what they show."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from dpaudit.auditing.distinguishing.limits import TrialTimeoutError, within_time
from dpaudit.auditing.noise.conformance import judged
from dpaudit.auditing.rehearsal import failures
from dpaudit.auditing.rehearsal.afresh import afresh
from dpaudit.auditing.rehearsal.constants import constants_of
from dpaudit.auditing.rehearsal.neighbours import Pair, derived, elsewhere
from dpaudit.auditing.replaying.checks import Telling
from dpaudit.auditing.replaying.recording import Step
from dpaudit.auditing.replaying.replay import Recorded, ReplayReport, record
from dpaudit.certificate import Finding, Rehearsal
from dpaudit.errors import DpAuditError, PlanMismatchError, UnsupportedError
from dpaudit.plan import Plan, TrustModel
from dpaudit.project import Move, Subject
from dpaudit.project.foreign import place_of

__all__ = ["EndError", "Session"]

ERROR_RATE = 1e-6
"""Probability that noise of the declared law has a finding, at most."""
QUICK = 10.0
"""Seconds within which all neighbours are tried, beyond those that are asked for."""
PATIENCE = 5.0
"""Seconds that a run on a neighbour may take beyond 20 times those of the first run."""
AFRESH = 3
"""So many neighbours are run on a new copy of the subject's module too."""
DISCREET = Telling(values=False)
"""Findings of a rehearsal stand in certificates."""

_T = TypeVar("_T")


class EndError(Exception):
    """Nothing more can be rehearsed.

    Attributes:
        reason: why nothing was rehearsed at all; empty where a finding says it.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass
class Session:
    """What a rehearsal has shown so far.

    Attributes:
        subject: whose run is tested.
        data: what it runs on.
        plan: what is certified.
        seed: of everything.
        most: neighbours that are tried where runs are slow.
        limit: seconds that one run may take.
        progress: called with the runs that are done and those to be done.
        findings: what does not hold.
    """

    subject: Subject
    data: Any
    plan: Plan
    seed: int
    most: int
    limit: float | None
    progress: Callable[[int, int], None] | None
    findings: list[Finding] = field(default_factory=list)
    _neighbours: list[str] = field(default_factory=list)
    _elsewhere: list[str] = field(default_factory=list)
    _refused: list[str] = field(default_factory=list)
    _recorded: list[tuple[Step, ...]] = field(default_factory=list)
    _done: int = 0

    def play(self) -> None:
        """Every run; what is found is added to the findings.

        Raises:
            EndError: if the data or the code do not allow a rehearsal.
            TrialTimeoutError: if a run on the data takes too long.
        """
        start = time.monotonic()
        rng = np.random.default_rng([self.seed, 1])
        first = self._first()
        took = time.monotonic() - start
        self._require_stable(first)
        own = self.subject.neighbours(self.data, rng)
        pairs = self._derived(rng) if own is None else (Pair(move.base, move) for move in own)
        for number, pair in enumerate(pairs):
            if number >= self.most and time.monotonic() - start > QUICK:
                break
            base = first if pair.x is None else self._base(pair)
            if base is not None:
                self._compare(base, pair.move, took)
            if pair.x is None and number < AFRESH:
                self._compare_afresh(first, pair.move)
        if self._refused and not self._neighbours:
            raise EndError("The run refuses every neighbour of the data; define neighbours.")
        if not self._neighbours:
            kind = type(self.data).__name__
            raise EndError(f"No neighbours can be derived from a {kind}; define neighbours.")
        if own is None:
            for move in self._further(rng):
                self._compare_further(first, move)
        self._require_same_plan()
        noise = judged(self._recorded, error_rate=ERROR_RATE, seed=self.seed)
        self.findings += noise.findings

    def record(self, name: str) -> Rehearsal:
        """What was tested, for a certificate."""
        steps = [step for run in self._recorded for step in run]
        external = {step.external for step in steps if step.external}
        return Rehearsal(
            data=name,
            seed=self.seed,
            releases=len(self._recorded[0]) if self._recorded else 0,
            neighbours=tuple(self._neighbours),
            elsewhere=tuple(self._elsewhere),
            refused=tuple(self._refused),
            draws=sum(np.size(step.released) for step in steps),
            external=tuple(sorted(external)),
        )

    # -- the run on the data ---------------------------------------------------------------------

    def _first(self) -> Recorded:
        """The run on the data; what it raises ends the rehearsal."""
        self._require_same_plan()
        try:
            made = self._timed(lambda: record(self.subject, self._copy(self.data), self.seed))
        except PlanMismatchError:
            self.findings.append(failures.LEAVES_PLAN)
            raise EndError("") from None
        except UnsupportedError as error:
            raise EndError(f"The run on the data cannot be recorded: {error}") from None
        except DpAuditError as error:
            name = f"{type(error).__name__}{place_of(error)}"
            raise EndError(f"The run on the data is refused ({name}).") from None
        except Exception as error:  # noqa: BLE001 - whatever foreign code raises
            name = f"{type(error).__name__}{place_of(error)}"
            raise EndError(f"The run on the data raised {name}.") from None
        self._recorded.append(made.run.steps)
        return made

    def _require_stable(self, first: Recorded) -> None:
        unstable = self._timed(lambda: first.unstable(self._copy(self.data), DISCREET))
        if unstable is not None:
            self.findings.append(unstable)
            raise EndError("")

    def _require_same_plan(self) -> None:
        """The proof speaks of one plan; a subject that changes its own mind follows another."""
        if self.subject.plan() != self.plan:
            self.findings.append(failures.PLAN_CHANGES)
            raise EndError("")

    # -- other data ------------------------------------------------------------------------------

    def _derived(self, rng: np.random.Generator) -> Iterator[Pair]:
        if any(each.sampling for each in self.plan.invocations):
            raise EndError(
                "The plan samples units, and who is sampled changes with the number of rows; "
                "define neighbours that keep the sample."
            )
        constants = constants_of(self.subject, self.plan)
        unit = str(self.plan.unit)
        return derived(self.data, self.plan.relation, unit, rng, constants)

    def _further(self, rng: np.random.Generator) -> Iterator[Move]:
        constants = constants_of(self.subject, self.plan)
        return elsewhere(self.data, self.plan.relation, str(self.plan.unit), rng, constants)

    def _base(self, pair: Pair) -> Recorded | None:
        """A first run on other data; None if the code refuses them."""
        seed = self.seed + len(self._recorded)  # of its own: equal noise is a finding
        try:
            made = self._timed(lambda: record(self.subject, self._copy(pair.x), seed))
        except Exception:  # noqa: BLE001 - a refusal of data that were made up is no finding
            self._refused.append(pair.move.recipe)
            return None
        self._recorded.append(made.run.steps)
        return made

    def _compare(self, base: Recorded, move: Move, took: float) -> None:
        patience = PATIENCE + 20 * took
        limit = patience if self.limit is None else min(self.limit, patience)
        try:
            report = self._timed(
                lambda: base.against(self._copy(move.data), telling=DISCREET), limit
            )
        except TrialTimeoutError:
            self._neighbours.append(move.recipe)
            self._keep([failures.does_not_end(limit)], move.recipe)
            return
        if report.raised and move.extreme and self._may_refuse(report):
            self._refused.append(move.recipe)
            return
        self._neighbours.append(move.recipe)
        raised = [failures.raised(report)] if report.raised else []
        self._keep([*report.findings, *raised], move.recipe)

    def _may_refuse(self, report: ReplayReport) -> bool:
        """Whether nobody learns more from a refusal than that values are checked.

        On the device of the one whose value it is, or before anything of anybody is added up.
        """
        if self.plan.trust is TrustModel.LOCAL and report.at_the_door:
            return True
        return not report.before and not report.at_the_door

    def _compare_further(self, first: Recorded, move: Move) -> None:
        try:
            report = self._timed(
                lambda: first.against(self._copy(move.data), neighbours=False, telling=DISCREET)
            )
        except TrialTimeoutError:
            return
        if not report.raised:
            self._elsewhere.append(move.recipe)
            self._keep(report.findings, move.recipe)

    def _compare_afresh(self, first: Recorded, move: Move) -> None:
        """The same on a new copy of the subject's module, which no earlier run has touched."""
        copied = afresh(self.subject)
        if copied is None:
            return
        try:
            report = self._timed(
                lambda: first.against(self._copy(move.data), telling=DISCREET, algorithm=copied)
            )
        except TrialTimeoutError:
            return
        if not report.raised:
            self._keep(report.findings, f"{move.recipe}, by a new copy of the module")

    # -- for all ---------------------------------------------------------------------------------

    def _keep(self, findings: Iterable[Finding], recipe: str) -> None:
        """The first finding of each rule and place, with the data that show it."""
        known = {(each.rule, each.at) for each in self.findings}
        for finding in findings:
            if (finding.rule, finding.at) not in known:
                how = f"{finding.message} (Neighbour: {recipe}; seed {self.seed}.)"
                self.findings.append(replace(finding, message=how))

    def _copy(self, data: Any) -> Any:
        """Data of one run's own, which it may change."""
        try:
            return copy.deepcopy(data)
        except Exception:  # noqa: BLE001 - what cannot be copied is handed over as it is
            return data

    def _timed(self, call: Callable[[], _T], limit: float | None = None) -> _T:
        made = within_time(self.limit if limit is None else limit, call)
        self._done += 1
        if self.progress is not None:
            self.progress(self._done, max(self._done + 1, self.most + 4))
        return made
