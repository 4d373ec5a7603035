"""What is tested of a bare function: a claim, or all that a plan file says of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dpaudit import files, tables
from dpaudit.accounting import guarantee, privacy_curve
from dpaudit.auditing.subjects.declared import null
from dpaudit.certificate import Claim, SubjectRecord
from dpaudit.certificate.claim import USUAL_DELTA
from dpaudit.errors import InputError, UnsupportedError
from dpaudit.mechanisms import Opaque
from dpaudit.plan import Invocation, Plan, PrivacyUnit, Relation, ReplaceOne, TrustModel
from dpaudit.project.plan_file import read_plan_file
from dpaudit.project.targets import Target

__all__ = ["Hypothesis", "hypothesis", "parse_relation"]


@dataclass(frozen=True)
class Hypothesis:
    """The null hypothesis of an attack on a function, and what its certificate speaks of.

    Attributes:
        claim: whose ε and δ are tested too.
        curve: the claimed δ(ε), where more is claimed than one point.
        target: the plan; without one, an opaque mechanism that claims what is tested.
        plan: path of the plan file, if there is one.
    """

    claim: Claim
    curve: Callable[[Any], Any] | None
    target: Target
    plan: str | None = None

    @property
    def details(self) -> dict[str, Any]:
        """For the record."""
        declared = self.target.plan
        said: dict[str, Any] = {"null": null(self.claim, self.curve), "target": "function"}
        if self.plan is not None:
            return said | {"plan": self.plan}
        return said | {"unit": str(declared.unit), "relation": declared.relation.to_dict()}


def hypothesis(
    name: str,
    claim: Claim | None,
    delta: float | None,
    *,
    plan: str | None = None,
    unit: str | None = None,
    relation: Relation | None = None,
) -> Hypothesis:
    """What is tested of a function.

    Args:
        name: of the function.
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
                "--plan is given with a claim, --unit or --relation, which the plan states; leave "
                "them out."
            )
        return _by_plan(name, plan, delta)
    if claim is None:
        raise InputError(
            "--epsilon is missing; give the claimed ε that is to be tested, another --claim, or "
            "--plan FILE."
        )
    opaque = Opaque(name[:80], claim.epsilon, claim.delta)
    about = PrivacyUnit("data set" if unit is None else unit), relation or ReplaceOne()
    declared = Plan.of(Invocation(opaque, 1.0, *about, TrustModel.CENTRAL, at="release"))
    return Hypothesis(claim, claim.curve, Target(SubjectRecord(name), declared, claim, (), ()))


def _by_plan(name: str, path: str, delta: float | None) -> Hypothesis:
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
    point = Claim(proved.epsilon, delta, "the plan")
    target = Target(SubjectRecord(name), plan, claim, content.findings, ())
    return Hypothesis(point, curve, target, path)


def parse_relation(text: str | None) -> Relation | None:
    """A relation by its kind, or as JSON with its parameters; None where there is no text.

    >>> str(parse_relation("add-remove")), parse_relation('{"kind": "metric-ball", "radius": 2}')
    ('add-remove', MetricBall(radius=2.0))

    Raises:
        InputError: if there is no such relation.
    """
    if text is None:
        return None
    given = files.parse_json(text, what="--relation") if text.startswith("{") else text
    with tables.exemplified('--relation add-remove, or \'{"kind": "metric-ball", "radius": 2}\''):
        return Relation.parse(given)
