"""How far noise reaches, against its law."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy import stats

from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    GaussianVector,
    Laplace,
    LaplaceVector,
    Staircase,
    TruncatedLaplace,
)
from dpaudit.workflow.calibrating import accurate

CONFIDENCES = [1e-9, 0.05, 0.5, 0.95, 0.999999]


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("scale", [1e-300, 0.3, 7.0, 1e300])
def test_laplace_and_normal_noise_have_closed_forms(scale, confidence):
    with mpmath.workdps(40):
        miss = 1 - mpmath.mpf(confidence)
        laplace = -scale * mpmath.log(miss)
        normal = scale * mpmath.sqrt(2) * mpmath.erfinv(mpmath.mpf(confidence))
    assert Laplace(scale).accuracy(confidence) == pytest.approx(float(laplace), rel=1e-6)
    assert Gaussian(scale).accuracy(confidence) == pytest.approx(float(normal), rel=1e-6)


def within(mechanism, reach: int):
    """P(|noise| ≤ reach) of whole noise, by its masses."""
    with mpmath.workdps(40):
        if isinstance(mechanism, DiscreteLaplace):
            ratio = mpmath.exp(-1 / mpmath.mpf(mechanism.scale))
            return 1 - 2 * ratio ** (reach + 1) / (1 + ratio)
        sigma = mpmath.mpf(mechanism.sigma)
        ends = range(1, math.ceil(20 * mechanism.sigma) + 3)
        masses = [mpmath.exp(-(mpmath.mpf(k) ** 2) / 2 / sigma**2) for k in ends]
        whole = 1 + 2 * mpmath.fsum(masses)
        return (1 + 2 * mpmath.fsum(masses[:reach])) / whole


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize(
    "mechanism",
    [
        DiscreteLaplace(0.01),
        DiscreteLaplace(0.7),
        DiscreteLaplace(12.5),
        DiscreteLaplace(1e6),
        DiscreteGaussian(0.05),
        DiscreteGaussian(1.3),
        DiscreteGaussian(40.0),
    ],
    ids=str,
)
def test_whole_noise_reaches_the_least_whole_number(mechanism, confidence):
    reach = mechanism.accuracy(confidence)
    assert reach == int(reach)
    assert within(mechanism, int(reach)) >= confidence
    assert reach == 0 or within(mechanism, int(reach) - 1) < confidence * (1 + 1e-9)


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize(
    "mechanism",
    [
        TruncatedLaplace(2.0, 5.0),
        TruncatedLaplace(2.0, 500.0),
        Staircase(1.0, 1.0),
        Staircase(0.3, 4.0, 0.2),
        Staircase(5.0, 2.0),
        Laplace(3.0),
        Gaussian(3.0),
    ],
    ids=str,
)
def test_the_tail_beyond_is_what_is_missed(mechanism, confidence):
    reach = mechanism.accuracy(confidence)
    tails = mechanism.noise_tails(np.array([reach]), np.random.default_rng(0))
    assert tails.tails[0] == pytest.approx(1 - confidence, rel=1e-6, abs=1e-12)


def test_draws_stay_within_it():
    """Of 20 000 draws of each: beyond 5.4 standard deviations with a probability below 1e-7."""
    for mechanism in (Laplace(2.0), Gaussian(2.0), Staircase(1.0, 1.0), TruncatedLaplace(1.0, 3.0)):
        noise = mechanism.noise((20_000,), np.random.default_rng(1))
        share = np.mean(np.abs(noise) <= mechanism.accuracy(0.9))
        assert abs(share - 0.9) < 5.4 * math.sqrt(0.09 / 20_000)


def test_several_entries_reach_further_together():
    alone, many = Gaussian(1.0).accuracy(0.95), Gaussian(1.0).accuracy(0.95, entries=100)
    assert many == pytest.approx(stats.norm.isf((1 - 0.95 ** (1 / 100)) / 2), rel=1e-9)
    assert many > alone


def test_of_a_box_the_widest_entry_counts():
    assert GaussianVector((1.0, 3.0), (1.0, 1.0)).accuracy() == pytest.approx(
        Gaussian(3.0).accuracy()
    )
    assert LaplaceVector((1.0, 3.0), (1.0, 1.0)).accuracy() == pytest.approx(
        Laplace(3.0).accuracy()
    )


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1, "a", math.nan])
def test_a_confidence_that_is_none_is_refused(confidence):
    with pytest.raises(InputError, match="confidence"):
        Laplace(1.0).accuracy(confidence)


PLAN = {"unit": "row", "relation": "add-remove", "trust": "central"}


@pytest.mark.parametrize(
    ("item", "key", "made"),
    [
        ({"mechanism": "laplace", "scale": 1.0}, "scale", Laplace),
        ({"mechanism": "gaussian", "sigma": 1.0}, "sigma", Gaussian),
        ({"mechanism": "discrete-laplace", "scale": 1.0}, "scale", DiscreteLaplace),
        ({"mechanism": "discrete-gaussian", "sigma": 1.0}, "sigma", DiscreteGaussian),
    ],
)
def test_the_most_noise_for_an_accuracy(item, key, made):
    content = {"plan": PLAN, "invocation": [item | {"sensitivity": 1.0}]}
    found = accurate(content, 50.0, 0.99)
    ((name, value),) = found.noise.values()
    assert name == key
    assert made(value).accuracy(0.99) <= 50 < made(value * 1.02).accuracy(0.99) * 1.001


def test_what_has_no_accuracy_is_refused():
    content = {"plan": PLAN, "invocation": [{"mechanism": "exponential", "epsilon": 1.0}]}
    with pytest.raises(UnsupportedError, match="so it has no accuracy"):
        accurate(content, 5.0)
    two = [{"mechanism": "laplace", "scale": 1.0, "sensitivity": 1.0}] * 2
    with pytest.raises(InputError, match="name one of them"):
        accurate({"plan": PLAN, "invocation": two}, 5.0)
