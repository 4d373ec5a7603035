"""What recording costs: calls of libraries with and without, in turns, in one process.

``python -m tests.benchmarks.observing`` prints the median of the differences of neighbouring turns.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from dpaudit import FloatNoise, Ledger, PrivacyUnit, ReplaceOne
from dpaudit.observing import noting, plan_of, through

TURNS = 20
CALLS = 200


def numpy_noise() -> tuple[str, Callable[[], Any]]:
    rng = np.random.default_rng(0)
    del rng
    return "numpy", lambda: 3.0 + np.random.laplace(scale=2.0)  # noqa: NPY002


def diffprivlib_noise() -> tuple[str, Callable[[], Any]]:
    from diffprivlib.mechanisms import Laplace

    own = Laplace(epsilon=1.0, sensitivity=2.0)
    return "diffprivlib", lambda: own.randomise(3.0)


def diffprivlib_mean() -> tuple[str, Callable[[], Any]]:
    from diffprivlib import tools

    ages = np.linspace(0, 100, 10_000)
    return "diffprivlib", lambda: tools.mean(ages, bounds=(0, 100))


def opendp_sum() -> tuple[str, Callable[[], Any]]:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    chain = space >> dp.t.then_clamp((0.0, 1.0)) >> dp.t.then_sum() >> dp.m.then_laplace(scale=1.0)
    rows = [0.5] * 1000
    return "opendp", lambda: chain(rows)


def seconds(code: Callable[[], Any], block: AbstractContextManager[Any]) -> float:
    """Of one call, in a block that is entered before."""
    with block:
        start = time.perf_counter()
        for _ in range(CALLS):
            code()
        return (time.perf_counter() - start) / CALLS


def pairs(library: str, code: Callable[[], Any]) -> Iterator[tuple[float, float, float]]:
    """Seconds of a call as it is, noted, and through a ledger."""
    import contextlib

    with noting(ReplaceOne(), library) as notes:
        for _ in range(CALLS):
            code()
    plan = plan_of(notes.noted(PrivacyUnit("row"), ReplaceOne()))
    for _ in range(TURNS):
        ledger = Ledger(plan, noise=FloatNoise())
        yield (
            seconds(code, contextlib.nullcontext()),
            seconds(code, noting(ReplaceOne(), library)),
            seconds(code, through(ledger, library)),
        )


def main() -> None:
    """Print one line for each kind of call."""
    for made in (numpy_noise, diffprivlib_noise, diffprivlib_mean, opendp_sum):
        library, code = made()
        turns = list(pairs(library, code))
        plain, *_ = (statistics.median(turn[0] for turn in turns),)
        noted = statistics.median(turn[1] - turn[0] for turn in turns)
        ledger = statistics.median(turn[2] - turn[0] for turn in turns)
        print(
            f"{made.__name__:>18}: {1e6 * plain:8.1f} µs a call; noted {1e6 * noted:+6.1f} µs, "
            f"through a ledger {1e6 * ledger:+6.1f} µs"
        )


if __name__ == "__main__":
    main()
