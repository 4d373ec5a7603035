"""Membership inference on federated Thompson sampling: seconds of every kind of transcript.

Run ``python -m tests.benchmarks.federated_audit``; each number is computed in this
run. Shown: 100 000 simulated transcripts a side, the same with the test of the whole curve, and one
run of the server alone and of the whole algorithm.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np

from audits.federated.game import audit, canary_pair, landmines, proved_epsilon, white_box
from audits.federated.servers import EndToEnd, Others, Served
from audits.federated.table import small
from private_bo.federated import DPFTSDE

RUNS = 100_000


def seconds(task: Callable[[], object], repeats: int = 3) -> float:
    best = math.inf
    for _ in range(repeats):
        begin = time.perf_counter()
        task()
        best = min(best, time.perf_counter() - begin)
    return best


def a_run(subject: DPFTSDE, runs: int = 100) -> float:
    pair = canary_pair(subject)
    rng = np.random.default_rng(0)
    return seconds(lambda: subject.audit_release(pair.x, runs, rng)) / runs


def main() -> None:
    algorithm = landmines()
    proof = proved_epsilon.__wrapped__  # not the one that is kept
    took = seconds(lambda: proof(algorithm.plan(), algorithm.target_delta))
    print(f"certified ε, T = 40: {took:.2f} s")
    print(f"{RUNS} transcripts a side, both bounds: {seconds(lambda: white_box(algorithm)):.2f} s")
    curve = seconds(lambda: audit(algorithm, runs=RUNS), repeats=1)
    print(f"{RUNS} transcripts a side, whole curve: {curve:.2f} s")
    served: tuple[tuple[str, Served], ...] = (
        ("server, T = 10, 28 others send zeros", small(others=Others.ZEROS)),
        ("server, T = 10, others send nothing", small(others=Others.SILENCE)),
        ("whole algorithm, N = 6, T = 10", EndToEnd()),
    )
    for name, subject in served:
        print(f"{name}: {1e3 * a_run(subject):.2f} ms a run")


if __name__ == "__main__":
    main()
