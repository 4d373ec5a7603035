"""The modeller against the dense formulas of the paper."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest

from dpaudit.base.errors import InputError
from private_bo.outsourced import Hyperparameters, InputModel, Modeller, Release

RNG = np.random.default_rng(7)
POINTS = RNG.uniform(-10.0, 10.0, size=(60, 2))
F = np.sin(POINTS[:, 0] / 3) + np.cos(POINTS[:, 1] / 4)


def gram_of(inputs, length):
    scaled, share = inputs.scaled(length), inputs.share(length)
    gram = share * inputs.kernel(length)(scaled, scaled)
    np.fill_diagonal(gram, 1.0)
    return gram


@pytest.mark.parametrize("model", [InputModel.ORDINARY, InputModel.EXPECTED])
def test_queries_are_those_of_the_dense_formulas(model):
    """Equation (1) and Algorithm 2 of the paper, with all matrices written out."""
    release = Release(POINTS + RNG.normal(size=POINTS.shape), 1.0)
    parameters = Hyperparameters(3.0, mean=0.3, signal_variance=1.7, noise_variance=1e-3)
    modeller = Modeller(parameters, steps=15, initial=4, width_multiplier=0.8, inputs=model)
    search = modeller.run(release, lambda row: float(F[row]), np.random.default_rng(0))
    K = 1.7 * gram_of(model.read(release), 3.0)
    for t in range(1, 16):
        asked = search.rows[: 3 + t]
        inverse = np.linalg.inv(K[np.ix_(asked, asked)] + 1e-3 * np.eye(len(asked)))
        mean = 0.3 + K[:, asked] @ inverse @ (F[asked] - 0.3)
        variance = 1.7 - np.einsum("ij,jk,ik->i", K[:, asked], inverse, K[:, asked])
        beta = 2 * math.log(60 * t**2 * math.pi**2 / (6 * 0.025))
        scores = mean + 0.8 * math.sqrt(beta) * np.sqrt(np.maximum(variance, 0.0))
        scores[asked] = -np.inf
        assert scores.max() - scores[search.rows[3 + t]] < 1e-6
    assert search.best == search.rows[F[search.rows].argmax()]


@pytest.mark.parametrize("model", list(InputModel))
@pytest.mark.parametrize("known", [True, False], ids=["given", "fitted"])
def test_a_row_is_never_asked_twice(model, known):
    parameters = Hyperparameters(3.0, noise_variance=0.05) if known else None
    modeller = Modeller(parameters, steps=40, initial=5, inputs=model)
    search = modeller.run(Release(POINTS, 1.0), lambda row: F[row], np.random.default_rng(0))
    assert len(set(search.rows.tolist())) == 45


def test_all_rows_can_be_asked():
    modeller = Modeller(Hyperparameters(3.0), steps=50, initial=10)
    search = modeller.run(Release(POINTS), lambda row: F[row], np.random.default_rng(0))
    assert sorted(search.rows.tolist()) == list(range(60))


def test_fewer_rows_than_queries():
    with pytest.raises(InputError, match="at least the 61"):
        Modeller(steps=51).run(Release(POINTS), float, np.random.default_rng(0))


def test_an_output_that_is_no_number():
    with pytest.raises(InputError, match="output"):
        Modeller().run(Release(POINTS), lambda _: math.inf, np.random.default_rng(0))


@pytest.mark.parametrize(
    "fields",
    [
        {"steps": -1},
        {"initial": 1, "hyperparameters": None},
        {"confidence": 0.0},
        {"width_multiplier": 0.0},
        {"inputs": "none"},
    ],
)
def test_bad_fields(fields):
    with pytest.raises(InputError):
        Modeller(**fields)


def test_equal_rows_and_equal_outputs_are_borne():
    release = Release(np.ones((20, 2)), 0.5)
    search = Modeller(None, steps=5, initial=3).run(release, lambda _: 1.0, RNG)
    assert search.rows.size == 8


def test_time_grows_linearly_in_rows():
    """42 299 rows are within a small multiple of the half second that is promised for them."""
    rng = np.random.default_rng(0)
    release = Release(rng.uniform(-15.0, 15.0, size=(42_299, 3)), 0.4)
    begin = time.process_time()
    Modeller().run(release, lambda row: math.sin(row), rng)
    assert time.process_time() - begin < 2.0
