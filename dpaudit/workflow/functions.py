"""What is tested of a bare function, and the most promising neighbours to test it on."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeAlias

import numpy as np

from dpaudit.accounting import guarantee, privacy_curve
from dpaudit.auditing import BlackBox
from dpaudit.auditing.subjects.declared import null
from dpaudit.auditing.subjects.neighbours import Search, around, patterns
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.certificate import Claim, SubjectRecord
from dpaudit.certificate.claim import USUAL_DELTA
from dpaudit.mechanisms import Opaque
from dpaudit.plan import (
    AddRemove,
    Invocation,
    Plan,
    PrivacyUnit,
    Relation,
    ReplaceOne,
    TrustModel,
    ZeroOut,
)
from dpaudit.project import AuditPair
from dpaudit.project.audit_request import EACH, AuditRequest
from dpaudit.project.data_files import read_data
from dpaudit.project.plan_file import read_plan_file
from dpaudit.project.targets import Target
from dpaudit.rehearsal.constants import literals
from dpaudit.rehearsal.neighbours import derive_neighbours

Moved: TypeAlias = Callable[[AuditPair, np.random.Generator], AuditPair]
MOST_PAIRS = 60
CONSTANTS = 8
ONE_MOVES = "one number moves by 1; if all may, as answers to queries do, give --relation each"
ALL_MOVE = "each number may move by 1"


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
                "--plan is given with a claim, --unit or --relation, which it states; keep one."
            )
        return _by_plan(record, request.plan, request.delta)
    if claim is None:
        raise InputError("--epsilon is missing; give the claimed ε, another --claim, or --plan.")
    opaque = Opaque(record.name[:80], claim.epsilon, claim.delta)
    about = PrivacyUnit("data set" if unit is None else unit), near or ReplaceOne()
    declared = Plan.of(Invocation(opaque, 1.0, *about, TrustModel.CENTRAL, at="release"))
    details = {"null": null(claim, claim.curve), "target": "function", "unit": str(about[0])}
    details["relation"] = about[1].to_dict()
    return Hypothesis(claim, claim.curve, Target(record, declared, claim, (), ()), near, details)


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
        raise InputError(f"--plan {path} bounds nothing ({error}); give a claim.") from None
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
        return pairs, None, {"data": request.data}
    constants = islice(literals(getattr(release.function, "__code__", None)), CONSTANTS)
    # Moved, a missing or a zeroed entry would be another size.
    moved = None if isinstance(relation, AddRemove | ZeroOut) else around
    told = {} if relation is not None else {"neighbours": ALL_MOVE if each else ONE_MOVES}
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
        kinds = ", ".join(sorted(found.raised)) or "what is no answer"
        why += f" ({refused} of {number} pairs made the code raise {kinds}; less was searched)"
    told: dict[str, Any] = {"search_runs": found.runs}
    if found.one_sided:
        why += f"; {found.one_sided} fail at one end alone, which tells the ends apart: give --pair"
        told["one_sided"] = found.one_sided
    return told | {"why_this_pair": why}
