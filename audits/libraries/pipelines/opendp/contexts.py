"""Several queries: contexts, and compositions of measurements, adaptive or not."""

from __future__ import annotations

import opendp.prelude as dp

dp.enable_features("contrib")
WHOLE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
COUNT = WHOLE >> dp.t.then_count()
STEPS = range(20)


def ages(rows):
    """The column that most of them ask; larger integers than 32 bits hold are refused, and seen."""
    return [min(max(int(row["age"]), 0), 150) for row in rows]


def context(rows, queries, **loss):
    """What stands between the data and whoever asks."""
    return dp.Context.compositor(
        data=ages(rows),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(**loss),
        split_evenly_over=queries,
    )


def pair(rows):
    """A count and a sum, each with half of the budget."""
    asked = context(rows, 2, epsilon=1.0)
    counted = asked.query().count().laplace().release()
    return [counted, asked.query().clamp((0, 100)).sum().laplace().release()]


def four(rows):
    """Four queries."""
    asked = context(rows, 4, epsilon=1.0)
    found = [asked.query().count().laplace().release() for _ in range(2)]
    return found + [asked.query().clamp((0, 100)).sum().laplace().release() for _ in range(2)]


def gaussian_pair(rows):
    """A count and a sum with Gaussian noise."""
    asked = context(rows, 2, rho=0.5)
    counted = asked.query().count().gaussian().release()
    return [counted, asked.query().clamp((0, 100)).sum().gaussian().release()]


def adaptive(rows):
    """A count, and a sum only if the noisy count is large."""
    asked = context(rows, 2, epsilon=1.0)
    counted = asked.query().count().laplace().release()
    if counted < 10:
        return [counted]
    return [counted, asked.query().clamp((0, 100)).sum().laplace().release()]


def thresholds(rows):
    """How many are above each of twenty ages, in a composition."""
    made = dp.c.make_composition([COUNT >> dp.m.then_laplace(scale=20.0) for _ in STEPS])
    return made(ages(rows))


def compositor(rows):
    """Twenty counts of a compositor, asked one after the other."""
    made = dp.c.make_adaptive_composition(
        *WHOLE, dp.max_divergence(), d_in=1, d_mids=[0.05 for _ in STEPS]
    )
    queryable = made(ages(rows))
    return [queryable(COUNT >> dp.m.then_laplace(scale=20.0)) for _ in STEPS]


def gaussian_compositor(rows):
    """Twenty counts with Gaussian noise."""
    made = dp.c.make_adaptive_composition(
        *WHOLE, dp.zero_concentrated_divergence(), d_in=1, d_mids=[0.025 for _ in STEPS]
    )
    queryable = made(ages(rows))
    noisy = COUNT >> dp.m.then_gaussian(scale=4.48)
    return [queryable(noisy) for _ in STEPS]


def responses(rows):
    """Three answers of the first one, each by randomised response."""
    flips = dp.m.make_randomized_response_bool(prob=0.57)
    return [bool(flips(bool(rows[0]["smokes"]))) for _ in range(3)]
