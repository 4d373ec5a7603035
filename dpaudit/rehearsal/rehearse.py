"""A rehearsal: the real run on data and on their neighbours, before anything is published.

The first run is recorded. Then the same releases are given to runs on the same data (what differs
is hidden randomness), on neighbours (values, touches, groups, control flow and results are
compared) and on data further away (control flow and results). The noise that was drawn is tested
for its law, and what reaches files, processes and the network is seen. Everything that was released
is thrown away.
"""

from __future__ import annotations

import math
import os
import shlex
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from dpaudit.auditing.children import TrialTimeoutError, within_time
from dpaudit.auditing.noise.conformance import judged
from dpaudit.auditing.replaying.recording import TEXT, Run, Step
from dpaudit.auditing.replaying.replay import RecordedRun, ReplayReport, Telling, record
from dpaudit.base import files, validate
from dpaudit.base.errors import DpAuditError, PlanMismatchError, PublicError, UnsupportedError
from dpaudit.base.finding_table import FindingTable
from dpaudit.base.provenance import is_own
from dpaudit.certificate import Finding, Premise, Rehearsal
from dpaudit.ledger.checks import DEBUG
from dpaudit.ledger.selection import selection_of
from dpaudit.plan import Plan, TrustModel
from dpaudit.project import Move, Subject
from dpaudit.project.audit_request import Progress
from dpaudit.project.foreign import error_summary, place_of
from dpaudit.rehearsal.columns import whose
from dpaudit.rehearsal.models import model_findings
from dpaudit.rehearsal.neighbours import moves, whoever_else
from dpaudit.rehearsal.samples import UNITS, Samples
from dpaudit.rehearsal.watching import Watch, alike, first_apart, neighbours_apart, watched

ERROR_RATE = 1e-6
"""Probability that noise of the declared law has a finding, at most."""
QUICK = 10.0
"""Seconds within which all neighbours are tried, beyond those that are asked for."""
PATIENCE = 5.0
"""Seconds that a run on a neighbour may take beyond 20 times those of the first run."""
FURTHER = 1_000_000
"""Between the seeds of a rehearsal and those of the runs that show who is sampled."""

_KEEPS = "keeps-state"
_T = TypeVar("_T")
_found = FindingTable(__name__)
_UNTOLD = Telling(values=False)
"""Findings of a rehearsal stand in certificates, and tell no value."""
_recorded = partial(record, telling=_UNTOLD)


class RehearsalAbortedError(Exception):
    """Nothing more can be rehearsed.

    Attributes:
        reason: why nothing was rehearsed at all; empty where a finding says it.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass
class Session:
    """The state of a rehearsal: what it has shown so far.

    Attributes:
        subject: whose run is tested.
        data: what it runs on.
        plan: what is certified.
        seed: of everything.
        most: neighbours that are tried where runs are slow.
        limit: seconds that one run may take.
        progress: called with the runs that are done and those to be done.
        command: that shows a replay, but for how its neighbour is made; may be empty.
        findings: what does not hold.
        watch: on the ways around the ledger, while code runs.
    """

    subject: Subject
    data: Any
    plan: Plan
    seed: int
    most: int
    limit: float | None
    progress: Progress | None
    command: str
    findings: list[Finding] = field(default_factory=list)
    _neighbours: list[str] = field(default_factory=list)
    _elsewhere: list[str] = field(default_factory=list)
    _refused: list[str] = field(default_factory=list)
    _recorded: list[tuple[Step, ...]] = field(default_factory=list)
    _sampled: list[tuple[Move, int]] = field(default_factory=list)
    _moved: Counter[str] = field(default_factory=Counter)
    _reached: Counter[str] = field(default_factory=Counter)
    _draws: dict[str, int] = field(default_factory=dict)
    _patience: float = math.inf
    _shared: str = ""
    _done: int = 0

    def __post_init__(self) -> None:
        self._samples = Samples.of(self.plan)
        self.watch = Watch()

    def run(self) -> None:
        """Every run; what is found is added to the findings.

        Raises:
            EndError: if the data or the code do not allow a rehearsal.
            TrialTimeoutError: if a run on the data takes too long.
        """
        alone, fresh = self._fresh()
        start = time.monotonic()
        first = self._first()
        self._patience = self._patience_after(time.monotonic() - start)
        self.findings += _unwritable(first.run)
        self._require_stable(first)
        if first.run.refused:
            self.findings.append(_found("tries-undeclared", refused=first.run.refused))
        shown = self._timed(lambda: first.with_other_samples(self.data))
        self._keep(shown, Move(self.data, "the same data, other samples"))
        shown = self._timed(lambda: first.with_other_losers(self.data))
        self._keep(shown, Move(self.data, "the same data, other runs that are not the best"))
        near, far = self._moves()
        if self.subject.neighbours(self.data, np.random.default_rng(self.seed)) is None:
            self._shared = whose(self.data, str(self.plan.unit))
        for number, move in enumerate(near):
            if number >= self.most and time.monotonic() - start > QUICK:
                break
            base = first if move.base is None else self._base(move)
            if base is not None:
                self._compare(base, move, fresh.get(number), None if number else alone)
        if self._refused and not self._neighbours:
            raise RehearsalAbortedError(
                "The run refuses every neighbour of the data; define neighbours."
            )
        if not self._neighbours:
            kind = type(self.data).__name__
            raise RehearsalAbortedError(
                f"No neighbours can be derived from a {kind}; define neighbours."
            )
        for move in far:
            self._compare_far(first, move)
        self._follow_samples()
        self._require_same_plan()
        noise = judged(self._recorded, error_rate=ERROR_RATE, seed=self.seed)
        self._draws = {each.at: each.draws for each in noise.tested}
        self.findings += noise.findings

    def compare_model(self) -> None:
        """Tell whether ``audit_release``, which needs no ledger, draws what the run releases.

        Raises:
            TrialTimeoutError: if that takes too long.
        """
        compare = partial(model_findings, self.subject, self.seed, ERROR_RATE)
        self.findings += within_time(self.limit, compare)

    def record(self, name: str) -> Rehearsal:
        """Return what was tested, for a certificate."""
        labels = [each.at for each in self.plan.invocations]
        moved = {at: self._moved[at] for at in labels}
        by_value = Premise.SENSITIVITY, Premise.OWN_VALUES, Premise.TOUCHES, Premise.UNITS
        exercised = dict.fromkeys(map(str, by_value), moved)
        exercised[Premise.CONTROL_FLOW.value] = {at: self._reached[at] for at in labels}
        steps = [step for run in self._recorded for step in run]
        external = {step.external for step in steps if step.external}
        others = {
            selection_of(s.invocation.at)
            for s in steps
            if s.external or not is_own(s.invocation.mechanism)
        }
        if others:  # what the ledger draws by laws of this package needs no test
            exercised[Premise.NOISE.value] = {at: self._draws.get(at, 0) for at in sorted(others)}
        return Rehearsal(
            data=name,
            seed=self.seed,
            releases=len(self._recorded[0]) if self._recorded else 0,
            neighbours=tuple(self._neighbours),
            elsewhere=tuple(self._elsewhere),
            refused=tuple(self._refused),
            draws=sum(self._draws.values()),
            shared=self._shared,
            samples=0 if any(each.drawn_alone for each in steps) else self._samples.followed,
            external=tuple(sorted(external)),
            exercised=exercised,
        )

    # -- the run on the data ---------------------------------------------------------------------

    def _fresh(self) -> tuple[RecordedRun | None, dict[int, ReplayReport]]:
        """A run and its first neighbours, before anything has run here.

        Whatever fails does so here again.
        """
        start = time.monotonic()
        base = first_apart(self.subject, self.data, self.seed, self.limit, _UNTOLD, self.watch)
        if base is None:
            return None, {}
        limit = self._patience_after(time.monotonic() - start)
        return base, neighbours_apart(base, self._moves()[0], limit, self.watch)

    def _moves(self) -> tuple[Iterator[Move], Iterator[Move]]:
        rng = np.random.default_rng([self.seed, 1])
        return moves(self.subject, self.data, self.plan, rng)

    def _patience_after(self, took: float) -> float:
        return min(self.limit or math.inf, PATIENCE + 20 * took)

    def _first(self) -> RecordedRun:
        """The run on the data; what it raises ends the rehearsal."""
        self._require_same_plan()
        try:
            made = self._timed(lambda: _recorded(self.subject, self.data, self.seed))
        except PlanMismatchError:
            self.findings.append(_found("leaves-plan"))
            raise RehearsalAbortedError("") from None
        except UnsupportedError as error:
            raise RehearsalAbortedError(
                f"The run on the data cannot be recorded: {error_summary(error)}"
            ) from None
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever foreign code raises
            name = f"{type(error).__name__}{place_of(error)}"
            refused = isinstance(error, DpAuditError)
            how = f"is refused ({name})." if refused else f"raised {name}."
            if isinstance(error, PublicError):
                how = f"is refused: {error}"
            raise RehearsalAbortedError(f"The run on the data {how}") from None
        self._recorded.append(made.run.steps)
        return made

    def _require_stable(self, first: RecordedRun) -> None:
        unstable = self._timed(lambda: first.unstable(self.data))
        if unstable is not None:
            if not self.findings:  # what cannot be written cannot be compared either
                self.findings.append(unstable)
            raise RehearsalAbortedError("")

    def _require_same_plan(self) -> None:
        """The proof speaks of one plan; a subject that changes its own mind follows another."""
        if self.subject.plan() != self.plan:
            self.findings.append(_found("plan-changes"))
            raise RehearsalAbortedError("")

    # -- other data ------------------------------------------------------------------------------

    def _base(self, move: Move) -> RecordedRun | None:
        """A first run on other data; None if the code refuses them."""
        seed = self.seed + len(self._recorded)  # of its own: equal noise is a finding
        try:
            made = self._timed(lambda: _recorded(self.subject, move.base, seed), self._patience)
        except (Exception, SystemExit, TrialTimeoutError):  # noqa: BLE001 - nobody has such data
            self._refused.append(move.recipe)
            return None
        self._recorded.append(made.run.steps)
        return made

    def _compare(
        self,
        base: RecordedRun,
        move: Move,
        fresh: ReplayReport | None,
        alone: RecordedRun | None = None,
    ) -> None:
        """Keep what a neighbour shows: here, or if that is known, in a process of its own.

        Where the run ``alone`` is given, the neighbour is compared with it here as well: noise of
        other libraries is not that of the run here.
        """
        report = fresh or self._against(base, move)
        if fresh is not None and alone is not None:
            again = self._against(alone, move)
            if again is not None and not alike(fresh, again):
                self._keep([_found(_KEEPS)], move)
        if report is not None and report.raised and self._may_refuse(base, move, report):
            self._refused.append(move.recipe)
            return
        self._neighbours.append(move.recipe)
        if report is not None and move.base is None and len(self._sampled) < UNITS:
            needed = self._samples.first(report)
            self._sampled += [(move, needed)] if needed else []
        if report is None:
            self._keep([_found("does-not-end", seconds=self._patience)], move)
            raise RehearsalAbortedError("")  # others may take as long
        raised = [_raised(report)] if report.raised else []
        self._keep([*report.findings, *raised], move)
        self._reached.update({selection_of(each.at) for each in report.comparisons})
        self._moved.update({selection_of(each.at) for each in report.comparisons if each.moved})

    def _follow_samples(self) -> None:
        """Run again with other seeds, and see how often units are in samples."""
        if not self._samples.rates:
            return
        if not self._sampled:
            raise RehearsalAbortedError(
                "No changed unit was in a sample; define neighbours whose changed unit is in one."
            )
        reports: dict[str, list[ReplayReport]] = {}
        for number in range(max(needed for _, needed in self._sampled)):
            seed = self.seed + FURTHER + number
            base = self._timed(partial(_recorded, self.subject, self.data, seed))
            for move, _ in self._sampled:
                report = self._against(base, move)
                if report is not None:
                    reports.setdefault(move.recipe, []).append(report)
        for each in reports.values():
            self._samples.further(each)
        self.findings += self._samples.findings(ERROR_RATE)

    def _may_refuse(self, base: RecordedRun, move: Move, report: ReplayReport) -> bool:
        """Tell whether the run refuses what nobody has, whoever else there is, before any release.

        Or its own unit's value on the unit's own device. What nobody has, its author alone knows.
        """
        if not move.extreme:
            return False
        if report.at_the_door or report.before:
            return report.at_the_door and self.plan.trust is TrustModel.LOCAL
        data = self.data if move.base is None else move.base
        for other in whoever_else(data, move, str(self.plan.unit)):
            seen = self._against(base, other)
            if seen is not None and not seen.raised:
                return False
        self._keep([_found("refuses-values", raised=report.raised)], move)
        return True

    def _compare_far(self, first: RecordedRun, move: Move) -> None:
        report = self._against(first, move)
        if report is not None and not report.raised:
            self._elsewhere.append(move.recipe)
            self._keep(report.findings, move)

    def _against(self, base: RecordedRun, move: Move) -> ReplayReport | None:
        """The run on other data, compared; None if it takes too long."""
        run = partial(base.against, move.data, hops=move.hops)
        try:
            return self._timed(run, self._patience)
        except TrialTimeoutError:
            return None

    # -- for all ---------------------------------------------------------------------------------

    def _keep(self, findings: Iterable[Finding], move: Move) -> None:
        """The first finding of each rule and place, with the data that show it."""
        known = {(each.rule, each.at) for each in self.findings}
        told = f"Neighbour: {move.recipe}; seed {self.seed}."
        seen = f" To see it: {self.command} {shlex.quote(move.recipe)}" if self.command else ""
        for finding in findings:
            if (finding.rule, finding.at) not in known:
                more = "" if finding.rule == _KEEPS else seen  # a replay begins anew
                message = f"{finding.message} ({told}{more})"
                self.findings.append(replace(finding, message=message))

    def _timed(self, call: Callable[[], _T], limit: float | None = None) -> _T:
        with watched(self.watch):
            made = within_time(self.limit if limit is None else limit, call)
        self._done += 1
        if self.progress is not None:
            self.progress(self._done, max(self._done + 1, self.most + 4))
        return made


def _unwritable(run: Run) -> list[Finding]:
    """A result that a run could not write, after its releases are paid for."""
    if not isinstance(run.shown, Mapping):
        return []
    try:
        files.canonical_json({name: run.shown[name] for name in run.shown if name != TEXT})
    except (TypeError, ValueError, RecursionError):
        return [_found("unwritable-result")]
    return []


def _raised(report: ReplayReport) -> Finding:
    """An exception is an output too: whoever sees it knows which of the neighbours it was."""
    if report.at_the_door:
        return _found("not-a-number", raised=report.raised)
    if report.before:
        return _found("refused-after-release", before=report.before, raised=report.raised)
    return _found("raises-on-neighbour", raised=report.raised)


MOST_NEIGHBOURS = 24
"""Neighbours that are tried, unless more are asked for; further ones only where runs are quick."""
LONGEST = 300.0
"""Seconds that one run may take if nothing else is said: a busy machine is to decide nothing."""


@dataclass(frozen=True)
class RehearsalOutcome:
    """The record and the findings of a rehearsal.

    Attributes:
        record: for a certificate.
        findings: what does not hold.
    """

    record: Rehearsal
    findings: tuple[Finding, ...] = ()

    @property
    def sentence(self) -> str:
        """What was put to the test, in one sentence."""
        made = self.record
        if made.reason:
            return f"none: {made.reason}"
        found = f"{len(self.findings)} findings" if self.findings else "nothing was found"
        return (
            f"run replayed on {len(made.neighbours)} neighbours and {len(made.elsewhere)} other "
            f"data sets of {made.data!r}: {found}"
        )

    @classmethod
    def impossible(cls, reason: str) -> RehearsalOutcome:
        """A rehearsal that could not be made, and why, in one sentence."""
        return cls(Rehearsal(reason=reason))


def rehearse(
    subject: Subject,
    data: Any,
    name: str = "",
    *,
    plan: Plan | None = None,
    seed: int = 0,
    most: int = MOST_NEIGHBOURS,
    timeout: float | None = LONGEST,
    progress: Progress | None = None,
    command: str = "",
) -> RehearsalOutcome:
    """Put the real run of a subject to the test.

    Args:
        subject: whose :meth:`~dpaudit.project.Subject.run` is tested.
        data: what it runs on.
        name: of the data, for the record.
        plan: what is certified of it; its plan now where not given. It must not change.
        seed: of noise, algorithm and choice of neighbours.
        most: how many neighbours are tried, at most, where runs take long.
        timeout: seconds that one run may take; None for any time.
        progress: called with the runs that are done and those to be done.
        command: that shows a replay, but for how its neighbour is made, for findings.

    Raises:
        InputError: if a number is out of range.
    """
    most = validate.integer_at_least(1, most=most)
    seed = validate.integer_at_least(0, seed=seed)
    plan = plan or subject.plan()
    session = Session(subject, data, plan, seed, most, timeout, progress, command)
    reason = ""
    try:
        session.run()
        session.compare_model()
    except RehearsalAbortedError as end:
        reason = end.reason
    except TrialTimeoutError:
        reason = f"A run took more than {timeout:g} seconds; give a larger timeout."
    except Exception as error:  # what ends a rehearsal never counts in its favour
        if os.environ.get(DEBUG):
            raise
        raised = f"{type(error).__name__}{place_of(error)}"
        session.findings.append(_found("rehearsal-fails", raised=raised))
        reason = f"It ended in an error ({raised})."
    record = replace(session.record(name or "data"), reason=reason)
    return RehearsalOutcome(record, (*session.findings, *session.watch.findings()))
