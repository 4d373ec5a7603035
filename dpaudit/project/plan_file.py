"""Plans written as TOML: data only; reading one imports and runs nothing.

::

    [plan]
    unit = "row"
    relation = "add-remove"
    trust = "central"

    [claim]                     # optional
    epsilon = 1.0
    delta = 1e-5

    [[invocation]]
    mechanism = "gaussian"
    sigma = 4.0
    sensitivity = 1.0           # under the relation; or: contribution = 1.0, the norm of one record
    count = 10
    sampling = { scheme = "poisson", rate = 0.01 }
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpaudit import files, validate
from dpaudit.certificate import Claim, Finding, Severity
from dpaudit.errors import InputError
from dpaudit.mechanisms import Mechanism, Norm
from dpaudit.plan import Invocation, Plan, PrivacyUnit, Relation, ReplaceOne, Sampling, TrustModel

__all__ = ["PlanFile", "read_plan_file"]

_OF_INVOCATION = {"sensitivity", "contribution", "count", "total", "group", "sampling", "at"}


@dataclass(frozen=True)
class PlanFile:
    """What a plan file says.

    Attributes:
        plan: the declared invocations.
        claim: what is stated, if anything.
        findings: assumptions that reading it made.
    """

    plan: Plan
    claim: Claim | None
    findings: tuple[Finding, ...]


def read_plan_file(path: Path | str) -> PlanFile:
    """Read a TOML plan.

    Raises:
        InputError: naming the first field that is unknown, missing or invalid.
    """
    table = files.read_toml(path, what="plan file")
    _known("plan file", table, {"plan", "claim", "invocation"})
    facts = _table("plan", table.get("plan"))
    _known("plan", facts, {"unit", "relation", "trust"})
    if "relation" not in facts:
        raise InputError("plan lacks the field 'relation', such as \"add-remove\"; add it.")
    items = table.get("invocation", [])
    if not isinstance(items, list) or not items:
        raise InputError("plan file has no [[invocation]]; it must declare at least one.")
    reader = _Reader(
        unit=PrivacyUnit(facts.get("unit", "row")),
        relation=Relation.parse(facts["relation"]),
        trust=TrustModel.parse(facts.get("trust", "central")),
    )
    invocations, findings = [], []
    for number, item in enumerate(items, start=1):
        place = f"invocation {number}"
        try:
            invocation, found = reader.invocation(_table(place, item), place)
        except InputError as error:
            raise InputError(f"{place}: {error}") from None
        invocations.append(invocation)
        findings += found
    claim = Claim.from_dict(_table("claim", table["claim"])) if "claim" in table else None
    return PlanFile(Plan.of(*invocations), claim, _merged(findings))


def _table(name: str, value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError(f"{name} is {value!r:.60}; it must be a table.")
    return dict(value)


def _known(name: str, table: Mapping[str, Any], fields: set[str]) -> None:
    for unknown in table.keys() - fields:
        raise InputError(f"{name} has an unknown key {unknown!r}; it takes {sorted(fields)}.")


def _merged(findings: list[Finding]) -> tuple[Finding, ...]:
    """One finding a rule, naming the first place: a long plan needs no thousand lines."""
    first: dict[str, Finding] = {}
    for finding in findings:
        first.setdefault(finding.rule, finding)
    return tuple(first.values())


@dataclass(frozen=True)
class _Reader:
    """Reads invocations that share unit, relation and trust model."""

    unit: PrivacyUnit
    relation: Relation
    trust: TrustModel

    def invocation(self, item: dict[str, Any], place: str) -> tuple[Invocation, list[Finding]]:
        own = {name: item.pop(name) for name in _OF_INVOCATION & item.keys()}
        item["kind"] = item.pop("mechanism", None)
        if "clip" in item and isinstance(item["clip"], list):
            item["clip"] = tuple(item["clip"])
        mechanism = Mechanism.from_dict(item)
        sensitivity, findings = self._sensitivity(mechanism, own, place)
        if "sampling" in own:
            own["sampling"] = Sampling.parse(own["sampling"])
        return (
            Invocation(mechanism, sensitivity, self.unit, self.relation, self.trust, **own),
            findings,
        )

    def _sensitivity(
        self, mechanism: Mechanism, own: dict[str, Any], place: str
    ) -> tuple[float, list[Finding]]:
        """Declared, or following from a contribution or a clip, or (said aloud) assumed."""
        factor = self.relation.contribution_factor
        contribution = own.pop("contribution", None)
        if "sensitivity" in own:
            if contribution is not None:
                raise InputError("sensitivity and contribution are both given; keep one of them.")
            sensitivity = validate.non_negative(sensitivity=own.pop("sensitivity"))
            doubtful = isinstance(self.relation, ReplaceOne) and mechanism.norm is not Norm.CHANGE
            return sensitivity, [_read_under_relation(sensitivity, place)] if doubtful else []
        if contribution is not None:
            return factor * validate.non_negative(contribution=contribution), []
        implied = mechanism.implied_sensitivity(factor)
        if implied is not None:
            return implied, []
        assumed = 1.0 if mechanism.norm is Norm.CHANGE else factor
        return assumed, [_assumed(assumed, place)]


def _read_under_relation(sensitivity: float, place: str) -> Finding:
    return Finding(
        "sensitivity-under-replace-one",
        Severity.NOTE,
        f"Sensitivity {sensitivity:g} is read as the largest change when one unit is replaced. If "
        "it is the norm of one unit's contribution, the change can be twice as large.",
        "State contribution instead of sensitivity where the norm of one contribution is meant.",
        place,
    )


def _assumed(sensitivity: float, place: str) -> Finding:
    return Finding(
        "assumed-sensitivity",
        Severity.WARNING,
        f"No sensitivity is declared; one unit is assumed to contribute norm 1, which makes it "
        f"{sensitivity:g} under the relation.",
        "Declare sensitivity or contribution.",
        place,
    )
