"""Findings that follow from a plan alone."""

from __future__ import annotations

from dpaudit.claim import Finding, Severity
from dpaudit.mechanisms import Opaque
from dpaudit.plan import Plan

__all__ = ["FLOAT_NOISE", "plan_findings"]

FLOAT_NOISE = "float-noise"
"""Rule of the finding that a noise backend with exact samplers removes."""


def plan_findings(plan: Plan) -> tuple[Finding, ...]:
    """What every reader of a certificate of this plan must know, in a fixed order."""
    findings = []
    continuous = [i for i in plan.invocations if i.mechanism.real_valued]
    if continuous:
        findings.append(
            _float_noise(", ".join(dict.fromkeys(i.mechanism.kind for i in continuous)))
        )
    opaque = [i for i in plan.invocations if isinstance(i.mechanism, Opaque)]
    findings += [
        Finding(
            "opaque-mechanism",
            Severity.WARNING,
            f"{i.mechanism.label!r} is stated to be (ε = {i.mechanism.epsilon:g}, "
            f"δ = {i.mechanism.delta:g})-private without a proof that an accountant can check.",
            "Replace it by a mechanism with a proof.",
            i.at,
        )
        for i in opaque
        if isinstance(i.mechanism, Opaque)
    ]
    return tuple(findings)


def _float_noise(kinds: str) -> Finding:
    """The guarantee speaks of real numbers, the samples are floats (Mironov 2012)."""
    return Finding(
        FLOAT_NOISE,
        Severity.WARNING,
        f"The guarantee holds for real-valued noise ({kinds}); samples drawn in floating point can "
        "reveal the value through their least significant bits.",
        "Deploy with a discrete mechanism or with a sampler that is exact on a grid.",
    )
