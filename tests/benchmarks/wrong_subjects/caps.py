"""Bounds that are read off the data before any plan is made."""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from dpaudit.certificate import Premise
from tests.benchmarks.wrong_subjects.shop import PURCHASES, Wrong, number


def amounts() -> list[float]:
    """All amounts of the file, the largest first."""
    with PURCHASES.open(newline="") as file:
        known = [float(np.nan_to_num(number(each["amount"]))) for each in csv.DictReader(file)]
    return sorted(known, reverse=True)


CAP = amounts()[0]


@dataclass(frozen=True)
class CapAtImport(Wrong):
    """Revenue with a bound that is the largest amount, read when the module is imported.

    Wrong: the plan and its noise tell that amount.
    """

    breaks: ClassVar = (Premise.PUBLIC_FACTS,)

    bound: float = CAP

    def entries(self, rows):
        return [(each["customer"], each["amount"]) for each in rows]

    def excess(self):
        """How much larger the bound is than without the one row that it is read from."""
        largest, second, *_ = amounts()
        return largest / second


@dataclass(frozen=True)
class CapAsDefault(CapAtImport):
    """The same with a bound that is read when the subject is made."""

    bound: float = field(default_factory=lambda: amounts()[0])
