"""Sampled Gaussian noise beside dp-accounting: ε of both, and how many times as long theirs takes.

Run ``python -m tests.benchmarks.samplers``: noise 4, rate 0.01, 1000 steps, δ = 1e-5. Times are of
the processor, the best of three, in one process.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.privacy_accountant import NeighboringRelation
from scipy.stats import binom

from dpaudit import (
    AddRemove,
    Gaussian,
    Invocation,
    Plan,
    PoissonSampling,
    PrivacyUnit,
    ReplaceOne,
    TrustModel,
)
from dpaudit.accounting import compose
from dpaudit.plan import RandomAllocation, Sampling, TruncatedPoissonSampling

_REPLACE = NeighboringRelation.REPLACE_ONE


def _rows(rows: int) -> Callable[[], Any]:
    j = range(rows + 1)
    return lambda: pld.from_mixture_gaussian_mechanism(4.0, list(j), binom.pmf(j, rows, 0.01))


def _cut(**facts: Any) -> Callable[[], Any]:
    return lambda: pld.from_truncated_subsampled_gaussian_mechanism(10**4, 0.01, 130, 4.0, **facts)


CASES: dict[str, tuple[Sampling, bool, Callable[[], Any] | None]] = {
    "2 rows": (PoissonSampling(0.01, rows=2), False, _rows(2)),
    "5 rows": (PoissonSampling(0.01, rows=5), False, _rows(5)),
    "replaced": (
        PoissonSampling(0.01, contribution=1.0),
        True,
        lambda: pld.from_gaussian_mechanism(4.0, sampling_prob=0.01, neighboring_relation=_REPLACE),
    ),
    "truncated": (TruncatedPoissonSampling(0.01, 130, 10**4), False, _cut()),
    "truncated, replaced": (
        TruncatedPoissonSampling(0.01, 130, 10**4, 1.0),
        True,
        _cut(neighboring_relation=_REPLACE),
    ),
    "allocated, 1 of 100": (RandomAllocation(100), False, None),
    "poisson": (PoissonSampling(0.01), False, None),
}


def _seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    times, found = [], None
    for _ in range(3):
        start = time.process_time()
        found = work()
        times.append(time.process_time() - start)
    return min(times), found


def main() -> None:
    """Print a line for each scheme."""
    for name, (sampling, replaced, theirs) in CASES.items():
        relation = ReplaceOne() if replaced else AddRemove()
        shift, about = (2.0 if replaced else 1.0), (PrivacyUnit("row"), relation)
        one = Invocation(
            Gaussian(4.0), shift, *about, TrustModel.CENTRAL, count=1000, sampling=sampling
        )
        plan = Plan.of(one)
        compose(plan, "pld").epsilon(1e-5)  # what is imported, and tables
        seconds, own = _seconds(lambda plan=plan: compose(plan, "pld").epsilon(1e-5))
        line = f"{name:20} {own.lower or 0:.6f} to {own.upper:.6f}"
        if theirs is not None:
            slow, other = _seconds(
                lambda law=theirs: law().self_compose(1000).get_epsilon_for_delta(1e-5)
            )
            line += f"; dp-accounting {other:.6f}, {slow / seconds:.1f} times as long"
        print(line)


if __name__ == "__main__":
    main()
