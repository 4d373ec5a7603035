"""Exact mode: the true privacy loss where it can be computed. No samples, no confidence level.

Mechanisms with finitely many outputs are enumerated, in rational arithmetic where their
probabilities are rational. Where the true law is a known pair of distributions (a Gaussian of known
shift, say), its closed form is used. Either way a claim is proved wrong or holds *for this pair*.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

import numpy as np

from dpaudit import validate
from dpaudit.auditing.distinguishing.outcome import as_json
from dpaudit.auditing.evidence.exact import hockey_stick, loss_ratio
from dpaudit.certificate import AuditRecord, Claim
from dpaudit.mechanisms import DominatingPair
from dpaudit.project import AuditPair

Probability = Fraction | float
ROUNDING = 1e-12
"""Relative error that float probabilities and logarithms may have; no claim is refuted by less."""
RENYI_ROUNDING = 1e-9
"""The same for Rényi divergences of orders near 1."""


@runtime_checkable
class FiniteMechanism(Protocol):
    """A mechanism with finitely many outputs, numbered alike for all data."""

    def probabilities(self, data: Any) -> Sequence[Probability]:
        """The probability of each output given the data; fractions are kept exactly."""


@dataclass(frozen=True)
class ExactLoss:
    """Two output distributions, and everything that follows from them.

    Attributes:
        p: probabilities given one data set.
        q: probabilities given its neighbour.

    Example:
        >>> third, rest = Fraction(1, 4), Fraction(3, 4)
        >>> round(ExactLoss((third, rest), (rest, third)).epsilon(), 6)
        1.098612
    """

    p: tuple[Probability, ...]
    q: tuple[Probability, ...]

    def epsilon(self, delta: float = 0.0) -> float:
        """The smallest ε at δ, the larger of both directions; infinite if there is none."""
        ratio = loss_ratio(self.p, self.q, delta)
        if ratio is None:
            return math.inf
        if ratio < 2:
            return math.log1p(float(ratio - 1))
        return math.log(ratio.numerator) - math.log(ratio.denominator)

    def delta(self, epsilon: float) -> float:
        """The smallest δ at ε, the larger of both directions."""
        k = math.exp(epsilon)
        return float(max(hockey_stick(self.p, self.q, k), hockey_stick(self.q, self.p, k)))

    def renyi(self, order: float) -> float:
        """Rényi divergence of this order above 1, the larger of both directions."""
        return max(_renyi(self.p, self.q, order), _renyi(self.q, self.p, order))

    def rho(self) -> tuple[float, float]:
        """The least ρ of zCDP over a grid of orders, with the order that demands it.

        As sup over all orders, the true ρ is at least this.
        """
        orders = [1.01, *np.linspace(1.05, 4, 60), *np.geomspace(4, 1000, 60)]
        return max((self.renyi(float(order)) / float(order), float(order)) for order in orders)


def _renyi(p: Sequence[Probability], q: Sequence[Probability], order: float) -> float:
    from scipy.special import logsumexp

    top, low = np.array(p, dtype=np.float64), np.array(q, dtype=np.float64)
    if ((top > 0) & (low == 0)).any():
        return math.inf
    held = top > 0
    terms = order * np.log(top[held]) - (order - 1) * np.log(low[held])
    return max(0.0, float(logsumexp(terms)) / (order - 1))


def exact_loss(mechanism: FiniteMechanism, pair: AuditPair) -> ExactLoss:
    """The exact loss of a finite mechanism on two neighbours."""
    p, q = (tuple(mechanism.probabilities(data)) for data in (pair.x, pair.x_prime))
    loss_ratio(p, q)  # checks that both are distributions on the same outputs
    return ExactLoss(p, q)


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
    """
    claim = Claim(epsilon, delta)
    loss = exact_loss(mechanism, pair)
    true = loss.epsilon(claim.delta)
    return _record(
        claim,
        pair,
        "exact enumeration",
        refuted=true > claim.epsilon * (1 + ROUNDING) + ROUNDING,
        lower=true,
        event=_worst_output(loss) if claim.delta == 0 else "all outputs where p > e^ε q",
        details={"outputs": len(loss.p), "delta_at_claim": loss.delta(claim.epsilon)},
    )


def audit_exact_zcdp(
    mechanism: FiniteMechanism, pair: AuditPair, *, rho: float, delta: float = 1e-5
) -> AuditRecord:
    """Refute ρ-zCDP on two neighbours by a Rényi divergence above α ρ (Bun and Steinke 2016).

    Args:
        mechanism: with finitely many outputs.
        pair: two neighbours.
        rho: claimed ρ.
        delta: the δ at which the record states the claim and the truth as (ε, δ); the verdict is
            that of the divergence, which may exceed the claim though (ε, δ) does not.

    Raises:
        UnsupportedError: if the mechanism has no finite list of outputs.
        InputError: if a number is out of range.
    """
    rho = validate.non_negative(rho=rho)
    delta = validate.open_fraction(delta=delta)
    loss = exact_loss(mechanism, pair)
    needed, order = loss.rho()
    claimed = rho + 2 * math.sqrt(rho * math.log(1 / delta))
    return _record(
        Claim(claimed, delta),
        pair,
        "exact enumeration, Rényi divergence",
        refuted=needed > rho * (1 + RENYI_ROUNDING) + ROUNDING,
        lower=loss.epsilon(delta),
        event=f"Rényi divergence of order {order:.6g} is {needed * order:.6g}, claimed is at most "
        f"{rho * order:.6g}",
        details={"claim_rho": rho, "rho_lower": needed, "order": order, "outputs": len(loss.p)},
    )


def audit_closed_form(
    truth: DominatingPair, pair: AuditPair, *, epsilon: float, delta: float
) -> AuditRecord:
    """Refute (ε, δ) by the true δ(ε) of two neighbours whose output laws are known.

    Args:
        truth: the laws of the outputs on the two neighbours, such as ``GaussianPair(shift / σ)``
            for normal noise of known σ around known values. (A symmetric pair: both directions.)
        pair: the neighbours.
        epsilon: claimed ε.
        delta: claimed δ.
    """
    claim = Claim(epsilon, delta)
    true_delta = float(truth.delta(claim.epsilon))
    return _record(
        claim,
        pair,
        "closed form of the privacy loss",
        refuted=true_delta > claim.delta * (1 + 1e-9) + 1e-300,
        lower=true_epsilon(truth, claim.delta),
        event="all outputs where p > e^ε q",
        details={"delta_at_claim": true_delta},
    )


def true_epsilon(truth: DominatingPair, delta: float) -> float:
    """The least ε with δ(ε) ≤ δ, rounded down; infinite beyond 1000."""
    low, high = 0.0, 1.0
    while float(truth.delta(high)) > delta:
        low, high = high, 2 * high
        if high > 1000:
            return math.inf
    if float(truth.delta(0.0)) <= delta:
        return 0.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if float(truth.delta(middle)) > delta else (low, middle)
    return low


def _worst_output(loss: ExactLoss) -> str:
    """The output of the largest loss, in either direction."""

    def size(index: int) -> float:
        a, b = float(loss.p[index]), float(loss.q[index])
        if a == b:
            return 0.0
        return math.inf if min(a, b) == 0 else abs(math.log(a / b))

    worst = max(range(len(loss.p)), key=size)
    return (
        f"output number {worst}, of probability {float(loss.p[worst]):.6g} under x and "
        f"{float(loss.q[worst]):.6g} under x'"
    )


def _record(
    claim: Claim,
    pair: AuditPair,
    method: str,
    *,
    refuted: bool,
    lower: float,
    event: str,
    details: dict[str, Any],
) -> AuditRecord:
    return AuditRecord(
        refuted=refuted,
        method=method,
        claim_epsilon=claim.epsilon,
        delta=claim.delta,
        epsilon_lower=lower,
        confidence=None,
        runs=0,
        event=event,
        seed=None,
        pair={"x": as_json(pair.x), "x_prime": as_json(pair.x_prime)},
        power="" if refuted else "Exact: no larger loss exists for this pair.",
        details=details,
    )
