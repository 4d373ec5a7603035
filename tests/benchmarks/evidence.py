"""How many runs the evidence needs: lower bounds, pairs to refute, false alarms, and time.

Run ``python -m tests.benchmarks.evidence [--seeds 30] [--false-alarms 300]``; prints one table.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from dpaudit.auditing.evidence.eprocess import CurveEProcess
from tests.support.split_bounds import split_lower_bound

Floats = NDArray[np.float64]
Sampler = Callable[[np.random.Generator, float, int], Floats]
Curve = Callable[[Floats], Floats]

SIGMA = 3.7306
ALPHA = 0.05


def laplace(scale: float) -> Sampler:
    return lambda generator, centre, size: generator.laplace(centre, scale, size)


def normal(scale: float) -> Sampler:
    return lambda generator, centre, size: generator.normal(centre, scale, size)


def laplace_curve(epsilons: Floats) -> Floats:
    return np.maximum(0.0, -np.expm1((epsilons - 1) / 2))


def gaussian_curve(epsilons: Floats) -> Floats:
    mu = 1 / SIGMA
    return ndtr(mu / 2 - epsilons / mu) - np.exp(epsilons) * ndtr(-mu / 2 - epsilons / mu)


def pairs_to_refute(sampler: Sampler, process: CurveEProcess, seed: int, most: int) -> float:
    """Pairs until refutation, the pilot included; infinite if ``most`` were not enough."""
    generator = np.random.default_rng(seed)
    while process.pairs < most:
        size = 64 if process.pairs == 0 else max(32, process.pairs // 16)
        process.update(sampler(generator, 1.0, size), sampler(generator, 0.0, size))
        if process.e_value >= 1 / ALPHA:
            return float(process.pairs)
    return math.inf


def lower_bounds(sampler: Sampler, delta: float, seeds: int) -> Floats:
    found = []
    for seed in range(seeds):
        generator = np.random.default_rng(seed)
        scores = sampler(generator, 1.0, 10_000), sampler(generator, 0.0, 10_000)
        found.append(split_lower_bound(*scores, delta, 1 - ALPHA))
    return np.array(found)


def show_bounds(seeds: int) -> None:
    print(f"{'lower bound, 10 000 runs a side':42}{'median':>9}{'target':>9}{'too high':>10}")
    for name, sampler, delta, target in (
        ("Laplace, true epsilon 1", laplace(1.0), 0.0, 0.94),
        ("Gaussian, true (1, 1e-5)", normal(SIGMA), 1e-5, 0.44),
    ):
        found = lower_bounds(sampler, delta, seeds)
        wrong = f"{(found > 1).sum()}/{seeds}"
        print(f"{name:42}{np.median(found):9.3f}{'≥ ' + str(target):>9}{wrong:>10}", flush=True)


def show_pairs(seeds: int) -> None:
    print(f"\n{'pairs to refute, 5 %':42}{'median':>9}{'target':>9}{'refuted':>10}{'most':>9}")
    rows: list[tuple[str, Sampler, Callable[[], CurveEProcess], int]] = [
        ("Laplace, half the scale", laplace(0.5), lambda: CurveEProcess(laplace_curve), 300),
        ("Laplace, 0.9 of the scale", laplace(0.9), lambda: CurveEProcess(laplace_curve), 6000),
        ("Gaussian, half sigma", normal(SIGMA / 2), lambda: CurveEProcess(gaussian_curve), 700),
    ]
    for name, sampler, process, target in rows:
        needed = [pairs_to_refute(sampler, process(), seed, 20 * target) for seed in range(seeds)]
        hits = f"{np.isfinite(needed).sum()}/{seeds}"
        line = f"{name:42}{np.median(needed):9.0f}{'≤ ' + str(target):>9}{hits:>10}"
        print(f"{line}{max(needed):9.0f}", flush=True)


def show_false_alarms(trials: int) -> None:
    print(f"\n{'false alarms within 10 000 pairs, 5 %':42}{'alarms':>9}")
    rows: list[tuple[str, Sampler, Callable[[], CurveEProcess]]] = [
        ("Laplace", laplace(1.0), lambda: CurveEProcess(laplace_curve)),
        ("Gaussian", normal(SIGMA), lambda: CurveEProcess(gaussian_curve)),
    ]
    for name, sampler, process in rows:
        # Seeds apart from those of the other tables.
        seeds = range(10_000, 10_000 + trials)
        needed = [pairs_to_refute(sampler, process(), seed, 10_000) for seed in seeds]
        print(f"{name:42}{f'{np.isfinite(needed).sum()}/{trials}':>9}", flush=True)


def show_time() -> None:
    generator = np.random.default_rng(0)
    x, y = generator.normal(1, SIGMA, 10**6), generator.normal(0, SIGMA, 10**6)
    start = time.perf_counter()
    CurveEProcess(gaussian_curve).update(x, y)
    middle = time.perf_counter()
    split_lower_bound(x, y, 1e-5)
    end = time.perf_counter()
    print(f"\n{'a million pairs, seconds':42}")
    print(f"{'e-process':42}{middle - start:9.2f}{'≤ 3':>9}")
    print(f"{'split lower bound':42}{end - middle:9.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--false-alarms", type=int, default=300)
    options = parser.parse_args()
    show_bounds(options.seeds)
    show_pairs(options.seeds)
    show_false_alarms(options.false_alarms)
    show_time()


if __name__ == "__main__":
    main()
