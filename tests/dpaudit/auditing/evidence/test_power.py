from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, laplace

from dpaudit.auditing.evidence.joint import joint_lower_bound, joint_p_value
from dpaudit.auditing.evidence.power import detectable, fewest_runs, power, runs_needed
from dpaudit.auditing.evidence.types import PairCounts
from dpaudit.errors import InputError


def test_power_agrees_with_enumeration_of_the_test():
    n, p, q, epsilon = 30, 0.8, 0.2, 0.5
    rejected = np.array(
        [
            [joint_p_value(PairCounts(a, n, b, n), epsilon, 0.0) <= 0.05 for b in range(n + 1)]
            for a in range(n + 1)
        ]
    )
    counts = np.arange(n + 1)
    truth = binom.pmf(counts, n, p) @ rejected @ binom.pmf(counts, n, q)
    assert power(p, q, n, n, epsilon, 0.0) == pytest.approx(truth, abs=0.05)


def test_power_at_the_boundary_is_at_most_the_level():
    assert power(0.5, 0.5 / math.e, 2000, 2000, 1.0, 0.0) <= 0.05


def test_power_matches_simulated_lower_bounds():
    # 80 trials: a deviation of 0.31 has probability below 1e-6 (Hoeffding).
    p, q, n = 0.3, 0.08, 1000
    generator = np.random.default_rng(3)
    hits, other = generator.binomial(n, p, 80), generator.binomial(n, q, 80)
    found = [
        joint_lower_bound(PairCounts(int(a), n, int(b), n), 0.0).refutes(1.0)
        for a, b in zip(hits, other, strict=True)
    ]
    assert power(p, q, n, n, 1.0, 0.0) == pytest.approx(np.mean(found), abs=0.31)


def test_runs_needed_has_the_wanted_power():
    runs = runs_needed(0.6, 0.1, 1.0, 0.0)
    assert power(0.6, 0.1, runs, runs, 1.0, 0.0) >= 0.9
    assert power(0.6, 0.1, int(0.85 * runs), int(0.85 * runs), 1.0, 0.0) < 0.9


def test_fewest_runs_is_where_the_extreme_outcome_becomes_unlikely():
    q = np.linspace(0, 1, 20001)
    for epsilon, delta in ((0.0, 0.0), (1.0, 1e-5), (3.0, 0.1)):
        chance = np.minimum(1, math.exp(epsilon) * q + delta) * (1 - q)
        runs = fewest_runs(epsilon, delta, 0.05)
        assert chance.max() ** runs <= 0.05 < chance.max() ** (runs - 1)


def test_detectable_laplace_scale():
    def family(scale: float) -> tuple[float, float]:
        return 0.5, float(laplace.cdf(0, 1, scale))

    scale = detectable(family, (1.0, 0.3), 2000, 1.0, 0.0)
    assert scale is not None
    assert power(*family(scale), 2000, 2000, 1.0, 0.0) >= 0.9
    assert power(*family(scale + 0.03), 2000, 2000, 1.0, 0.0) < 0.9
    assert detectable(family, (1.0, 0.95), 50, 1.0, 0.0) is None


def test_a_claim_that_holds_cannot_be_refuted_by_any_number_of_runs():
    with pytest.raises(InputError, match="must exceed"):
        runs_needed(0.3, 0.2, 1.0, 0.0)
