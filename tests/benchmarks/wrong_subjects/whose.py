"""Whose a row is depends on everybody's, or is not who it says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpaudit import Invocation, Laplace, Plan, PrivacyUnit, ReplaceOne, RunResult, TrustModel
from dpaudit.certificate import Premise
from tests.benchmarks.wrong_subjects.shop import Wrong, crowd, row


@dataclass(frozen=True)
class SessionsAsCustomers(Wrong):
    """Revenue, each customer's bounded, from a log whose customers are sessions.

    Wrong: Eve has twenty sessions, and each is bounded by itself.
    """

    breaks: ClassVar = (Premise.PERSONS, Premise.TOUCHES, Premise.SENSITIVITY)

    def entries(self, rows):
        return [(each["customer"], each["amount"]) for each in rows]

    def example(self):
        return [*crowd(5), *(row(f"s{n}", name="eve", amount=9.0) for n in range(20))]

    @classmethod
    def is_eves(cls, row):
        return row["name"] == "eve"


@dataclass(frozen=True)
class MergedByName(Wrong):
    """Revenue, where customers of the same name are taken for one: the first of them.

    Wrong: a customer who uses many names is given the rows of all who have them.
    """

    breaks: ClassVar = (*Wrong.breaks, Premise.UNITS, Premise.TOUCHES)

    def entries(self, rows):
        first = {each["name"]: each["customer"] for each in reversed(rows)}
        return [(first[each["name"]], each["amount"]) for each in rows]

    def example(self):
        others = crowd(20, amount=9.0)
        return [*(row("eve", name=each["name"], amount=0.0) for each in others), *others]


@dataclass(frozen=True)
class AnswersOverMaximum(Wrong):
    """Amounts as shares of the largest, each clipped and noised on its customer's device.

    Wrong: the largest is in the answer of every device.
    """

    breaks: ClassVar = (Premise.OWN_VALUES, Premise.TOUCHES)

    bound: float = 1.0
    size: int = 200

    def mechanism(self) -> Laplace:
        return Laplace(2 * self.bound, clip=(0, self.bound))

    def plan(self):
        about = (PrivacyUnit("customer"), ReplaceOne(), TrustModel.LOCAL)
        return Plan.of(
            Invocation(self.mechanism(), self.bound, *about, total=self.size, at="answer")
        )

    def load(self, source, rng):
        rows = super().load(source, rng)
        return {r["customer"]: float(np.nan_to_num(r["amount"])) for r in rows}

    def run(self, data, ledger, rng):
        most = max(max(data.values(), default=0.0), 1.0)
        told = [
            ledger.release(self.mechanism(), value / most, unit=name, at="answer")
            for name, value in data.items()
        ]
        return RunResult({"mean": float(np.mean(told)) if told else 0.0})

    def example(self):
        return [*crowd(20, amount=9.0), row("eve", amount=1e6)]
