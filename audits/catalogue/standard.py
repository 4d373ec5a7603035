"""The package's own standard mechanisms and the mistakes they are known for, by enumeration."""

from __future__ import annotations

from typing import Any

from dpaudit import AuditPair, Claim
from dpaudit.auditing.subjects.exact import FiniteMechanism, audit_exact
from dpaudit.certificate import AuditRecord
from dpaudit.mechanisms import NoisyMax, PermuteAndFlip

from .claims import PURE
from .entry import Entry

__all__ = ["RIGHT", "WRONG"]


def _row(
    name: str,
    mechanism: FiniteMechanism,
    x: Any,
    x_prime: Any,
    true: float,
    claim: Claim = PURE,
) -> Entry:
    """A row whose outputs are enumerated; it is right if the claim holds."""

    def audit() -> AuditRecord:
        pair = AuditPair(x, x_prime, name)
        return audit_exact(mechanism, pair, epsilon=claim.epsilon, delta=claim.delta)

    return Entry(name, true <= claim.epsilon, claim, x, x_prime, true, exact=audit)


EQUAL, APART, RISEN = [0.0, 0.0], [1.0, -1.0], [1.0, 0.0]

_ROWS = (
    _row("permute-and-flip, declared", PermuteAndFlip(1.0), EQUAL, APART, 1.0),
    _row("permute-and-flip, monotonic", PermuteAndFlip(1.0, monotonic=True), EQUAL, RISEN, 1.0),
    _row("permute-and-flip, half the noise for utilities that are not monotonic",
         PermuteAndFlip(1.0, monotonic=True), EQUAL, APART, 2.0),
    _row("noisy max, Laplace noise, declared", NoisyMax(1.0), [-9.0, 9.0], [-10.0, 10.0], 1.0),
    _row("noisy max, Lap(1/ε) for queries that are not monotonic", NoisyMax(1.0, monotonic=True),
         [-9.0, 9.0], [-10.0, 10.0], 2.0),
)  # fmt: skip

WRONG = tuple(row for row in _ROWS if not row.right)
RIGHT = tuple(row for row in _ROWS if row.right)
