"""GP-UCB with the incremental posterior: whole runs, observations included, on one BLAS thread.

Run with ``make benchmarks``; the limits are several times what an ordinary core needs.
"""

from __future__ import annotations

import numpy as np
import pytest

from private_bo.gp import (
    Coordinates,
    FiniteDomain,
    FinitePosterior,
    Matern,
    NystromEmbedder,
    NystromPosterior,
    SquaredExponential,
)


def gp_ucb(domain: FiniteDomain, kernel: SquaredExponential, f: list, noise: list) -> int:
    posterior = FinitePosterior.of(domain, kernel, noise_variance=1.0)
    chosen = 0
    for error in noise:
        chosen = int(posterior.upper_confidence(beta=2.0).argmax())
        posterior.update(chosen, f[chosen] + error)
    return chosen


@pytest.mark.parametrize(
    ("per_axis", "dimensions", "horizon", "limit"),
    [(100, 1, 2_000, 0.06), (100, 1, 20_000, 0.6), (100, 2, 500, 1.5)],
    ids=["100 points, T=2000", "100 points, T=20000", "10000 points, T=500"],
)
def test_gp_ucb(benchmark, per_axis: int, dimensions: int, horizon: int, limit: float) -> None:
    domain = FiniteDomain.grid(per_axis, dimensions)
    rng = np.random.default_rng(0)
    f = np.sin(6 * domain.points).prod(axis=1)
    noise = rng.uniform(-1.0, 1.0, horizon).tolist()
    chosen = benchmark(gp_ucb, domain, SquaredExponential(0.2), f.tolist(), noise)
    assert f[chosen] > f.max() - 0.5
    assert benchmark.stats.stats.min < limit


@pytest.mark.parametrize("basis", list(Coordinates), ids=lambda basis: basis.value)
def test_nystrom_round(benchmark, basis: Coordinates) -> None:
    """One round of LDP-ATA-GP-UCB's linear algebra, all 100 points in the dictionary."""
    domain = FiniteDomain.grid(100)
    embedder = NystromEmbedder(domain, Matern(0.2, 2.5), basis)
    counts, variance = np.full(100, 10), np.full(100, 0.01)
    rng = np.random.default_rng(0)

    def one_round() -> NystromPosterior:
        embedding = embedder.sample(counts, variance, 7770.0, rng)
        return NystromPosterior.fit(embedding, counts, noise_variance=1.0)

    posterior = benchmark(one_round)
    assert posterior.variance.min() > 0.0
    assert benchmark.stats.stats.min < 2e-3
