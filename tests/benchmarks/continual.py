"""Prefix sums under continual observation: error at μ = 1 (ρ = 1/2), memory and time of a stream.

Run ``python -m tests.benchmarks.continual [steps ...]``; each number is computed in this run.
"""

from __future__ import annotations

import math
import sys
import time

import numpy as np

from dpaudit.ledger.samplers.streams import noise_stream
from dpaudit.mechanisms import BinaryTree, BufferedToeplitz, HonakerTree, SquareRootToeplitz
from dpaudit.mechanisms.continual import Factorization

SIDE = 28
PATTERN = (16, 64)


def factorizations(steps: int) -> list[tuple[str, Factorization]]:
    return [
        ("tree, root released", BinaryTree(steps, release_root=True)),
        ("tree", BinaryTree(steps)),
        ("Honaker, root released", HonakerTree(steps, release_root=True)),
        ("Honaker", HonakerTree(steps)),
        ("square root", SquareRootToeplitz(steps)),
        *((f"{d} buffers", BufferedToeplitz.fitted(steps, d)) for d in (3, 4, 5, 6, 8)),
        ("5 buffers, fitted to pattern", BufferedToeplitz.fitted(steps, 5, *PATTERN)),
    ]


def least_error(steps: int) -> float:
    """No factorisation is below ‖A‖_*/T."""
    angles = (2 * np.arange(1, steps + 1) - 1) * math.pi / (4 * steps + 2)
    return float((0.5 / np.sin(angles)).sum() / steps)


def stream_cost(factorization: Factorization) -> tuple[float, int]:
    """Seconds for all steps of symmetric matrices, and the arrays held at once."""
    stream = noise_stream(
        factorization, (SIDE, SIDE), 1.0, np.random.default_rng(0), symmetric=True
    )
    held, begin = 0, time.perf_counter()
    for _ in range(factorization.steps):
        stream.step()
        held = max(held, stream.state_arrays)
    return time.perf_counter() - begin, held


def main(lengths: list[int]) -> None:
    for steps in lengths:
        begin = time.perf_counter()
        BufferedToeplitz.fitted(steps)
        fit = time.perf_counter() - begin
        print(f"\nT = {steps}; no factorisation below {least_error(steps):.4f}; fit {fit:.2f} s")
        print(f"largest standard deviation at mu = 1; stream of {SIDE}x{SIDE} symmetric matrices")
        count, gap = PATTERN
        print(f"{'':30}{'one part.':>12}{f'{count} by {gap}':>12}{'arrays':>8}{'seconds':>9}")
        for name, factorization in factorizations(steps):
            single = factorization.max_error(factorization.sensitivity())
            several = factorization.max_error(factorization.sensitivity(*PATTERN))
            seconds, held = stream_cost(factorization)
            print(f"{name:30}{single:12.4f}{several:12.4f}{held:8d}{seconds:9.3f}")


if __name__ == "__main__":
    main([int(argument) for argument in sys.argv[1:]] or [1000, 1024, 10_000])
