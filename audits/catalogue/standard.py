"""The package's own standard mechanisms and the mistakes they are known for, by enumeration.

Laws of these mechanisms are enumerated, so that the ε of every row is exact. Mistakes are those
that papers and issues report.
"""

from __future__ import annotations

import math
from typing import Any

from audits.catalogue.entry import PURE, Entry
from dpaudit import AuditPair
from dpaudit.auditing.subjects.exact import FiniteMechanism, audit_exact
from dpaudit.certificate import AuditRecord
from dpaudit.mechanisms import (
    BitVectorResponse,
    NoisyMax,
    PermuteAndFlip,
    SparseVector,
    SubsetSelection,
    TopK,
    UnaryEncoding,
)


def _row(name: str, mechanism: FiniteMechanism, x: Any, x_prime: Any, true: float) -> Entry:
    """A row whose outputs are enumerated; it is right if the claim holds."""

    def audit() -> AuditRecord:
        return audit_exact(mechanism, AuditPair(x, x_prime, name), epsilon=PURE.epsilon)

    return Entry(name, true <= PURE.epsilon, PURE, x, x_prime, true, exact=audit)


def sparse(first: float, second: float, *, monotonic: bool = False) -> SparseVector:
    """A cutoff of 3, with noise for ε₁ and ε₂, whatever is claimed."""
    whole = first + second
    return SparseVector(whole, 0.0, 3, monotonic=monotonic, threshold_share=first / whole)


EQUAL, APART, RISEN = [0.0, 0.0], [1.0, -1.0], [1.0, 0.0]
FAR, FARTHER = [-9.0, 9.0], [-10.0, 10.0]
FIRST, LAST = [1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]
LOW, HIGH = [0.0] * 5 + [1.0] * 3, [1.0] * 5 + [0.0] * 3
UP = [1.0] * 8
BIT, HALF = math.e / (math.e + 1), math.exp(0.5) / (math.exp(0.5) + 1)

_ROWS = (
    _row("permute-and-flip, declared", PermuteAndFlip(1.0), EQUAL, APART, 1.0),
    _row("permute-and-flip, monotonic", PermuteAndFlip(1.0, monotonic=True), EQUAL, RISEN, 1.0),
    _row("permute-and-flip, exp(ε u) for utilities that are not monotonic",
         PermuteAndFlip(1.0, monotonic=True), EQUAL, APART, 2.0),
    _row("noisy max, Laplace noise, declared", NoisyMax(1.0), FAR, FARTHER, 1.0),
    _row("noisy max, Lap(1/ε) for queries that are not monotonic", NoisyMax(1.0, monotonic=True),
         FAR, FARTHER, 2.0),
    _row("one-shot top-k, declared", TopK(0.5, k=2), FIRST, LAST, 1.0),
    _row("one-shot top-k, noise of one choice", TopK(1.0, k=2), FIRST, LAST,
         1 + math.log((1 + 2 * math.exp(0.5)) / (2 + math.exp(0.5)))),
    _row("sparse vector, declared", sparse(0.5, 0.5), LOW, HIGH, 1.0),
    _row("sparse vector, monotonic", sparse(0.5, 0.5, monotonic=True), LOW,
         UP, 1.0),
    _row("sparse vector, query noise of a cutoff of 1", sparse(0.5, 1.5), LOW,
         HIGH, 2.0),
    _row("sparse vector, Lap(cΔ/ε) for queries that are not monotonic",
         sparse(0.5, 0.5, monotonic=True), LOW, HIGH, 1.5),
    _row("optimised unary encoding, declared", UnaryEncoding(4, 1 - BIT), 0, 1, 1.0),
    _row("symmetric unary encoding, declared", UnaryEncoding(4, 1 - HALF, HALF), 0, 1, 1.0),
    _row("symmetric unary encoding that counts one of two bits", UnaryEncoding(4, 1 - BIT, BIT),
         0, 1, 2.0),
    _row("bit vectors, declared", BitVectorResponse(2 * (1 - HALF), 6, 1), [1, 0, 0, 0, 0, 0],
         [0, 1, 0, 0, 0, 0], 1.0),
    _row("bit vectors of two ones, bits as of one", BitVectorResponse(2 * (1 - HALF), 6, 2),
         [1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0], 2.0),
    _row("subset selection, declared", SubsetSelection(6, 3 / (math.e + 2), 2), 0, 1, 1.0),
    _row("subset selection, p as of sets of three", SubsetSelection(6, 2 / (math.e + 1), 2), 0, 1,
         math.log((3 * math.e - 1) / 2)),
)  # fmt: skip

WRONG = tuple(row for row in _ROWS if not row.right)
RIGHT = tuple(row for row in _ROWS if row.right)
