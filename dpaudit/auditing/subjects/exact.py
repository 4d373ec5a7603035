"""Exact mode: the true privacy loss where it can be computed. No samples, no confidence level.

Mechanisms with finitely many outputs are enumerated, in rational arithmetic where their
probabilities are rational. A claim is proved wrong or holds *for this pair*.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

from dpaudit.auditing.distinguishing.outcome import as_json, facts_of_sides
from dpaudit.auditing.evidence.exact import Probability, hockey_stick, loss_ratio
from dpaudit.certificate import AuditRecord, Claim
from dpaudit.project import AuditPair

ROUNDING = 1e-12
"""Relative error that float probabilities and logarithms may have; no claim is refuted by less."""


@runtime_checkable
class FiniteMechanism(Protocol):
    """A mechanism with finitely many outputs, numbered alike for all data."""

    def probabilities(self, data: Any) -> Sequence[Probability]:
        """The probability of each output given the data; fractions are kept exactly."""


def audit_exact(
    mechanism: FiniteMechanism,
    pair: AuditPair,
    *,
    epsilon: float,
    delta: float = 0.0,
) -> AuditRecord:
    """Prove or refute (ε, δ) on two neighbours by enumerating the outputs.

    The ε of the record is the true one for this pair, both directions; ``confidence`` is None.

    Raises:
        UnsupportedError: if the mechanism has no finite list of outputs.
        InputError: if its probabilities are no distribution, or the claim is out of range.

    Example:
        >>> from dpaudit import RandomizedResponse
        >>> answer = RandomizedResponse(Fraction(1, 2))
        >>> round(audit_exact(answer, AuditPair(0, 1), epsilon=1.0).epsilon_lower, 6)
        1.098612
    """
    claim = Claim(epsilon, delta)
    p, q = (tuple(mechanism.probabilities(data)) for data in (pair.x, pair.x_prime))
    true, k = _epsilon(loss_ratio(p, q, claim.delta)), math.exp(claim.epsilon)
    refuted = true > claim.epsilon * (1 + ROUNDING) + ROUNDING
    return AuditRecord(
        refuted=refuted,
        method="exact enumeration",
        claim_epsilon=claim.epsilon,
        delta=claim.delta,
        epsilon_lower=true,
        confidence=None,
        runs=0,
        event=_worst_output(p, q) if claim.delta == 0 else "all outputs where p > e^ε q",
        seed=None,
        pair={"x": as_json(pair.x), "x_prime": as_json(pair.x_prime)},
        power="" if refuted else "Exact: no larger loss exists for this pair.",
        details={
            "outputs": len(p),
            "delta_at_claim": float(max(hockey_stick(p, q, k), hockey_stick(q, p, k))),
            **facts_of_sides(pair),
        },
    )


def _epsilon(ratio: Fraction | None) -> float:
    """The logarithm of a ratio of at least 1, also of huge ones; infinite where there is none."""
    if ratio is None:
        return math.inf
    if ratio < 2:
        return math.log1p(float(ratio - 1))
    return math.log(ratio.numerator) - math.log(ratio.denominator)


def _worst_output(p: Sequence[Probability], q: Sequence[Probability]) -> str:
    """The output of the largest loss, in either direction."""

    def size(index: int) -> float:
        a, b = float(p[index]), float(q[index])
        if a == b:
            return 0.0
        return math.inf if min(a, b) == 0 else abs(math.log(a / b))

    worst = max(range(len(p)), key=size)
    return (
        f"output number {worst}, of probability {float(p[worst]):.6g} under x and "
        f"{float(q[worst]):.6g} under x'"
    )
