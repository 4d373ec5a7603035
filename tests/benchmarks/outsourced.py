"""The outsourced setting: seconds and memory of modellers and attacks, on one BLAS thread.

Run ``python -m tests.benchmarks.outsourced``; each number is computed in this run.
Loans are attacked where ``DPAUDIT_DATA`` is set.
"""

from __future__ import annotations

import math
import os
import resource
import time
from collections.abc import Callable

import numpy as np

from audits.outsourced.attacks import canary_audit, column_space_audit
from audits.outsourced.neighbours import Neighbours, problem_rows
from private_bo.outsourced import Curator, Hyperparameters, Modeller, Release

REPEATS = 5


def seconds(task: Callable[[], object], repeats: int = REPEATS) -> float:
    best = math.inf
    for _ in range(repeats):
        begin = time.perf_counter()
        task()
        best = min(best, time.perf_counter() - begin)
    return best


def modeller(rows: int, dimension: int, noise: float, *, fitted: bool) -> float:
    rng = np.random.default_rng(0)
    release = Release(rng.uniform(-17.0, 17.0, size=(rows, dimension)), noise)
    f = np.sin(release.points[:, 0] / 4)
    parameters = None if fitted else Hyperparameters(5.0)
    task = Modeller(parameters, steps=50, initial=10)
    return seconds(lambda: task.run(release, lambda row: f[row], np.random.default_rng(1)))


def main() -> None:
    print("modeller, T = 50 after 10 initial rows       given hyperparameters   fitted")
    for rows, dimension, noise in (
        (10_000, 2, 0.4),
        (10_000, 10, 0.0),
        (42_299, 3, 0.4),
        (42_299, 15, 0.0),
    ):
        times = [modeller(rows, dimension, noise, fitted=fitted) for fitted in (False, True)]
        given, fitted = (f"{one:.3f} s" for one in times)
        print(f"  {rows:6} × {dimension:2} rows, noise {noise:3} {given:>34} {fitted:>13}")
    problems = ["grid", "taipei", *(["loans"] if os.environ.get("DPAUDIT_DATA") else [])]
    for problem in problems:
        n, d = problem_rows(problem).shape
        curator = Curator(0.1, dimension=15, columns=d)
        pair = Neighbours.of(problem)
        one = seconds(lambda c=curator, p=pair: column_space_audit(c, p), 1)
        two = seconds(lambda c=curator, p=problem: canary_audit(c, p), 1)
        print(f"{problem} ({n} rows): column space, 20 + 20 releases {one:.2f} s", end="; ")
        print(f"canaries, 4 releases {two:.2f} s")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")


if __name__ == "__main__":
    main()
