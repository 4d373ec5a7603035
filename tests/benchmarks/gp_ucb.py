"""GP-UCB with the incremental posterior: whole runs, observations included, on one BLAS thread.

Run with ``make benchmarks``. The limits are ratios to a reference of plain numpy that runs in the
same process, about one and a half times what was measured.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest

from private_bo.gp import (
    FiniteDomain,
    FinitePosterior,
    Matern,
    NystromEmbedder,
    NystromPosterior,
    SquaredExponential,
)


def least_seconds(work: Callable[[], object], repeats: int = 5) -> float:
    """Processor seconds of the fastest of several runs."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def vector_rounds(points: int, rounds: int) -> None:
    """So many rounds of the least that a round can do: widths, a maximum, one update."""
    variance, row = np.ones(points), np.linspace(0.0, 1e-3, points)
    for _ in range(rounds):
        chosen = int((2.0 * np.sqrt(variance) + row).argmax())
        variance -= row * row[chosen]


def factorisation() -> None:
    """The linear algebra of 100 points: a product, a factor and its eigenvectors."""
    matrix = np.eye(100) + 0.5
    np.linalg.eigh(np.linalg.cholesky(matrix @ matrix))


def gp_ucb(domain: FiniteDomain, kernel: SquaredExponential, f: list, noise: list) -> int:
    posterior = FinitePosterior.of(domain, kernel, noise_variance=1.0)
    chosen = 0
    for error in noise:
        chosen = int(posterior.upper_confidence(beta=2.0).argmax())
        posterior.update(chosen, f[chosen] + error)
    return chosen


@pytest.mark.parametrize(
    ("per_axis", "dimensions", "horizon", "limit"),
    [(100, 1, 2_000, 4.2), (100, 1, 20_000, 4.2), (100, 2, 500, 60.0)],
    ids=["100 points, T=2000", "100 points, T=20000", "10000 points, T=500"],
)
def test_gp_ucb(benchmark, per_axis: int, dimensions: int, horizon: int, limit: float) -> None:
    domain = FiniteDomain.grid(per_axis, dimensions)
    rng = np.random.default_rng(0)
    f = np.sin(6 * domain.points).prod(axis=1)
    noise = rng.uniform(-1.0, 1.0, horizon).tolist()
    given = (domain, SquaredExponential(0.2), f.tolist(), noise)
    chosen = benchmark(gp_ucb, *given)
    assert f[chosen] > f.max() - 0.5
    reference = least_seconds(lambda: vector_rounds(per_axis**dimensions, horizon))
    assert least_seconds(lambda: gp_ucb(*given), 2) < limit * reference


def test_nystrom_round(benchmark) -> None:
    """One round of LDP-ATA-GP-UCB's linear algebra, all 100 points in the dictionary."""
    domain = FiniteDomain.grid(100)
    embedder = NystromEmbedder(domain, Matern(0.2, 2.5))
    counts, variance = np.full(100, 10), np.full(100, 0.01)
    rng = np.random.default_rng(0)

    def one_round() -> NystromPosterior:
        embedding = embedder.sample(counts, variance, 7770.0, rng)
        return NystromPosterior.fit(embedding, counts, noise_variance=1.0)

    posterior = benchmark(one_round)
    assert posterior.variance.min() > 0.0
    assert least_seconds(one_round) < 0.45 * least_seconds(factorisation)
