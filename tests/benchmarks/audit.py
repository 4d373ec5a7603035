"""Audits against known mechanisms: bounds, pairs to refute, false alarms and seconds.

    python -m tests.benchmarks.audit [--seeds N]

Prints one table for each question. "pairs" is what the test of the whole curve needed, the runs of
both sides counted once; ``-`` where no curve was tested.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit import AuditPair, AuditRecord, Gaussian, Laplace
from dpaudit.auditing import WhiteBox, audit_release
from dpaudit.mechanisms import GaussianPair, LaplacePair

SIGMA = 3.7306
CURATOR = Laplace(4.0, clip=(-2.0, 2.0))


@dataclass(frozen=True)
class Case:
    """One mechanism that runs, and one that is declared."""

    label: str
    runs: Any
    declared: Any
    pair: AuditPair
    delta: float = 0.0
    curve: Callable[[Any], Any] | None = None

    def audit(self, seed: int, runs: int, **settings: Any) -> AuditRecord:
        """One audit of the claim ε = 1."""
        score = WhiteBox(self.declared, self.pair.x, self.pair.x_prime)
        return audit_release(
            self.runs.release_many,
            self.pair,
            epsilon=1.0,
            delta=self.delta,
            runs=runs,
            seed=seed,
            curve=self.curve,
            **{"score": score, **settings},
        )


UNIT = AuditPair(1.0, 0.0)
BY_LAPLACE, BY_GAUSSIAN = LaplacePair(1).delta, GaussianPair(1 / SIGMA).delta
RIGHT = (
    Case("Laplace", Laplace(1.0), Laplace(1.0), UNIT),
    Case("Gaussian", Gaussian(SIGMA), Gaussian(SIGMA), UNIT, 1e-5),
)
WRONG = (
    Case("Laplace, half scale", Laplace(0.5), Laplace(1.0), UNIT, 0.0, BY_LAPLACE),
    Case("Laplace, 0.9 scale", Laplace(0.9), Laplace(1.0), UNIT, 0.0, BY_LAPLACE),
    Case("Gaussian, half σ", Gaussian(SIGMA / 2), Gaussian(SIGMA), UNIT, 1e-5, BY_GAUSSIAN),
)
CURATORS = (
    Case("curator", CURATOR, CURATOR, AuditPair(2.0, -2.0)),
    Case("curator, its curve", CURATOR, CURATOR, AuditPair(2.0, -2.0), 0.0, BY_LAPLACE),
    Case("without the clip", Laplace(4.0), CURATOR, AuditPair(20.0, -20.0)),
    Case("half the scale", Laplace(2.0, clip=(-2, 2)), CURATOR, AuditPair(2.0, -2.0)),
    Case("range forgets R", Laplace(4.0), CURATOR, AuditPair(3.0, -3.0)),
)


PUBLISHED = (
    # what runs, δ, true ε, the best bound published for jax_privacy's auditor at 1e4 runs a side
    ("Laplace", Laplace(1.0), 0.0, 1.0, 0.902),
    ("Gaussian", Gaussian(SIGMA), 1e-5, 1.0, 0.297),
    ("Gaussian, half σ", Gaussian(SIGMA / 2), 1e-5, 2.155, 0.923),
    ("never sampling, σ = 1", Gaussian(1.0), 1e-5, 4.377, 2.00),
)


def published(seeds: int) -> Iterator[str]:
    for label, runs, delta, true, other in PUBLISHED:
        found = [
            # Claimed is far more than is true, so that no bound is cut off at the claim.
            audit_release(
                runs.release_many, UNIT, epsilon=5.0, delta=delta, seed=seed,
                score=WhiteBox(runs, 1.0, 0.0),
            ).epsilon_lower
            for seed in range(seeds)
        ]  # fmt: skip
        ours = np.median(found)
        yield f"{label:22} true {true:.3f}  published {other:.3f}  here {ours:.3f} (median)"


def bounds(seeds: int) -> Iterator[str]:
    for case in RIGHT:
        for name, settings in (("white-box", {}), ("black-box", {"score": None})):
            # Claimed is far more than is true, so that no bound is cut off at the claim.
            found = [
                audit_release(
                    case.runs.release_many,
                    case.pair,
                    epsilon=2.0,
                    delta=case.delta,
                    seed=seed,
                    **{"score": WhiteBox(case.runs, 1.0, 0.0), **settings},
                ).epsilon_lower
                for seed in range(seeds)
            ]
            yield f"{case.label:22} {name:10} median {np.median(found):.3f}  max {max(found):.3f}"


def pairs(seeds: int) -> Iterator[str]:
    for case in WRONG:
        records = [case.audit(seed, 60_000, stop_early=True) for seed in range(seeds)]
        refuted = sum(record.details["curve"]["refuted"] for record in records)
        median = np.median([record.details["curve"]["pairs"] for record in records])
        yield f"{case.label:22} refuted by curve {refuted}/{seeds}  median pairs {median:.0f}"


def verdicts(seeds: int) -> Iterator[str]:
    for case in CURATORS:
        started = time.perf_counter()
        records = [case.audit(seed, 10_000) for seed in range(seeds)]
        spent = (time.perf_counter() - started) / seeds
        refuted = sum(record.refuted for record in records)
        lower = np.median([record.epsilon_lower for record in records])
        yield f"{case.label:22} refuted {refuted}/{seeds}  bound {lower:.3f}  {spent:.2f} s each"


def scale() -> Iterator[str]:
    for name, settings in (("white-box", {}), ("black-box", {"score": None})):
        started = time.perf_counter()
        record = RIGHT[0].audit(1, 1_000_000, **settings)
        spent = time.perf_counter() - started
        yield f"1e6 Laplace runs a side {name:10} {spent:.2f} s  bound {record.epsilon_lower:.4f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    seeds = parser.parse_args().seeds
    for title, rows in (
        ("lower bounds, 1e4 runs a side", bounds(seeds)),
        ("lower bounds beside published ones, 1e4 runs a side", published(seeds)),
        ("pairs to refute, early stop", pairs(seeds)),
        ("verdicts, 1e4 runs a side", verdicts(seeds)),
        ("seconds", scale()),
    ):
        print(f"\n{title}")
        for row in rows:
            print(f"  {row}")


if __name__ == "__main__":
    main()
