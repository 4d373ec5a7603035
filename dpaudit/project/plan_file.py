"""Plans written as TOML: data only; reading one imports and runs nothing.

::

    [plan]
    unit = "row"
    relation = "add-remove"
    trust = "central"

    [claim]                     # optional
    epsilon = 1.0               # or advantage = 0.1; or tpr = 0.1, fpr = 0.01; or success = 0.6,
    delta = 1e-5                # prior = 0.5; or mu = 1.0; or rho = 0.5; or curve = [[ε, δ], …]

    [[invocation]]
    mechanism = "gaussian"
    sigma = 4.0
    sensitivity = 1.0           # under the relation; or: contribution = 1.0, the norm of one record
    count = 10
    sampling = { scheme = "poisson", rate = 0.01 }

Of a private selection, ``[[invocation.run]]`` declares each invocation of one run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fractions import Fraction
from pathlib import Path
from typing import Any

from dpaudit.base import files, toml_tables, validate
from dpaudit.base.errors import InputError
from dpaudit.base.finding_table import FindingTable
from dpaudit.base.validate import shown
from dpaudit.certificate import Claim, Finding
from dpaudit.mechanisms import Mechanism, Norm
from dpaudit.mechanisms.rounding import round_up
from dpaudit.plan import (
    Contribution,
    Invocation,
    Plan,
    PoissonSampling,
    PrivacyUnit,
    PrivateSelection,
    Relation,
    Sampling,
    TrustModel,
)
from dpaudit.project.describing import example_of

_found = FindingTable(__name__)

_DEFAULTS = {"unit": "row", "trust": "central"}
_ASSUMED = {"unit": "assumed-unit", "trust": "assumed-trust"}
_OF_INVOCATION = {"sensitivity", "contribution", "count", "total", "group", "sampling", "at"}


@dataclass(frozen=True)
class PlanFile:
    """The content of a plan file.

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
    return read_plan(files.read_toml(path, what="plan file"))


def is_release(content: Mapping[str, Any]) -> bool:
    """Whether the tables of a file declare queries over a table, and no plan."""
    return bool({"data", "query"} & content.keys())


def read_plan(content: Mapping[str, Any]) -> PlanFile:
    """Return what the tables of a plan file say.

    Raises:
        InputError: as :func:`read_plan_file`.
    """
    if is_release(content):
        raise InputError(
            "it is a release file, not a plan: its noise is already the least for its claim, "
            "as dpaudit release FILE --plan shows."
        )
    content = toml_tables.table("plan file", content, ("plan", "claim", "invocation"))
    if "plan" not in content:
        raise InputError(
            'plan file has no [plan]; add it, such as [plan] with relation = "add-remove".'
        )
    with toml_tables.with_example('unit = "row", relation = "add-remove", trust = "central"'):
        facts = toml_tables.table("plan", content.get("plan"), ("unit", "relation", "trust"))
    if "relation" not in facts:
        raise InputError("plan lacks the key 'relation', such as \"add-remove\"; add it.")
    items = toml_tables.tables("invocation", content.get("invocation", []))
    if not items:
        raise InputError(
            "plan file has no [[invocation]]; it must declare at least one, for example: "
            f"[[invocation]] with {_EXAMPLE}."
        )
    said = {name: facts.get(name, default) for name, default in _DEFAULTS.items()}
    with toml_tables.with_example('relation = { kind = "metric-ball", radius = 2.0 }'):
        relation = Relation.parse(facts["relation"])
    reader = _Reader(
        unit=PrivacyUnit.from_dict(said["unit"]),
        relation=relation,
        trust=validate.member(TrustModel, trust=said["trust"]),
    )
    invocations = []
    findings = [_found(rule) for name, rule in _ASSUMED.items() if name not in facts]
    for number, item in enumerate(items, start=1):
        place = f"invocation {number}"
        with toml_tables.within(place), _with_cost():
            invocation, found = reader.invocation(item, place)
        invocations.append(invocation)
        findings += found
    claim = Claim.from_dict(content["claim"]) if "claim" in content else None
    first: dict[str, Finding] = {}  # of each rule: a long plan needs no thousand lines
    for finding in findings:
        first.setdefault(finding.rule, finding)
    return PlanFile(Plan.of(*invocations), claim, tuple(first.values()))


@dataclass(frozen=True)
class _Reader:
    """Reads invocations that share unit, relation and trust model."""

    unit: PrivacyUnit
    relation: Relation
    trust: TrustModel

    def invocation(self, item: object, place: str) -> tuple[Invocation, list[Finding]]:
        if not isinstance(item, Mapping):
            raise InputError(f"it is {shown(item)}; it must be a table.")
        with toml_tables.with_example(_EXAMPLE):
            for near in get_close_matches("mechanism", item, n=1):
                if near != "mechanism":
                    raise toml_tables.KeysError(
                        f"{shown(near)} is unknown; did you mean 'mechanism'?"
                    )
            known = Mechanism.named(item.get("mechanism"))
        with toml_tables.with_example(_example(known)):
            given = toml_tables.table(
                known.kind, item, {"mechanism", *_OF_INVOCATION, *known.keys()}
            )
            own = {name: given.pop(name) for name in _OF_INVOCATION & given.keys()}
            findings: list[Finding] = []
            if known is PrivateSelection:
                given["run"], findings = self.run(given.get("run", []), place)
            mechanism = Mechanism.parse({"kind": given.pop("mechanism")} | given)
        if "sampling" in own:
            scheme = drawn.get("scheme") if isinstance(drawn := own["sampling"], Mapping) else ""
            example = example_of(Sampling.kinds().get(str(scheme), PoissonSampling))
            with toml_tables.with_example(f"sampling = {toml_tables.inline(example)}"):
                own["sampling"] = Sampling.parse(own["sampling"])
        sensitivity, found = self._sensitivity(mechanism, own, place)
        return (
            Invocation(mechanism, sensitivity, self.unit, self.relation, self.trust, **own),
            [*findings, *found],
        )

    def run(self, items: object, place: str) -> tuple[dict[str, Any], list[Finding]]:
        """The plan of one run of a selection, of the same unit, relation and trust model."""
        parts = []
        for number, item in enumerate(toml_tables.tables("run", items), start=1):
            with toml_tables.within(f"run {number}"):
                parts.append(self.invocation(item, f"{place}, run {number}"))
        if not parts:
            raise InputError("run is empty; give the releases of one run, as [[invocation.run]].")
        plan = Plan.of(*(invocation for invocation, _ in parts))
        return plan.to_dict(), [finding for _, found in parts for finding in found]

    def _sensitivity(
        self, mechanism: Mechanism, own: dict[str, Any], place: str
    ) -> tuple[float, list[Finding]]:
        """Declared, or following from a contribution, or from the clip of a single release.

        A clip bounds the value, not what one unit adds to it, so that any change may move the value
        from end to end; only under local trust is it the unit's own, of which zero-out leaves 0.
        """
        contribution = own.pop("contribution", None)
        if isinstance(contribution, Mapping):
            with toml_tables.with_example("contribution = { bound = 1.0, rows = 5 }"):
                own["contribution"] = Contribution.from_dict(contribution)
            contribution = own["contribution"].bound
        if "sensitivity" in own:
            if contribution is not None:
                raise InputError("sensitivity and contribution are both given; keep one of them.")
            sensitivity = validate.non_negative(sensitivity=own.pop("sensitivity"))
            doubtful = self.relation.replaces and mechanism.norm is not Norm.CHANGE
            found = [_found("sensitivity-under-replace-one", place, sensitivity=sensitivity)]
            return sensitivity, found if doubtful else []
        factor = self.relation.contribution_factor
        if contribution is not None:
            bound = validate.positive(contribution=contribution)
            drawn = own.get("sampling")
            if isinstance(drawn, PoissonSampling) and self.relation.replaces:
                own["sampling"] = replace(drawn, contribution=drawn.contribution or bound)
            return round_up(Fraction(factor) * Fraction(bound)), []
        if mechanism.norm is Norm.CHANGE:
            return 1.0, []  # whatever changes
        implied = mechanism.implied_sensitivity(factor if self.trust is TrustModel.LOCAL else 2.0)
        if implied is None:
            raise InputError(
                f"{mechanism.kind} lacks the key 'sensitivity'; write sensitivity = 1.0 for the "
                f"largest change of the value in {mechanism.norm} under {self.relation}, or "
                "contribution = 1.0 for the largest norm of what one unit adds to a sum."
            )
        return implied, [_found("sensitivity-from-clip", place, sensitivity=implied)]


_EDGES = {
    "(sigma|scale|scales|p|lie) is 0": "because without noise ε is infinite",
    "epsilon is 0": "because at ε = 0 nothing depends on the data: leave it out",
    "(rate|rates|size) is 0": "because a sample without units costs nothing: leave it out",
    "(count|times) is 0": "because what never happens costs nothing: leave it out",
    "k is 1": "because with one possible answer nothing is revealed: leave it out",
}
"""What is no mechanism, and what it would cost."""


@contextmanager
def _with_cost() -> Iterator[None]:
    """End errors of a number at an edge with what that would cost."""
    try:
        yield
    except InputError as error:
        text = str(error)
        cost = next((c for edge, c in _EDGES.items() if re.match(rf"{edge}(\.0)?;", text)), None)
        if cost is None:
            raise
        raise InputError(f"{text.removesuffix('.')}, {cost}.") from None


_EXAMPLE = 'mechanism = "gaussian", sigma = 8.0, sensitivity = 1.0 (`dpaudit list` has all)'


def _example(kind: type[Mechanism]) -> str:
    """Return what an invocation of that mechanism needs, in the order of the file."""
    own = example_of(kind)
    given = {"mechanism": own.pop("kind"), **own, "sensitivity": 1.0}
    text = ", ".join(f"{name} = {toml_tables.inline(value)}" for name, value in given.items())
    return f"{text} (`dpaudit list {kind.kind}` has all keys)"
