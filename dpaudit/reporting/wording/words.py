"""The terms of a plan in words that a non-expert understands."""

from __future__ import annotations

import tomllib
from collections import Counter
from importlib import resources
from typing import Any

from dpaudit.base.numbers import plain
from dpaudit.certificate import Certificate, Claim
from dpaudit.mechanisms import Opaque
from dpaudit.plan import Plan, PrivacyUnit, Relation, TrustModel

_WORDS: dict[str, dict[str, Any]] = tomllib.loads(
    resources.files("dpaudit.reporting.wording").joinpath("words.toml").read_text("utf-8")
)
# What each table says, and where, stands above it in words.toml.
ASSUMPTIONS: dict[str, dict[str, str]] = _WORDS["assumptions"]
TRUST: dict[str, str] = _WORDS["trust"]
TRUSTED: dict[str, str] = _WORDS["trusted"]
STANDINGS: str = _WORDS["standings"]["all"]
ACCOUNTANTS: dict[str, str] = _WORDS["accountants"]
PROTECTION: str = _WORDS["protection"]["all"]
RELEASE: str = _WORDS["release"]["all"]
RESULTS: str = _WORDS["release"]["results"]
OUTSIDE: str = _WORDS["release"]["outside"]
OWNER: str = _WORDS["owner"]["all"]
TWO_BOUNDS: str = _WORDS["protection"]["two-bounds"]
SEAL: dict[str, str] = _WORDS["seal"]
CARD: dict[str, str] = _WORDS["card"]
SEVERITIES: dict[str, str] = _WORDS["severities"]
FINDINGS: str = _WORDS["findings"]["all"]
STATEMENT: dict[str, str] = _WORDS["statement"]
RULES: dict[str, dict[str, str]] = _WORDS["rules"]


def stated(claim: Claim) -> str:
    """A claim in its own numbers.

    >>> stated(Claim(12.649110640673518, 1e-5)), stated(Claim.of(advantage=0.1))
    ('ε = 12.6491, δ = 1e-05', 'advantage ≤ 0.1')
    """
    if claim.risk is not None:
        return str(claim)
    return f"ε = {plain(claim.epsilon)}, δ = {plain(claim.delta)}"


def adversary(trust: TrustModel) -> str:
    """Tell who is guessing: the start of a sentence."""
    said: str = _WORDS["adversary"][trust]
    return said


def trusted(plan: Plan) -> tuple[str, ...]:
    """Tell who has to be trusted for the whole plan, and what the adversary sees."""
    counted = Counter(invocation.trust for invocation in plan.invocations)
    whole = TRUST[plan.trust]
    if len(counted) == 1:
        return (whole,)
    parts = ", ".join(f"{number} {trust}" for trust, number in counted.items())
    return (
        f"The {counted.total()} invocations have different trust models ({parts}); together they "
        f"promise no more than the weakest of these, {plan.trust}.",
        whole,
    )


def secret(relation: Relation) -> str:
    """Return what is being guessed, as it follows on "a guess about"."""
    return _of_relation("secret", relation)


_BOX = Opaque.kind
_NO_UNIT = PrivacyUnit("data set")
"""What an audit of code is about where nobody named a unit."""


def is_named(unit: PrivacyUnit) -> bool:
    """Tell whether somebody named a privacy unit."""
    return unit != _NO_UNIT


def protected(unit: PrivacyUnit) -> str:
    """Tell who is protected."""
    if not is_named(unit):
        return "nobody in particular: no privacy unit was named"
    return f"one {unit} (privacy unit)"


def neighbours(relation: Relation, unit: PrivacyUnit) -> str:
    """Tell which data sets the guarantee makes hard to tell apart."""
    if not is_named(unit):
        said: str = _WORDS["neighbours"]["no-unit"]
        return said
    return _of_relation("neighbours", relation, unit)


def _of_relation(table: str, relation: Relation, unit: PrivacyUnit | None = None) -> str:
    said: dict[str, str] = _WORDS[table]
    radius = plain(getattr(relation, "radius", 0.0))
    return said.get(relation.kind, said["other"]).format(
        unit=unit, relation=relation, radius=radius
    )


def published(certificate: Certificate) -> tuple[str, ...]:
    """Return what the adversary sees: each declared query, or one line for a kind of mechanism."""
    if certificate.release is not None:
        return certificate.release.queries
    releases, passed = Counter[str](), Counter[str]()
    filtered = certificate.filtered
    for invocation in certificate.plan.invocations:
        kind = invocation.mechanism.kind
        releases[kind] += invocation.releases
        passed[kind] += filtered.admitted.get(invocation.at, 0) if filtered else 0
    return tuple(
        (f"{passed[kind]} of at most " if filtered else "")
        + f"{number} {'release' if number == 1 else 'releases'} by {_named(kind)}"
        for kind, number in releases.items()
    )


def _named(kind: str) -> str:
    if kind == _BOX:
        return "a black box, of which only a bound is stated"
    return f"the mechanism {kind}"
