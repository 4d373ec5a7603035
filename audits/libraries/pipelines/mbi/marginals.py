"""Marginals measured with noise, from which mbi (Private-PGM) estimates a distribution."""

from __future__ import annotations

import mbi
import numpy as np
from mbi import estimation
from mbi.marginal_loss import LinearMeasurement

REGIONS = ("east", "north", "south", "west")
DOMAIN = mbi.Domain(["smokes", "region", "decade"], [2, 4, 10])


def encoded(rows):
    """Each row as numbers of the domain."""
    return mbi.Dataset(
        {
            "smokes": np.array([int(bool(row["smokes"])) for row in rows]),
            "region": np.array([REGIONS.index(row["region"]) for row in rows]),
            "decade": np.array([int(np.clip(row["age"], 0, 99)) // 10 for row in rows]),
        },
        DOMAIN,
    )


def measured(data, rng, cliques, draw, **stddev):
    """Noisy marginals."""
    found = []
    for clique in cliques:
        marginal = np.asarray(data.project(clique).datavector())
        noisy = marginal + draw(rng, marginal.size)
        found.append(LinearMeasurement(noisy, clique, **stddev))
    return found


def estimated(measurements):
    """Every marginal of two attributes that the estimate gives."""
    model = estimation.MirrorDescent().estimate(DOMAIN, measurements, iters=20)
    return np.round(np.asarray(model.project(("smokes", "region")).datavector()), 3).tolist()


def normal(rng, size):
    """Gaussian noise."""
    return rng.normal(scale=4.0, size=size)


def laplace(rng, size):
    """Laplace noise."""
    return rng.laplace(scale=6.0, size=size)


def one_marginal(rows, rng):
    """One marginal of two attributes."""
    return estimated(measured(encoded(rows), rng, [("smokes", "region")], laplace))


def three_marginals(rows, rng):
    """All marginals of one attribute."""
    cliques = [("smokes",), ("region",), ("decade",)]
    return estimated(measured(encoded(rows), rng, cliques, laplace))


def gaussian_marginals(rows, rng):
    """All marginals of two attributes, with Gaussian noise."""
    cliques = [("smokes", "region"), ("region", "decade"), ("smokes", "decade")]
    return estimated(measured(encoded(rows), rng, cliques, normal, stddev=4.0))


def total_too(rows, rng):
    """A noisy number of rows beside a marginal."""
    data = encoded(rows)
    known = float(data.records) + rng.laplace(scale=2.0)
    return [float(known), *estimated(measured(data, rng, [("region",)], laplace))]


def synthetic(rows, rng):
    """A synthetic table of a public size, drawn from the estimate."""
    measurements = measured(encoded(rows), rng, [("smokes", "region")], laplace)
    model = estimation.MirrorDescent().estimate(DOMAIN, measurements, iters=20)
    np.random.seed(0)  # of the sampler, which needs no secret  # noqa: NPY002
    made = model.synthetic_data(rows=60)
    return np.asarray(made.project(("smokes", "region")).datavector()).tolist()


def exact_total(rows, rng):
    """A marginal scaled to the exact number of rows, which nobody noised."""
    data = encoded(rows)
    noisy = np.array(estimated(measured(data, rng, [("smokes", "region")], laplace)))
    return (noisy / noisy.sum() * float(data.records)).tolist()
