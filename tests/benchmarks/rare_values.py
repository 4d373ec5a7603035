"""How often a default audit finds a raw value that is shown in few outputs.

::

    python -m tests.benchmarks.rare_values [--audits 5]

Beside a sum that is as private as is claimed, one output in so many holds the last record as it is,
as text, rounded, or in a mapping. The claim is ε = 1.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit import AuditPair
from dpaudit.auditing import BlackBox, audit_release
from dpaudit.auditing.distinguishing import experiment

X, X_PRIME = [31.25, 47.5, 63.4142], [31.25, 47.5, 62.4142]
Shown = Callable[[float], Any]


@dataclass(frozen=True)
class Row:
    """A leak.

    Attributes:
        what: holds the value.
        rate: of the outputs that show it.
        runs: of an audit.
        shown: what a value becomes; None for an output that is one number, or the value.
    """

    what: str
    rate: float
    runs: int
    shown: Shown | None = None

    def __call__(self, data: list[float], rng: np.random.Generator) -> Any:
        noisy, leaks = sum(data) + rng.laplace(), rng.random() < self.rate
        if self.shown is None:
            return data[-1] if leaks else noisy
        return {"sum": noisy, "note": self.shown(data[-1] if leaks else rng.normal())}


ROWS = (
    Row("number", 0.02, 1000),
    Row("number", 0.004, 10_000),
    Row("number", 0.0005, 100_000),
    Row("field", 0.02, 1000, float),
    Row("field", 0.02, 10_000, float),
    Row("field", 0.004, 10_000, float),
    Row("field", 0.0005, 100_000, float),
    Row("field, rounded", 0.004, 10_000, lambda value: round(value, 1)),
    Row("message", 0.02, 4000, lambda value: f"row {value:.2f} read"),
    Row("message", 0.004, 10_000, lambda value: f"row {value:.2f} read"),
)


def main() -> None:
    """Print, of each row, how many audits found it, and the mean of their bounds."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--audits", type=int, default=5)
    audits = parser.parse_args().audits
    experiment.CHILDREN = 0  # children would draw the same runs, in more time
    print(f"{'what':16}{'one in':>8}{'runs':>8}  found      ε ≥  seconds")
    for place, row in enumerate(ROWS):
        start = time.process_time()
        found = [
            audit_release(
                BlackBox(row),
                AuditPair(X, X_PRIME),
                epsilon=1.0,
                runs=row.runs,
                seed=1000 * place + number,
            )
            for number in range(audits)
        ]
        seconds = (time.process_time() - start) / audits
        bound = float(np.mean([each.epsilon_lower for each in found]))
        print(
            f"{row.what:16}{round(1 / row.rate):8}{row.runs:8}  "
            f"{sum(each.refuted for each in found)} of {audits}{bound:9.2f}{seconds:9.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
