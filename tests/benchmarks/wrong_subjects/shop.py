"""What the wrong subjects share: purchases in a file, and one bounded sum over them."""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dpaudit import (
    AddRemove,
    Claim,
    Contribution,
    Invocation,
    Laplace,
    Plan,
    PrivacyUnit,
    RunResult,
    Subject,
    TrustModel,
)
from dpaudit.auditing.replaying.replay import replay
from dpaudit.certificate import Premise

Row = dict[str, Any]
PURCHASES = Path(__file__).with_name("purchases.csv")
COLUMNS = ("customer", "name", "email", "region", "product", "day", "amount")
EVE = "eve"
"""The customer without whom the example of a subject has a neighbour."""


def row(customer: str, **known: Any) -> Row:
    """One purchase."""
    usual: Row = {"name": customer, "email": f"{customer}@home", "region": "north"}
    usual |= {"product": "tea", "day": 100.0, "amount": 1.0}
    return {"customer": customer} | usual | known


def crowd(size: int, **known: Any) -> list[Row]:
    """One purchase of each of some customers."""
    return [row(f"c{number:02}", **known) for number in range(size)]


def eves(size: int, **known: Any) -> list[Row]:
    """Purchases of the one who is removed."""
    return [row(EVE, **known) for _ in range(size)]


def number(text: str) -> float:
    """A number of a file; NaN where it is missing."""
    return float(text) if text else float("nan")


@dataclass(frozen=True)
class Wrong(Subject):
    """A bounded sum over what becomes of the purchases in a file.

    Attributes:
        bound: of what a customer adds.
    """

    breaks: ClassVar[tuple[Premise, ...]] = (Premise.OWN_VALUES, Premise.SENSITIVITY)
    """Premises of which one unit's data show that they do not hold."""
    default_data: ClassVar[str] = str(PURCHASES)

    bound: float = 10.0

    def plan(self) -> Plan:
        about = (PrivacyUnit("customer"), AddRemove(), TrustModel.CENTRAL)
        noise, part = Laplace(2 * self.bound), Contribution(self.bound)
        return Plan.of(Invocation.bounded(noise, part, *about, at="sum"))

    def claim(self) -> Claim:
        return Claim(0.5)

    def load(self, source: str, rng: np.random.Generator) -> Any:
        with open(source, newline="") as file:  # noqa: PTH123
            rows = list(csv.DictReader(file))
        return [r | {name: number(r[name]) for name in ("day", "amount")} for r in rows]

    def run(self, data: Any, ledger: Any, rng: np.random.Generator) -> RunResult:
        found = list(self.entries(data)) if len(data) else []
        units, values = [unit for unit, _ in found], [value for _, value in found]
        return RunResult({"sum": np.asarray(ledger.sum(values, units=units, at="sum")).tolist()})

    def entries(self, rows: Sequence[Row]) -> Iterable[tuple[str, Any]]:
        """Whose each value of the sum is, and the value."""
        raise NotImplementedError

    def example(self) -> list[Row]:
        """Purchases that show the mistake where those of Eve are removed."""
        raise NotImplementedError

    @classmethod
    def is_eves(cls, row: Row) -> bool:
        return bool(row["customer"] == EVE)

    def excess(self) -> float:
        """How many times what is declared one unit moves what is released, on the example."""
        with tempfile.TemporaryDirectory() as folder:
            path, rng = Path(folder, "purchases.csv"), np.random.default_rng(0)

            def loaded(rows: list[Row]) -> Any:
                with path.open("w", newline="") as file:
                    writer = csv.DictWriter(file, COLUMNS)
                    writer.writeheader()
                    writer.writerows(rows)
                return self.load(str(path), rng)

            rows = self.example()
            one, two = loaded(rows), loaded([each for each in rows if not self.is_eves(each)])
        return sum(each.observed / each.declared for each in replay(self, one, two).comparisons)
