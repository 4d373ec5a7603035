"""Bounds that are read off the data before any plan is made, as code that is to be sealed.

This file is run sealed by itself, with the purchases beside it: it imports nothing of this project
but its public names.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from pathlib import Path

from dpaudit import (
    AddRemove,
    Claim,
    Contribution,
    Invocation,
    Laplace,
    Plan,
    PrivacyUnit,
    RunResult,
    SealedSubject,
    Table,
    TrustModel,
)


def largest() -> float:
    """The largest amount of the file that lies beside the code."""
    with Path(__file__).with_name("purchases.csv").open(newline="") as file:
        return max(float(each["amount"] or 0) for each in csv.DictReader(file))


@dataclass(frozen=True)
class CapTyped(SealedSubject):
    """Revenue with a bound that its author saw in the file, and wrote down."""

    bound: float = 99.0

    def table(self) -> Table:
        amount = {"type": "number", "range": [0, 1e6], "step": 0.01}
        return Table(source="purchases.csv", unit="customer", columns={"amount": amount})

    def plan(self) -> Plan:
        about = (PrivacyUnit("customer"), AddRemove(), TrustModel.CENTRAL)
        noise, part = Laplace(2 * self.bound), Contribution(self.bound)
        return Plan.of(Invocation.bounded(noise, part, *about, at="sum"))

    def claim(self) -> Claim:
        return Claim(0.5)

    def run(self, data, ledger, rng):
        return RunResult({"sum": float(ledger.sum(data.vector("amount"), at="sum"))})


@dataclass(frozen=True)
class CapAsDefault(CapTyped):
    """The same with a bound that is read when the subject is made."""

    bound: float = field(default_factory=largest)
