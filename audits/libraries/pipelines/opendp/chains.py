"""Measurements made of a domain, a transformation and noise, as OpenDP's documentation does."""

from __future__ import annotations

import opendp.prelude as dp

dp.enable_features("contrib")
REGIONS = ["east", "north", "south", "west"]
WHOLE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
TEXT = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
COUNTS = dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(T=int)


def ages(rows):
    """The column that most of them ask; larger integers than 32 bits hold are refused, and seen."""
    return [min(max(int(row["age"]), 0), 150) for row in rows]


def count(rows):
    """How many rows there are, with discrete Laplace noise."""
    return int((WHOLE >> dp.t.then_count() >> dp.m.then_laplace(scale=1.0))(ages(rows)))


def gaussian_count(rows):
    """The same, with discrete Gaussian noise."""
    return int((WHOLE >> dp.t.then_count() >> dp.m.then_gaussian(scale=1.0))(ages(rows)))


def distinct(rows):
    """How many ages occur."""
    return int((WHOLE >> dp.t.then_count_distinct() >> dp.m.then_laplace(scale=1.0))(ages(rows)))


def total(rows):
    """The sum of ages between 0 and 100."""
    clamped = WHOLE >> dp.t.then_clamp((0, 100)) >> dp.t.then_sum()
    return int((clamped >> dp.m.then_laplace(scale=100.0))(ages(rows)))


def sized(rows, transformation, scale):
    """What is asked of 60 real numbers between 0 and 100."""
    domain = dp.vector_domain(dp.atom_domain(bounds=(0.0, 100.0), nan=False), size=60)
    noisy = (domain, dp.symmetric_distance()) >> transformation >> dp.m.then_laplace(scale=scale)
    return float(noisy([min(float(age), 100.0) for age in ages(rows)]))


def real_total(rows):
    """Their sum."""
    return sized(rows, dp.t.then_sum(), 100.1)


def mean(rows):
    """Their mean."""
    return sized(rows, dp.t.then_mean(), 1.67)


def variance(rows):
    """Their variance."""
    return sized(rows, dp.t.then_variance(), 167.0)


def histogram(rows):
    """How many are from each region."""
    counted = TEXT >> dp.t.then_count_by_categories(categories=REGIONS, null_category=False)
    return (counted >> dp.m.then_laplace(scale=1.0))([row["region"] for row in rows])


def gaussian_histogram(rows):
    """The same, with Gaussian noise and in ρ."""
    counted = TEXT >> dp.t.then_count_by_categories(
        categories=REGIONS, null_category=False, MO=dp.L2Distance[int]
    )
    return (counted >> dp.m.then_gaussian(scale=1.0))([row["region"] for row in rows])


def known_keys(rows):
    """How many are from each region that occurs, if there are enough."""
    counted = TEXT >> dp.t.then_count_by()
    made = counted >> dp.m.then_laplace_threshold(scale=1.0, threshold=12)
    return sorted(made([row["region"] for row in rows]).items())


def median(rows):
    """The median age among multiples of ten."""
    candidates = list(range(0, 101, 10))
    scored = WHOLE >> dp.t.then_quantile_score_candidates(candidates, alpha=0.5)
    made = scored >> dp.m.then_noisy_max(dp.max_divergence(), scale=2.0, negate=True)
    return candidates[made(ages(rows))]


def commonest(rows):
    """The commonest region, by report noisy max."""
    counts = [sum(row["region"] == name for row in rows) for name in REGIONS]
    return int(dp.m.make_noisy_max(*COUNTS, dp.max_divergence(), scale=2.0)(counts))


def tree(rows):
    """Counts of ages in a binary tree."""
    edges = [25, 50, 75]
    bins = WHOLE >> dp.t.then_find_bin(edges=edges)
    whole = bins >> dp.t.then_count_by_categories(
        categories=[0, 1, 2, 3], null_category=False, TOA=int
    )
    made = whole >> dp.t.then_b_ary_tree(leaf_count=4, branching_factor=2)
    return (made >> dp.m.then_laplace(scale=3.0))(ages(rows))


def answer(rows):
    """Randomised response of the first one."""
    return bool(dp.m.make_randomized_response_bool(prob=0.73)(bool(rows[0]["smokes"])))


def word(rows):
    """The same with four answers."""
    made = dp.m.make_randomized_response(categories=[0, 1, 2, 3], prob=0.475)
    return int(made(REGIONS.index(rows[0]["region"])))
