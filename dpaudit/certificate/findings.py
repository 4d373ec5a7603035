"""Findings that follow from a plan alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

from dpaudit.accounting.amplification import fallback
from dpaudit.certificate.claim import Claim, Finding, Severity
from dpaudit.errors import UnsupportedError
from dpaudit.mechanisms import Opaque
from dpaudit.plan import Plan, ZeroOut
from dpaudit.validate import shown

__all__ = ["FLOAT_NOISE", "LARGE_DELTA", "delta_findings", "float_samplers", "plan_findings"]

FLOAT_NOISE = "float-noise"
"""Rule of the finding that a noise backend with exact samplers removes."""

LARGE_DELTA = 0.1
"""From this δ on a statement is near to trivial: whoever publishes the whole data set with
probability δ keeps (0, δ). NIST SP 800-226 asks for δ below 1/n, which from here on fails for every
data set of ten units or more."""

_LARGE_EPSILON = 500.0
"""From here on an ε promises nothing."""


def delta_findings(claim: Claim | None, delta: float) -> tuple[Finding, ...]:
    """What is to be said of a claim, or a guarantee at ``delta``, that protects hardly anybody.

    A warning for a δ. A note for a claim of a risk that some published data sets do not exceed.

    >>> delta_findings(Claim(1.0, 1e-6), 1e-6)
    ()
    >>> [finding.rule for finding in delta_findings(Claim(0.0, 0.999), 0.999)]
    ['large-delta']
    """
    stated = {} if claim is None or claim.risk is not None else {claim.delta: "The claim"}
    stated.setdefault(delta, "The guarantee")
    found = [
        Finding(
            "large-delta",
            Severity.WARNING,
            f"{what} has δ = {value:g}: an algorithm that publishes the whole data set with "
            f"probability {value:g}, and else nothing, keeps ε = 0 at this δ.",
            "State a δ well below 1/n for n units.",
        )
        for value, what in stated.items()
        if value >= LARGE_DELTA
    ]
    left = 0.0 if claim is None or claim.risk is None else claim.implied.delta(_LARGE_EPSILON).upper
    if left >= LARGE_DELTA:
        found.append(
            Finding(
                "claim-allows-exposure",
                Severity.NOTE,
                f"The claim ({claim}) is kept by an algorithm that publishes the whole data set "
                f"with probability {left:.6g}, and else nothing.",
                "Read it together with the guarantee, whose δ says how likely that is.",
            )
        )
    return tuple(found)


def float_samplers(names: Iterable[str]) -> list[str]:
    """Those that draw in floating point, of the samplers that a ledger names."""
    return [name for name in names if name.startswith("numpy")]


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
            f"{shown(i.mechanism.label)} is stated to be (ε = {i.mechanism.epsilon:g}, "
            f"δ = {i.mechanism.delta:g})-private without a proof that an accountant can check.",
            "Replace it by a mechanism with a proof.",
            i.at,
        )
        for i in opaque
        if isinstance(i.mechanism, Opaque)
    ]
    return (*findings, *_sums(plan), *_fallbacks(plan))


def _sums(plan: Plan) -> Iterator[Finding]:
    """Samples under zero-out whose amplification takes the value for a sum; the first of them."""
    for each in plan.invocations:
        sampled = each.sampling is not None and isinstance(each.relation, ZeroOut)
        if sampled and each.mechanism.zeroed_is_absent and each.contribution is None:
            yield Finding(
                "zeroed-as-absent",
                Severity.WARNING,
                "Samples are amplified as if a unit that is not drawn added what a zeroed one "
                "adds, which holds of sums. Of a mean by the number drawn it does not.",
                "Release a sum, with a declared contribution where the ledger is to bound it.",
                each.at,
            )
            return


def _fallbacks(plan: Plan) -> Iterator[Finding]:
    """What costs more than it might, as declared; the first invocation of each kind."""
    known = set()
    for invocation in plan.invocations:
        with suppress(UnsupportedError):
            found = fallback(invocation)
            if found is not None and found not in known:
                known.add(found)
                yield Finding("counted-as-more", Severity.NOTE, *found, invocation.at)


def _float_noise(kinds: str) -> Finding:
    """The guarantee speaks of real numbers, the samples are floats (Mironov 2012)."""
    return Finding(
        FLOAT_NOISE,
        Severity.WARNING,
        f"The guarantee holds for real-valued noise ({kinds}); samples drawn in floating point can "
        "reveal the value through their least significant bits.",
        "Deploy with a discrete mechanism or with a sampler that is exact on a grid.",
    )
