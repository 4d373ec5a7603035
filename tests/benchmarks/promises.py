"""Whether what silence is said to be worth is true: faults that would have been found, and are.

Run ``python -m tests.benchmarks.promises [--seeds 40]``. Each row is a right mechanism, audited
once for its sentence: "noise s % smaller … would have been detected with probability 0.9". Then
the same code with exactly so much less noise is audited with fresh seeds. Printed: how often it is
found, for each row and together, which should be at least 0.87.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.accounting import privacy_curve
from dpaudit.auditing import audit_release
from dpaudit.auditing.distinguishing import experiment
from dpaudit.mechanisms import Gaussian, Laplace, Mechanism
from dpaudit.plan import AddRemove, Invocation, Plan, PrivacyUnit, TrustModel
from dpaudit.project import AuditPair

Release = Callable[[Any, int, np.random.Generator], Any]


@dataclass(frozen=True)
class Row:
    """A mechanism with noise of any factor, its true claim and how often it is run."""

    name: str
    release: Callable[[float], Release]
    epsilon: float
    delta: float
    curve: Any
    runs: int
    pair: AuditPair


def additive(draw: str, scale: float, size: int) -> Callable[[float], Release]:
    """Noise on ``size`` entries, of which the first differs."""

    def with_factor(factor: float) -> Release:
        def release(data: Any, number: int, rng: np.random.Generator) -> Any:
            noise = getattr(rng, draw)(0.0, factor * scale, (number, size))
            return (data + noise)[:, 0] if size == 1 else data + noise

        return release

    return with_factor


def rows() -> Iterator[Row]:
    """Laplace and Gaussian noise, numbers and vectors, points and curves."""
    for runs in (1_000, 10_000, 30_000):
        for size in (1, 5):
            for curve in (False, True):
                kinds: list[tuple[str, Mechanism, float, float, float]] = [
                    ("laplace", Laplace(1.0), 1.0, 1.0, 0.0),
                    ("laplace", Laplace(0.4), 0.4, 2.5, 0.0),
                    ("normal", Gaussian(1.0), 1.0, 0.0, 1e-2),
                ]
                for draw, mechanism, scale, epsilon, delta in kinds:
                    unit, trust = PrivacyUnit("row"), TrustModel.CENTRAL
                    plan = Plan.of(Invocation(mechanism, 1.0, unit, AddRemove(), trust))
                    whole = privacy_curve(plan)
                    claimed = epsilon or _least(whole, delta)
                    yield Row(
                        f"{draw} {scale:g}, {size} entries, {'curve' if curve else 'point'}, "
                        f"{runs} runs",
                        additive(draw, scale, size),
                        claimed,
                        delta,
                        whole if curve else None,
                        runs,
                        AuditPair(np.eye(size)[0], np.zeros(size), "one entry differs"),
                    )


def _least(curve: Any, delta: float) -> float:
    grid = np.linspace(0.0, 10.0, 10_001)
    return float(grid[np.flatnonzero(curve(grid) <= delta)[0]])


def audited(row: Row, factor: float, seed: int) -> Any:
    """One audit."""
    return audit_release(
        row.release(factor),
        row.pair,
        epsilon=row.epsilon,
        delta=row.delta,
        curve=row.curve,
        runs=row.runs,
        seed=seed,
    )


def main() -> None:
    """Print all rows."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--only", default="", help="rows whose name holds this text")
    arguments = parser.parse_args()
    experiment.CHILDREN = 0  # this code needs no processes of its own: the same runs, sooner
    found = tried = 0
    for row in rows():
        if arguments.only not in row.name:
            continue
        words = audited(row, 1.0, 0).power
        said = re.search(r"(\d+) % smaller", words)
        if said is None:
            print(f"{row.name:45} nothing said of noise: {words}", flush=True)
            continue
        factor = 1 - int(said[1]) / 100
        hits = sum(audited(row, factor, 1 + seed).refuted for seed in range(arguments.seeds))
        found, tried = found + hits, tried + arguments.seeds
        print(f"{row.name:45} {said[1]:>3} % smaller: {hits} of {arguments.seeds}", flush=True)
    print(f"together {found} of {tried}: {found / max(tried, 1):.3f}")


if __name__ == "__main__":
    main()
