"""What is tested of a bare function, and on which neighbours."""

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
from dpaudit.auditing.subjects.neighbours import Search
from dpaudit.auditing.subjects.patterns import around, patterns
from dpaudit.base import files, toml_tables
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
from dpaudit.project.data_files import read_data
from dpaudit.project.plan_file import read_plan_file
from dpaudit.project.targets import Target
from dpaudit.rehearsal.constants import literals
from dpaudit.rehearsal.neighbours import derived

Moved: TypeAlias = Callable[[AuditPair, np.random.Generator], AuditPair]
MOST_PAIRS = 60
CONSTANTS = 8
EACH = "each"
"""In place of a relation: every number may move by 1, as answers to queries do."""
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


def hypothesis(
    record: SubjectRecord,
    claim: Claim | None,
    delta: float | None = None,
    *,
    plan: str | None = None,
    unit: str | None = None,
    relation: Relation | None = None,
) -> Hypothesis:
    """What is tested of a function: a claim, or all that a plan file says.

    Args:
        record: names the function.
        claim: what is stated.
        delta: at which ε is bounded too, of a plan file; that of its claim where not given.
        plan: path of a plan file, whose whole curve δ(ε) is tested in place of a claim.
        unit: who is protected, in a word.
        relation: which data sets are neighbours.

    Raises:
        InputError: if there is neither a claim nor a plan, or both; or the plan bounds nothing.
    """
    if plan is not None:
        if claim is not None or unit is not None or relation is not None:
            raise InputError(
                "--plan is given with a claim, --unit or --relation, which it states; keep one."
            )
        return _by_plan(record, plan, delta)
    if claim is None:
        raise InputError("--epsilon is missing; give the claimed ε, another --claim, or --plan.")
    opaque = Opaque(record.name[:80], claim.epsilon, claim.delta)
    about = PrivacyUnit("data set" if unit is None else unit), relation or ReplaceOne()
    declared = Plan.of(Invocation(opaque, 1.0, *about, TrustModel.CENTRAL, at="release"))
    details = {"null": null(claim, claim.curve), "target": "function", "unit": str(about[0])}
    details["relation"] = about[1].to_dict()
    return Hypothesis(
        claim, claim.curve, Target(record, declared, claim, (), ()), relation, details
    )


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


def parse_relation(text: str | None, *, each: bool = False) -> Relation | None:
    """A relation by its kind, or JSON; None where there is none, or ``each`` where that is known.

    >>> str(parse_relation("add-remove")), parse_relation('{"kind": "metric-ball", "radius": 2}')
    ('add-remove', MetricBall(radius=2.0))

    Raises:
        InputError: if there is no such relation.
    """
    if text is None or (each and text == EACH):
        return None
    given = files.parse_json(text, what="--relation") if text.startswith("{") else text
    with toml_tables.with_example(
        '--relation add-remove, or \'{"kind": "metric-ball", "radius": 2}\''
    ):
        if each and given is text:
            toml_tables.chosen((*Relation.kinds(), EACH), relation=text)
        return Relation.parse(given)


def candidates(
    release: BlackBox, about: Hypothesis, data: str | None, *, each: bool = False
) -> tuple[list[AuditPair], Moved | None, dict[str, Any]]:
    """Neighbours of some data, or patterns of numbers.

    Args:
        release: the code under attack.
        about: says which data sets are neighbours; its unit is the column with a row's owner.
        data: a file; its neighbours hold values that occur in it.
        each: whether all numbers of a pattern may move; without a relation, one does.

    Returns:
        The pairs, what makes others of good ones, and what is told of them.

    Raises:
        InputError: if the file cannot be read or has no neighbours.
    """
    relation = about.relation
    if data is not None:
        unit = str(about.target.plan.unit)
        return _of_data(data, relation or ReplaceOne(), unit), None, {"data": data}
    constants = islice(literals(getattr(release.function, "__code__", None)), CONSTANTS)
    # Moved, a missing or a zeroed entry would be another size.
    moved = None if isinstance(relation, AddRemove | ZeroOut) else around
    told = {} if relation is not None else {"neighbours": ALL_MOVE if each else ONE_MOVES}
    near = relation if each else relation or ReplaceOne()
    return list(patterns(near, constants)), moved, told


def told_of(found: Search) -> dict[str, Any]:
    """What a search says of its pair, for the record."""
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


def _of_data(path: str, relation: Relation, unit: str) -> list[AuditPair]:
    data = read_data(path)
    moves = derived(data, relation, "row" if unit == "data set" else unit, np.random.default_rng(0))
    near = islice((move for move in moves if not move.extreme), MOST_PAIRS)
    bases = ((data if move.base is None else move.base, move) for move in near)
    pairs = [AuditPair(base, move.data, move.recipe) for base, move in bases]
    if not pairs:
        raise InputError(f"--data {path} has no neighbours under {relation}; give --pair.")
    return pairs
