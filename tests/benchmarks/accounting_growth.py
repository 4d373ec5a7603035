"""How the time of accounting grows: ε after each of many rounds, and very many mechanisms.

Run ``python -m tests.benchmarks.accounting_growth [--repeat 3]``. Medians of processor time, the
small and the large case in turn; it ends with 1 if a ratio is above what it may be.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from statistics import median

import numpy as np

from dpaudit.accounting import epsilon_after_rounds, guarantee
from dpaudit.mechanisms import Gaussian
from dpaudit.plan import Plan, PoissonSampling
from tests.benchmarks.accounting import DELTA, use

Task = Callable[[], object]


def rounds(number: int) -> Task:
    plan = Plan.of(use(Gaussian(1.0), sampling=PoissonSampling(0.01)))
    return lambda: epsilon_after_rounds(plan, DELTA, np.arange(1, number + 1), "pld")


def distinct(number: int, rate: float | None = None) -> Task:
    sampling = None if rate is None else PoissonSampling(rate)
    made = [use(Gaussian(1.0 + n / number), sampling=sampling) for n in range(number)]
    plan = Plan.of(*made)
    return lambda: guarantee(plan, DELTA)


CASES: tuple[tuple[str, Callable[[], tuple[Task, Task]], float], ...] = (
    ("ε after each of 4000 rounds over 2000", lambda: (rounds(2000), rounds(4000)), 2.2),
    ("10⁴ Gaussians over 10³", lambda: (distinct(1000), distinct(10_000)), 12.0),
    (
        "10⁴ sampled Gaussians over 10³",
        lambda: (distinct(1000, 0.01), distinct(10_000, 0.01)),
        12.0,
    ),
)


def seconds(task: Task) -> float:
    """Of the processor, for one run."""
    start = time.process_time()
    task()
    return time.process_time() - start


def main() -> int:
    """Print a line for each case; 1 if any grows faster than it may."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", default="", help="cases that contain this text")
    arguments = parser.parse_args()
    wrong = 0
    distinct(2)(), rounds(2)()  # imports
    for name, made, most in CASES:
        if arguments.only not in name:
            continue
        times = [[seconds(task) for task in made()] for _ in range(arguments.repeat)]
        small, large = (median(each) for each in zip(*times, strict=True))
        wrong += large / small > most
        print(f"{name:40} {small:8.3f} s {large:8.3f} s {large / small:6.2f} of {most}", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
