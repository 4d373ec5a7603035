"""Findings that follow from a plan alone, and from the record of a run.

``certify`` makes those of a plan, which depend on it, the claim and δ alone, and stand in a fixed
order; a run adds how its noise was drawn. ``verify`` makes all of them again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from dpaudit.accounting.amplification import fallback
from dpaudit.base.errors import UnsupportedError
from dpaudit.base.finding_table import FindingTable
from dpaudit.base.provenance import is_exact
from dpaudit.base.validate import shown
from dpaudit.certificate.claim import Claim, Finding
from dpaudit.mechanisms import Opaque
from dpaudit.mechanisms.continual.release import Stepwise
from dpaudit.plan import CyclicPoissonSampling, Plan, ZeroOut

_found = FindingTable(__name__)

FLOAT_NOISE = "float-noise"
"""Rule of the finding that a noise backend with exact samplers removes."""

MADE_UP = "made-up-data"
"""Rule of the finding that the rows of a run were made up."""

LARGE_DELTA = 0.1
"""From this δ on a statement is near to trivial: whoever publishes the whole data set with
probability δ keeps (0, δ). NIST SP 800-226 wants it small beside 1/n, which from here on fails for
every data set of ten units or more."""

_LARGE_EPSILON = 500.0
"""From here on an ε promises nothing."""


def delta_findings(claim: Claim | None, delta: float) -> tuple[Finding, ...]:
    """Report a claim, or a guarantee at ``delta``, that protects hardly anybody.

    A warning for a δ. A note for a claim of a risk that some published data sets do not exceed.

    >>> delta_findings(Claim(1.0, 1e-6), 1e-6)
    ()
    >>> [finding.rule for finding in delta_findings(Claim(0.0, 0.999), 0.999)]
    ['large-delta']
    """
    stated = {} if claim is None or claim.risk is not None else {claim.delta: "The claim"}
    stated.setdefault(delta, "The guarantee")
    found = [
        _found("large-delta", what=what, value=value)
        for value, what in stated.items()
        if value >= LARGE_DELTA
    ]
    left = 0.0 if claim is None or claim.risk is None else claim.implied.delta(_LARGE_EPSILON).upper
    if left >= LARGE_DELTA:
        found.append(_found("claim-allows-exposure", claim=claim, left=left))
    return tuple(found)


def run_findings(ledger: Mapping[str, Any]) -> Iterator[Finding]:
    """Tell how the noise of a run was drawn, where that is no deployment's way."""
    drawn = float_samplers(ledger)
    if ledger["seeded"]:
        yield _found("seeded-noise")
    elif drawn:
        yield _found("float-sampler", sampler=drawn[0])
    for sampler in ledger.get("external", ()):
        yield _found("noise-drawn-elsewhere", sampler=sampler)


def float_samplers(ledger: Mapping[str, Any]) -> list[str]:
    """Name the ledger's own samplers that drew in floating point, by the record of a run."""
    outside = ledger.get("external", ())
    known = ledger.get("samplers", ())
    return [name for name in known if name.startswith("numpy") and name not in outside]


def is_drawn_exactly(run: Mapping[str, Any] | None) -> bool:
    """Tell whether exact samplers drew all noise of a run, which removes the finding on floats."""
    record = (run or {}).get("ledger", {})
    samplers = record.get("samplers", {})
    return bool(samplers) and all(map(is_exact, samplers)) and not record.get("external")


def plan_findings(plan: Plan) -> tuple[Finding, ...]:
    """Report what every reader of a certificate of this plan must know, in a fixed order."""
    # The guarantee speaks of real numbers, the samples are floats (Mironov 2012).
    real = dict.fromkeys(i.mechanism.kind for i in plan.invocations if i.mechanism.real_valued)
    floats = [_found(FLOAT_NOISE, kinds=", ".join(real))] if real else []
    opaque = [
        _found("opaque-mechanism", i.at, label=shown(i.mechanism.label), own=i.mechanism)
        for i in plan.invocations
        if isinstance(i.mechanism, Opaque)
    ]
    return (*floats, *opaque, *_sums(plan), *_streams(plan), *_fallbacks(plan))


def _sums(plan: Plan) -> Iterator[Finding]:
    """Samples under zero-out whose amplification takes the value for a sum; the first of them."""
    for each in plan.invocations:
        sampled = each.sampling is not None and isinstance(each.relation, ZeroOut)
        if sampled and each.mechanism.zeroed_is_absent and each.contribution is None:
            yield _found("zeroed-as-absent", each.at)
            return


def _streams(plan: Plan) -> Iterator[Finding]:
    """Streams of which a sample is drawn once; the first of them."""
    for each in plan.invocations:
        alone = isinstance(each.sampling, CyclicPoissonSampling)  # a sample for each step
        if isinstance(each.mechanism, Stepwise) and each.sampling is not None and not alone:
            yield _found("one-sample-for-a-stream", each.at)
            return


def _fallbacks(plan: Plan) -> Iterator[Finding]:
    """Report what costs more than it might, as declared; the first invocation of each kind."""
    known = set()
    for invocation in plan.invocations:
        with suppress(UnsupportedError):
            found = fallback(invocation)
            if found is not None and found not in known:
                known.add(found)
                what, remedy = found
                yield replace(_found("counted-as-more", invocation.at, what=what), remedy=remedy)
