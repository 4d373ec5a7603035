"""The exact privacy loss of mechanisms with finitely many outputs.

Floats are rationals, so nothing is lost on the way: the curve
``delta(k) = sum_i max(p_i - k q_i, 0)`` with ``k = exp(epsilon)`` is convex and piecewise linear,
and its inverse is found on the piece where it lies.

Where the loss can be computed there are no samples and no confidence level. Mechanisms with
finitely many outputs are enumerated, in rational arithmetic where their probabilities are rational.
A claim is proved wrong or holds *for this pair*.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

from dpaudit.auditing.distinguishing.outcome import as_json, facts_of_sides
from dpaudit.base.errors import InputError
from dpaudit.base.validate import non_negative, probability
from dpaudit.certificate import AuditRecord, Claim
from dpaudit.project import AuditPair

Probability = Fraction | float | int


def _rationals(name: str, masses: Sequence[Probability]) -> list[Fraction]:
    """The masses as fractions, checked to be a distribution (to 1e-9 if they are floats)."""
    try:
        values = [Fraction(mass) for mass in masses]
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} has a mass that is not a finite number.") from None
    total = sum(values, Fraction(0))
    tolerance = Fraction(1, 10**9) if any(isinstance(mass, float) for mass in masses) else 0
    if not values or min(values) < 0 or abs(total - 1) > tolerance:
        raise InputError(
            f"{name} adds up to {float(total)!r}; it must be non-negative masses that add up to 1."
        )
    return values


def _pair(
    p: Sequence[Probability], q: Sequence[Probability]
) -> tuple[list[Fraction], list[Fraction]]:
    if len(p) != len(q):
        raise InputError(
            f"p has {len(p)} outcomes and q has {len(q)}; they must have equally many."
        )
    return _rationals("p", p), _rationals("q", q)


def hockey_stick(
    p: Sequence[Probability], q: Sequence[Probability], ratio: Probability
) -> Fraction:
    """``sum_i max(p_i - ratio q_i, 0)``, exactly; ``ratio`` stands for ``exp(epsilon)``.

    Raises:
        InputError: if p or q is not a distribution, or ``ratio`` is negative or not finite.

    Example:
        >>> hockey_stick([Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)], 2)
        Fraction(1, 4)
    """
    non_negative(ratio=ratio)
    first, second = _pair(p, q)
    k = Fraction(ratio)
    return sum(
        (max(a - k * b, Fraction(0)) for a, b in zip(first, second, strict=True)), Fraction(0)
    )


def _direction_ratio(p: list[Fraction], q: list[Fraction], delta: Fraction) -> Fraction | None:
    """The least ratio k >= 0 with ``sum max(p - k q, 0) <= delta``; None if there is none."""
    large = sum((a for a, b in zip(p, q, strict=True) if b == 0), Fraction(0)) - delta
    if large > 0:
        return None
    small = Fraction(0)
    pieces = sorted(((a / b, a, b) for a, b in zip(p, q, strict=True) if b > 0), reverse=True)
    for ratio, a, b in pieces:
        # Between the last breakpoint and this one the curve is large + delta - k small.
        if large - ratio * small > 0:
            return large / small
        large, small = large + a, small + b
    return max(Fraction(0), large / small)


def loss_ratio(
    p: Sequence[Probability], q: Sequence[Probability], delta: Probability = 0
) -> Fraction | None:
    """``exp(epsilon)`` at ``delta``, exactly, at least 1; ``None`` if no finite epsilon will do.

    Raises:
        InputError: if p or q is not a distribution, or ``delta`` is not in [0, 1).

    Example:
        >>> loss_ratio([Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)])
        Fraction(3, 1)
    """
    probability(delta=delta)
    first, second = _pair(p, q)
    there = _direction_ratio(first, second, Fraction(delta))
    back = _direction_ratio(second, first, Fraction(delta))
    if there is None or back is None:
        return None
    return max(there, back, Fraction(1))


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
