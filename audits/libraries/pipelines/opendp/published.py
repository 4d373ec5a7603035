"""What others have found wrong in OpenDP, as they describe it."""

from __future__ import annotations

import opendp.prelude as dp

dp.enable_features("contrib")
TEXT = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
FAR = 2.0**50


def keys(names):
    """Which names are shown: those whose noisy count is above a threshold."""
    counted = TEXT >> dp.t.then_count_by()
    return sorted((counted >> dp.m.then_laplace_threshold(scale=1.0, threshold=2))(names))


def loudest(scores):
    """The index of the largest score, in zero-concentrated privacy."""
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(T=int)
    made = dp.m.make_noisy_max(*space, dp.zero_concentrated_divergence(), scale=1.0)
    return int(made(scores))


def deviations(runs):
    """Squared deviations of 1024 numbers in [2^50, 2^50 + 1]; as [more than that, how often]."""
    values = [FAR + more for more, times in runs for _ in range(times)]
    domain = dp.vector_domain(dp.atom_domain(bounds=(FAR, FAR + 1), nan=False), size=1024)
    summed = dp.t.make_sum_of_squared_deviations(domain, dp.symmetric_distance())
    return float((summed >> dp.m.then_laplace(scale=summed.map(2)))(values))
