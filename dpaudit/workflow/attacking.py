"""How an audit is answered: attacks on subjects, functions, programs and trainings.

An :class:`AuditRequest` says what is asked. The command line is answered by :func:`audit`, a
project file by :func:`with_planned_audits`, and a caller in Python, such as the pytest plugin, by
:func:`attack`. All of them draw by :func:`attack_subject` and :func:`attack_code`, so that one
request has one answer.
"""

from __future__ import annotations

import math
import operator
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from dpaudit.accounting import guarantee, privacy_curve
from dpaudit.auditing import (
    BlackBox,
    Release,
    WhiteBox,
    audit_release,
    audit_subject,
    candidate_pairs,
    learn_scores,
    search_pairs,
)
from dpaudit.auditing.children import TrialTimeoutError, within_time
from dpaudit.auditing.distinguishing.design import TooFewRunsError
from dpaudit.auditing.distinguishing.scores import OutputScore
from dpaudit.auditing.execution import forecast, progress_bar
from dpaudit.auditing.subjects.declared import claimed_curve, null
from dpaudit.auditing.subjects.exact import audit_exact
from dpaudit.auditing.subjects.neighbours import Search, around, patterns
from dpaudit.base import files, toml_tables, validate
from dpaudit.base.applications import offered
from dpaudit.base.errors import DpAuditError, InputError, UnsupportedError
from dpaudit.base.numbers import confidence, down
from dpaudit.base.validate import shown
from dpaudit.certificate import AuditRecord, Certificate, Claim, Finding, Severity, SubjectRecord
from dpaudit.certificate.claim import USUAL_DELTA
from dpaudit.certificate.verdicts import contradicts
from dpaudit.mechanisms import Mechanism, Opaque
from dpaudit.plan import (
    AddRemove,
    Invocation,
    Plan,
    PrivacyUnit,
    PrivateSelection,
    Relation,
    ReplaceOne,
    TrustModel,
    ZeroOut,
)
from dpaudit.project import AuditPair, Execution, Subject
from dpaudit.project.audit_request import EACH, TIME, AuditRequest
from dpaudit.project.foreign import Program
from dpaudit.project.plan_file import is_release, read_plan_file
from dpaudit.project.project_file import SubjectEntry
from dpaudit.project.sealed_subject import on_made_up_rows
from dpaudit.project.subject import read_data
from dpaudit.project.targets import Target, certified, find_code, find_target, load_function
from dpaudit.rehearsal.neighbours import derive_neighbours, literals
from dpaudit.rehearsal.rehearse import RehearsalOutcome
from dpaudit.workflow.outcomes import NO_AUDIT
from dpaudit.workflow.rehearsing import audit_run, rehearse_subject, time_left

Moved: TypeAlias = Callable[[AuditPair, np.random.Generator], AuditPair]
MOST_PAIRS = 60
CONSTANTS = 8
TELLING = 0.05
"""Share of the claimed ε that a pair of a search must show, or else it has tested nothing."""
LOOK_RUNS, LOOK_CONFIDENCE = 4_000, 0.999
"""Of the short audit of data with one row less, where no relation is stated."""
ONE_MOVES = (
    "the pair moves one number by 1; if one number may move further, give --pair or --data; if "
    "all may move, as answers to queries do, give --relation each"
)
FURTHER = "the pair moves one number by 1; if one number may move further, give --pair or --data"
NOTHING_MOVED = "no pair that was tried moves the output visibly, so give --pair"
ALL_MOVE = "each number may move by 1"
SAME_NUMBER = "no row is added or removed; if one may be, give --relation add-remove"


@dataclass(frozen=True)
class Hypothesis:
    """The null hypothesis of an attack on a function, and what its certificate speaks of.

    Attributes:
        claim: whose ε and δ are tested too.
        curve: the claimed δ(ε), where more is claimed than one point.
        target: the plan; without one, an opaque mechanism that claims what is tested.
        relation: which data sets are neighbours, where that is stated.
        details: for the record.
    """

    claim: Claim
    curve: Callable[[Any], Any] | None
    target: Target
    relation: Relation | None
    details: dict[str, Any]


def hypothesis(request: AuditRequest) -> Hypothesis:
    """Return what is tested of a function: a claim, or all that a plan file says.

    Raises:
        InputError: if there is neither a claim nor a plan, or both; or the plan bounds nothing.
    """
    record = SubjectRecord(request.target, configuration=request.settings)
    claim, unit = request.stated, request.unit
    near = request.relation if isinstance(request.relation, Relation) else None
    if request.plan is not None:
        if claim is not None or unit is not None or near is not None:
            raise InputError(
                "--plan is given with a claim, --unit or --relation, which the plan states; "
                "keep one."
            )
        return _by_plan(record, request.plan, request.delta)
    if claim is None:
        raise InputError("--epsilon is missing; give the claimed ε, another --claim, or --plan.")
    opaque = Opaque(record.name[:80], claim.epsilon, claim.delta)
    about = PrivacyUnit("data set" if unit is None else unit), near or _relation_of(request.pair)
    declared = Plan.of(Invocation(opaque, 1.0, *about, TrustModel.CENTRAL, at="release"))
    details = {"null": null(claim, claim.curve), "target": "function", "unit": str(about[0])}
    details["relation"] = about[1].to_dict()
    return Hypothesis(claim, claim.curve, Target(record, declared, claim, (), ()), near, details)


def _relation_of(pair: AuditPair | None) -> Relation:
    """The relation that a pair shows: lists of different lengths are no replacement."""
    ends = () if pair is None else (pair.x, pair.x_prime)
    sizes = {len(end) for end in ends if isinstance(end, list | tuple)}
    return AddRemove() if len(sizes) > 1 else ReplaceOne()


def _by_plan(record: SubjectRecord, path: str, delta: float | None) -> Hypothesis:
    content = read_plan_file(path)
    plan, claim = content.plan, content.claim
    try:
        curve = privacy_curve(plan)
        if delta is None and claim is not None:
            delta = claim.delta if claim.risk is None else claim.risk.delta_wanted or USUAL_DELTA
        if delta is None:
            delta = 0.0 if guarantee(plan, 0.0).epsilon < math.inf else USUAL_DELTA
        proved = guarantee(plan, delta)
    except UnsupportedError as error:
        raise InputError(f"--plan {path} proves no bound ({error}); give a claim.") from None
    if proved.epsilon == math.inf:
        raise InputError(f"--plan {path} proves no finite ε at δ = {delta:g}; give --delta.")
    point, target = Claim(proved.epsilon, delta), Target(record, plan, claim, content.findings, ())
    details = {"null": null(point, curve), "target": "function", "plan": path}
    return Hypothesis(point, curve, target, plan.relation, details)


def candidates(
    release: BlackBox, about: Hypothesis, request: AuditRequest
) -> tuple[list[AuditPair], Moved | None, dict[str, Any]]:
    """Neighbours of some data, or patterns of numbers, of which a search finds the most promising.

    Returns:
        The pairs, what makes others of good ones, and what is told of them in the record.

    Raises:
        InputError: if the data cannot be read or have no neighbours.
    """
    relation, each = about.relation, request.relation == EACH
    if request.data is not None:
        pairs = _of_data(request.data, relation or ReplaceOne(), str(about.target.plan.unit))
        told = {} if relation is not None else {"neighbours": SAME_NUMBER}
        return pairs, None, {"data": request.data, **told}
    constants = islice(literals(getattr(release.function, "__code__", None)), CONSTANTS)
    # Moved, a missing or a zeroed entry would be another size.
    moved = None if isinstance(relation, AddRemove | ZeroOut) else around
    told = {"neighbours": ALL_MOVE if each else ONE_MOVES} if relation is None else {}
    if isinstance(relation, ReplaceOne):
        told = {"neighbours": FURTHER}
    near = relation if each else relation or ReplaceOne()
    return list(patterns(near, constants)), moved, told


def _of_data(path: str, relation: Relation, unit: str) -> list[AuditPair]:
    """Neighbours of a file's data that hold values which occur in it."""
    data = read_data(path)
    moves = derive_neighbours(
        data, relation, "row" if unit == "data set" else unit, np.random.default_rng(0)
    )
    near = islice((move for move in moves if not move.extreme), MOST_PAIRS)
    bases = ((data if move.base is None else move.base, move) for move in near)
    pairs = [AuditPair(base, move.data, move.recipe) for base, move in bases]
    if not pairs:
        raise InputError(f"--data {path} has no neighbours under {relation}; give --pair.")
    return pairs


def search_details(found: Search) -> dict[str, Any]:
    """Return what a search says of its pair, for the record."""
    number, refused = len(found.promises), found.promises.count(None)
    why = found.pair.why
    if refused:
        kinds = ", ".join(sorted(found.raised)) or "something that is not an answer"
        why += f" ({refused} of {number} pairs made the code raise {kinds}; less was searched)"
    told: dict[str, Any] = {"search_runs": found.runs}
    if found.one_sided:
        why += (
            f"; {found.one_sided} pairs fail on one side only, which distinguishes the two sides: "
            "give --pair"
        )
        told["one_sided"] = found.one_sided
    return told | {"why_this_pair": why}


_HOW = "define it, or list a [[subject.audit]] with through_run = true."

_OF_RELEASE = (
    "a release file has no code of an author to attack: only declared queries see its rows, "
    "and this package's own audits attack the mechanisms that they use."
)


@dataclass(frozen=True)
class AuditOutcome:
    """An audit and what it was made of.

    Attributes:
        record: the evidence.
        target: what its certificate speaks of.
        name: what was attacked.
        claim: what was tested.
        rehearsal: what putting the subject's real run to the test showed; None for a function.
    """

    record: AuditRecord
    target: Target
    name: str
    claim: Claim
    rehearsal: RehearsalOutcome | None = None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Of the rehearsal."""
        return () if self.rehearsal is None else self.rehearsal.findings

    @property
    def concludes_nothing(self) -> bool:
        """Whether the search or the code left nothing to test, or too little."""
        return not {"one_sided", "untested"}.isdisjoint(self.record.details)

    @property
    def exit_code(self) -> int:
        """1 if the audit refutes what it tested, or contradicts the subject's own claim.

        Else 2 if the rehearsal found an error, if the code fails at one end of some pair alone, or
        if no event was tested, as all outputs are alike; and 0 otherwise.
        """
        own = self.target.claim
        if self.record.refuted or (own is not None and contradicts(self.record, own)):
            return 1
        if self.concludes_nothing:
            return 2
        return 2 if any(each.severity is Severity.ERROR for each in self.findings) else 0

    def to_dict(self) -> dict[str, Any]:
        """The JSON answer."""
        rehearsal = None if self.rehearsal is None else self.rehearsal.record.to_dict()
        findings = [finding.to_dict() for finding in self.findings]
        record = {"subject": self.name, "claim": self.claim.to_dict(), **self.record.to_dict()}
        return record | {"rehearsal": rehearsal, "findings": findings}

    def certificate(self) -> Certificate:
        """That of the subject, of the plan file, or of an opaque claim, with this audit.

        A rehearsal that could not be made, and that nobody asked for, is not told of.
        """
        delta = self.record.delta if self.target.claim is None else None
        made = certified(self.target, delta=delta).with_audits((self.record,))
        if self.rehearsal is None or not (self.rehearsal.record.done or self.findings):
            return made
        return made.with_rehearsal(self.rehearsal.record, self.rehearsal.findings)


# -- by name --------------------------------------------------------------------------------------


def audit(request: AuditRequest) -> AuditOutcome:
    """Attack what a request names; a subject is rehearsed too.

    Raises:
        InputError: if there is no such code, or it cannot be attacked like that.
        InconclusiveError: if it ends its process, hangs, or needs too much memory.
    """
    validate.text(target=request.target)
    if request.canaries is not None:
        made: AuditOutcome = offered("audit")["members"](request)
        return made
    found = _found(request)
    if isinstance(found, Target):
        return _audit_subject(request, found)
    return _audit_function(request, found)


def _found(request: AuditRequest) -> Target | Callable[..., Any]:
    """Find what is attacked: a subject or a function."""
    if request.command:
        return Program.of(request.target)
    if request.target.endswith(".toml"):
        is_file = Path(request.target).is_file()
        if is_file and is_release(files.read_toml(request.target, what="plan file")):
            raise InputError(_OF_RELEASE)
        raise InputError("a plan file has no code to attack; audit its subject or function.")
    find = find_target if request.through_run else find_code
    return find(request.target, request.settings)


def _audit_function(request: AuditRequest, function: Callable[..., Any]) -> AuditOutcome:
    about, told = hypothesis(request), dict[str, Any]()
    release, pair = _black_box(function, request), request.pair
    if pair is None:
        found, told = _searched(request, release, about)
        execution = replace(request.execution, seed=found.seed)
        request, pair = replace(request, execution=execution, notice=None), found.pair
    record = attack_code(request, release, pair, about.claim, about.curve, request.target)
    if request.pair is None and not record.refuted:
        told |= _limits_of_search(request, release, about, record, told.get("neighbours", ""))
    elif request.pair is not None and (apart := _apart(request.pair)):
        told["why_this_pair"] = apart
    told |= {"target": "command"} if request.command else {}
    return outcome_of(request, about, record, {**record.details, **about.details, **told})


def _black_box(function: Callable[..., Any], request: AuditRequest) -> BlackBox:
    """A function as a release, of which fields that are times are not looked at."""
    times = frozenset(name for name, kind in request.fields.items() if kind == TIME)
    return BlackBox(function, arguments=request.arguments, left_out=times)


def _searched(
    request: AuditRequest, release: BlackBox, about: Hypothesis
) -> tuple[Search, dict[str, Any]]:
    """The most promising neighbours, and what is told of them."""
    pairs, moved, told = candidates(release, about, request)
    at = about.claim.delta
    try:
        with attack_progress(request, request.target) as execution:
            found = search_pairs(release, pairs, delta=at, moved=moved, execution=execution)
    except InputError as error:
        give = "--pair" if request.data else "--pair or --data"
        tried = f"the code accepts none of {len(pairs)} pairs; give {give}. The last"
        raise InputError(f"{tried}: {error}") from None
    return found, told | search_details(found)


def _limits_of_search(
    request: AuditRequest, release: BlackBox, about: Hypothesis, record: AuditRecord, near: str
) -> dict[str, Any]:
    """Return what is told of neighbours that the search did not try, or tried in vain."""
    missing = "" if about.relation else _with_a_row_missing(request, release, about)
    if missing:
        return {"neighbours": missing, "untested": True}
    if (record.epsilon_lower or 0.0) > TELLING * about.claim.epsilon:
        return {"neighbours": near} if near else {}
    others = [] if request.data else ["--data"]
    others += [] if about.relation else ["--relation add-remove"]
    return {"neighbours": " or ".join([NOTHING_MOVED, *others]), "untested": True}


def _apart(pair: AuditPair) -> str:
    """Say in how many entries two lists differ, if in more than one neighbour's."""
    ends = [
        each.tolist() if isinstance(each, np.ndarray) else each for each in (pair.x, pair.x_prime)
    ]
    if not all(isinstance(each, list | tuple) for each in ends):
        return ""
    x, other = ([*map(repr, each)] for each in ends)
    if len(x) == len(other):
        differ = sum(map(operator.ne, x, other))
    else:
        differ = max((Counter(x) - Counter(other)).total(), (Counter(other) - Counter(x)).total())
    if differ <= 1:
        return ""
    return f"they differ in {differ} entries, so make sure that one unit can change them all"


def _with_a_row_missing(request: AuditRequest, release: BlackBox, about: Hypothesis) -> str:
    """Say that a short audit refutes the claim where a row is missing, if it does.

    Whether a row may be missing is for the claim to say, so that this is no verdict on it.
    """
    given, delta = request.execution, about.claim.delta
    look = Execution(
        runs=min(given.runs, LOOK_RUNS),
        confidence=LOOK_CONFIDENCE,
        seed=given.seed,
        timeout=given.timeout,
        memory=given.memory,
        own_randomness=given.own_randomness,
    )
    try:
        pairs, _, _ = candidates(release, replace(about, relation=AddRemove()), request)
        searching = look.updated({"runs": max(look.runs, given.runs // 2)})
        pair = search_pairs(release, pairs, delta=delta, execution=searching).pair
        record = audit_release(
            release, pair, epsilon=about.claim.epsilon, delta=delta, execution=look
        )
    except DpAuditError:
        return ""
    if not record.refuted:
        return ""
    bound = down(record.epsilon_lower or 0.0, 3)
    unit = str(about.target.plan.unit)
    one = "row" if unit == "data set" else unit
    return (
        f"no {one} is added or removed. With one {one} more or less, {look.runs} runs show "
        f"ε ≥ {bound} ({confidence(look.confidence)} confidence); if that may happen, give "
        "--relation add-remove"
    )


def _audit_subject(request: AuditRequest, target: Target) -> AuditOutcome:
    name, about = request.target, (request.plan, request.unit, request.relation, request.data)
    if any(each is not None for each in about):
        raise InputError(
            "--plan, --unit, --relation and --data are for functions; a subject has its own, "
            "so leave them out."
        )
    if request.arguments:
        raise InputError("--arg is given for a subject; set its fields with --set key=value.")
    subject, claim = on_made_up_rows(target.subject), request.tested(target.claim)
    assert subject is not None
    start = time.monotonic()
    (record,) = attack_subject(request, subject, claim, name)
    # Other numbers under test are no other claim: the certificate speaks of the subject's own.
    own = target if target.claim is not None else replace(target, claim=claim)
    seed, timeout = request.execution.seed or 0, request.execution.timeout
    rehearsal = None
    if subject.sees_rows:
        try:
            rehearsal = within_time(
                time_left(request.limit, start),
                lambda: rehearse_subject(subject, name, seed=seed, timeout=timeout),
            )
        except TrialTimeoutError:
            rehearsal = RehearsalOutcome.impossible("The time of --timeout was over.")
    return AuditOutcome(record, own, name, claim, rehearsal)


def outcome_of(
    request: AuditRequest, about: Hypothesis, record: AuditRecord, details: dict[str, Any]
) -> AuditOutcome:
    """The outcome of an attack on a function, whose record says with which arguments."""
    details |= {"arguments": {**request.arguments}} if request.arguments else {}
    return AuditOutcome(replace(record, details=details), about.target, request.target, about.claim)


# -- in a project file ----------------------------------------------------------------------------


def with_planned_audits(
    certificate: Certificate, target: Target, entry: SubjectEntry
) -> Certificate:
    """The certificate after the attacks that the project file plans.

    Where the file lists none, code is attacked once by the defaults; if no auditor can do that, the
    certificate says so among what is not covered.

    Raises:
        InputError: if a planned attack cannot be made.
    """
    claim = _tested(certificate)
    if entry.audits is None:
        if target.subject is None or not target.subject.sees_rows or claim is None:
            return certificate
        try:
            _refuse_several(target.subject)
            found = _attack_planned(entry.default_audit, target, claim, entry.name)
        except (UnsupportedError, TooFewRunsError) as error:
            missing = (*certificate.not_covered, f"{NO_AUDIT}{error}")
            return replace(certificate, not_covered=missing)
        return certificate.with_audits(found)
    records: list[AuditRecord] = []
    for number, request in enumerate(entry.audits, start=1):
        with toml_tables.within(f"audit {number}"):
            if claim is None:
                raise InputError(
                    "there is neither a claim nor a guarantee to attack; state a claim."
                )
            records += _attack_planned(request, target, claim, f"{entry.name}, audit {number}")
    return certificate.with_audits(records)


def _refuse_several(subject: Subject) -> None:
    """Several invocations, or samples, are attacked only if the subject says how."""
    uses = subject.plan().invocations
    if type(subject).audit_release is not Subject.audit_release:
        return
    if len(uses) > 1:
        raise UnsupportedError(
            f"the plan has {len(uses)} invocations, and the subject does not define audit_release; "
            f"{_HOW}"
        )
    if any(isinstance(each.mechanism, PrivateSelection) for each in uses):
        raise UnsupportedError(
            "the plan has a private selection, whose runs are secret, so that only audit_release "
            "can be attacked; define it."
        )
    if any(each.sampling for each in uses):
        raise UnsupportedError(
            f"the plan samples units; the subject does not define audit_release; {_HOW}"
        )


def _tested(certificate: Certificate) -> Claim | None:
    """Return what is attacked: the claim, or what is proved where nothing is claimed."""
    proved = certificate.guarantee
    if certificate.claim is not None:
        return certificate.claim
    if proved is None or proved.epsilon == float("inf"):
        return None
    return Claim(proved.epsilon, proved.delta, "the guarantee")


def _attack_planned(
    request: AuditRequest, target: Target, own: Claim, label: str
) -> Sequence[AuditRecord]:
    """Attack a subject, or the only mechanism of a plan, or code that is stated to be it."""
    claim = request.tested(own)
    if request.exact:
        return [_enumerate(request, target, claim)]
    if request.code is not None:
        return [_attack_stated_code(request, target.plan, claim, label)]
    if target.release is not None:
        raise InputError(_OF_RELEASE)
    if target.subject is None:
        raise InputError(
            'a plan file has no code to attack; give code = "FILE.py:function" and a pair, or '
            "exact = true."
        )
    return attack_subject(request, target.subject, claim, label)


def _attack_stated_code(request: AuditRequest, plan: Plan, claim: Claim, label: str) -> AuditRecord:
    """Attack a function that is stated to be what the plan declares."""
    assert request.code is not None
    assert request.pair is not None
    release = _black_box(load_function(request.code), request)
    curve, looser = claimed_curve(plan, claim)
    record = attack_code(request, release, request.pair, claim, curve, label)
    told = {"code": request.code, "null": null(claim, curve), "claim_looser_than_plan": looser}
    return replace(record, details={**record.details, **told})


def _enumerate(request: AuditRequest, target: Target, claim: Claim) -> AuditRecord:
    """Enumerate the outputs on each pair; the worst pair counts."""
    uses = target.plan.invocations
    if len(uses) > 1:
        raise UnsupportedError(
            f"the plan has {len(uses)} invocations; exact = true can enumerate only one mechanism."
        )
    own = () if target.subject is None else target.subject.audit_pairs()
    pairs = (request.pair,) if request.pair is not None else own or candidate_pairs(target.plan)
    records = [
        audit_exact(uses[0].mechanism, pair, epsilon=claim.epsilon, delta=claim.delta)
        for pair in pairs
    ]
    return max(records, key=lambda record: record.epsilon_lower or 0.0)


# -- at hand --------------------------------------------------------------------------------------


def attack(request: AuditRequest) -> AuditRecord:
    """Attack a subject, a mechanism or a function that the caller holds.

    Raises:
        InputError: if it cannot be attacked, or there is no pair.
    """
    target, pair = request.target, request.pair
    name = getattr(target, "__name__", type(target).__name__)
    if request.arguments and isinstance(target, Subject | Mechanism):
        raise InputError(
            f"arguments are given for {name}, which is not a function; leave them out."
        )
    if isinstance(target, Mechanism):
        _require_no_times(request)
    if isinstance(target, Subject):
        (record,) = attack_subject(request, target, request.tested(target.claim()), name)
        return record
    if pair is None:
        raise InputError("pair is missing; give two neighbouring data sets.")
    claim, release = request.tested(None), target
    if isinstance(target, Mechanism):
        declared, release = WhiteBox.of(target, pair), target.release_many
        if declared is not None:
            request = replace(request, score=(declared, *request.score))
    else:
        release = _black_box(target, request)
    return attack_code(request, release, pair, claim, claim.curve, name)


def attack_subject(
    request: AuditRequest, subject: Subject, claim: Claim, label: str
) -> list[AuditRecord]:
    """Attack what a subject releases: by its model, on each wanted pair, or through its run.

    Raises:
        InputError: if the subject cannot be attacked.
    """
    if request.through_run:
        return [audit_run(subject, label, claim, request)]
    _require_no_times(request)
    pairs: Sequence[AuditPair | None] = (request.pair,)
    if request.every_pair:
        pairs = subject.audit_pairs()
        if not pairs:
            raise InputError("every_pair is true, but the subject names no pair; give a pair.")
    found: list[AuditRecord] = []
    with attack_progress(request, label) as execution:
        if tell := execution.progress:  # of the runs on all pairs together
            execution = execution.updated(
                {"progress": lambda n, of: tell(len(found) * of + n, len(pairs) * of)}
            )
        request = replace(request, execution=execution)
        for pair in pairs:
            attack = partial(audit_subject, subject, pair, claim=claim)
            found.append(_drawn(request, label, attack))
    return found


def _require_no_times(request: AuditRequest) -> None:
    """Refuse to leave a field out of releases of which nothing may be left out."""
    if TIME in request.fields.values():
        raise InputError(
            "--field …=time leaves a field out of the output of a function; this target is "
            "not a function, so leave the option out."
        )


def attack_code(
    request: AuditRequest,
    release: Release,
    pair: AuditPair,
    claim: Claim,
    curve: Callable[[Any], Any] | None,
    label: str,
) -> AuditRecord:
    """Attack a release on a pair, as many times as a request wants.

    Raises:
        InputError: if the code cannot be attacked, or a field is declared that does not differ in
            nearly every run.
    """
    about = partial(audit_release, release, pair, epsilon=claim.epsilon, delta=claim.delta)
    return _drawn(request, label, partial(about, curve=curve, learn=learn_scores))


def _drawn(request: AuditRequest, label: str, draw: Callable[..., AuditRecord]) -> AuditRecord:
    """What is drawn with the scores and by the execution of a request, which its record tells."""
    scores = tuple(
        OutputScore(load_function(each), each.rpartition(":")[2]) if isinstance(each, str) else each
        for each in request.score
    )
    with attack_progress(request, label) as execution:
        record = draw(score=scores, stop_early=request.stop_early, execution=execution)
    unique = record.details.get("unique_fields", {})
    looked_at = {name for name, kind in request.fields.items() if kind != TIME}
    if other := looked_at - set(unique):
        named = ", ".join(unique) or "none"
        raise InputError(
            f"--field names {shown(min(other))}, which is no field that differs in nearly every "
            f"run; those that do are: {named}."
        )
    typed = [each for each in request.score if isinstance(each, str)]
    told: dict[str, Any] = {"given_score": typed[0]} if typed else {}
    if request.fields:
        told["unique_fields"] = unique | request.fields
    return replace(record, details={**record.details, **told})


@contextmanager
def attack_progress(request: AuditRequest, label: str) -> Iterator[Execution]:
    """The execution of a request, whose progress is drawn unless somebody else is told of it."""
    if request.execution.progress is not None:
        yield request.execution
        return
    with progress_bar(label) as drawn:
        told = drawn if request.notice is None else forecast(drawn, request.notice)
        yield request.execution.updated({"progress": told})
