"""Processor time and memory of a run of the joint algorithm; each number is computed in this run.

Run ``python -m tests.benchmarks.joint``.
"""

from __future__ import annotations

import time

import numpy as np

from dpaudit import Ledger
from private_bo.gp import Ball, EigenFeatures, SquaredExponential
from private_bo.joint import ContinualNoise, JointGPUCB
from private_bo.joint.experiments.table1 import configuration
from private_bo.joint.subject import DecisionProblem, benchmark, bump


def seconds(algorithm: JointGPUCB, problem: DecisionProblem, repeats: int) -> float:
    """The least processor time of a run; calibration and the feature grid are made beforehand."""
    plan = algorithm.plan()
    algorithm.feature_map(problem.decision_set(0))
    best = float("inf")
    for seed in range(repeats):
        start = time.process_time()
        with Ledger(plan, rng=np.random.default_rng(seed)) as ledger:
            algorithm.run(problem, ledger, np.random.default_rng(seed))
        best = min(best, time.process_time() - start)
    return best


def arrays(kind: ContinualNoise, steps: int) -> int:
    """The largest number of noise arrays that a stream holds."""
    noise = kind.factorization(steps).sampler((1,), 1.0, np.random.default_rng(0))
    most = 0
    for _ in range(steps):
        noise.step()
        most = max(most, noise.state_arrays)
    return most


def main() -> None:
    problem = bump(np.random.default_rng(0))
    for size in (28, 78):
        features = EigenFeatures(SquaredExponential(1.0), Ball(2.0, 2), size)
        took = seconds(JointGPUCB(feature_map=features), problem, 3)
        print(f"T = 1024, {size} features: {took:.2f} s")
    for kind in ContinualNoise:
        print(f"T = 1024, {kind}: at most {arrays(kind, 1024)} noise arrays held")
    name = "styblinski-tang-20"
    large = benchmark(name, np.random.default_rng(0), 10_000)
    print(f"T = 10000, {name}, 160 features: {seconds(configuration(name), large, 1):.1f} s")


if __name__ == "__main__":
    main()
