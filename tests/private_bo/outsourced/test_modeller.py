"""What curator and modeller exchange."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from dpaudit.base.errors import InputError
from private_bo.gp import SquaredExponential
from private_bo.outsourced import AnswerDesk, Hyperparameters, InputModel, Modeller, Release
from private_bo.outsourced.modeller import Inputs, most_likely
from private_bo.outsourced.problems import scale_to_norm

RNG = np.random.default_rng(20200712)
ROWS = scale_to_norm(RNG.normal(size=(40, 2)))


def test_desk_answers_each_row_once():
    desk = AnswerDesk(3, lambda row: 10.0 * row)
    assert desk.ask(2) == 20.0
    with pytest.raises(InputError, match="row is 2, which has been measured"):
        desk.ask(2)
    assert desk.ask(np.int64(0)) == 0.0


@pytest.mark.parametrize("row", [3, -1, 0.5, True, "1", None])
def test_desk_refuses_rows_that_do_not_exist(row):
    with pytest.raises(InputError, match="integer of at least 0"):
        AnswerDesk(3, float).ask(row)


def test_desk_refuses_outputs_that_are_no_numbers():
    for output in (math.nan, "HIV positive"):
        with pytest.raises(InputError, match="output is not shown; it must be a finite") as said:
            AnswerDesk(3, lambda _, output=output: output).ask(0)
        assert "HIV" not in str(said.value)


def test_release_cannot_be_written_to():
    release = Release(ROWS)
    with pytest.raises(ValueError, match="read-only"):
        release.points[0, 0] = 1.0


RNG_MODELLER = np.random.default_rng(7)
POINTS = RNG_MODELLER.uniform(-10.0, 10.0, size=(60, 2))
F = np.sin(POINTS[:, 0] / 3) + np.cos(POINTS[:, 1] / 4)


def gram_of(inputs, length):
    gram = inputs.share(length) * inputs.kernel(length)(inputs.means, inputs.means)
    np.fill_diagonal(gram, 1.0)
    return gram


def test_expected_kernel_against_quadrature():
    release = Release(POINTS, noise_variance=2.0)
    inputs = Inputs.given(release)
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    length = 3.0
    expected = 1.0
    for j in range(2):  # coordinates are independent
        prior = POINTS[:, j].var() - 2.0
        mean = (POINTS[:, j] - POINTS[:, j].mean()) * prior / (prior + 2.0)
        spread = math.sqrt(prior * 2.0 / (prior + 2.0))
        x = mean[4] + spread * nodes[:, None]
        y = mean[9] + spread * nodes[None, :]
        factor = np.exp(-((x - y) ** 2) / (2 * length**2))
        expected *= float(weights @ factor @ weights) / weights.sum() ** 2
    assert gram_of(inputs, length)[4, 9] == pytest.approx(expected, rel=1e-10)


def test_expected_kernel_is_a_covariance():
    gram = gram_of(Inputs.given(Release(POINTS, 9.0)), 3.0)
    assert np.linalg.eigvalsh(gram)[0] > 0


def test_without_noise_all_models_are_the_plain_one():
    for model in InputModel:
        inputs = model.read(Release(POINTS))
        expected = SquaredExponential(4.0)(POINTS, POINTS)
        np.testing.assert_allclose(gram_of(inputs, 4.0), expected, atol=1e-12)


def test_hyperparameters_maximise_the_likelihood():
    inputs = InputModel.ORDINARY.read(Release(POINTS))
    truth = Hyperparameters(4.0, mean=5.0, signal_variance=2.0, noise_variance=0.02)
    gram = 2.0 * gram_of(inputs, 4.0) + 0.02 * np.eye(60)
    y = 5.0 + np.linalg.cholesky(gram) @ np.random.default_rng(2).standard_normal(60)

    def log_likelihood(p):
        covariance = p.signal_variance * gram_of(inputs, p.length_scale)
        covariance += p.noise_variance * np.eye(60)
        return multivariate_normal(np.full(60, p.mean), covariance).logpdf(y)

    found = most_likely(inputs, range(60), y.tolist())
    assert log_likelihood(found) > log_likelihood(truth) - 2  # both are searched on a grid
    for factor in (0.9, 1.1):  # mean and signal are stationary at fixed length and noise ratio
        other = Hyperparameters(
            found.length_scale,
            found.mean,
            factor * found.signal_variance,
            factor * found.noise_variance,
        )
        assert log_likelihood(other) < log_likelihood(found)
        moved = Hyperparameters(
            found.length_scale, factor * found.mean, found.signal_variance, found.noise_variance
        )
        assert log_likelihood(moved) < log_likelihood(found)


@pytest.mark.parametrize("model", list(InputModel))
def test_queries_are_those_of_the_dense_formulas(model):
    """Equation (1) and Algorithm 2 of the paper, with all matrices written out."""
    release = Release(POINTS + RNG_MODELLER.normal(size=POINTS.shape), 1.0)
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
    with pytest.raises(InputError, match="at least as many rows as there are queries, 61"):
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
    search = Modeller(None, steps=5, initial=3).run(release, lambda _: 1.0, RNG_MODELLER)
    assert search.rows.size == 8


def test_time_grows_linearly_in_rows():
    """42 299 rows are within a small multiple of the half second that is promised for them."""
    rng = np.random.default_rng(0)
    release = Release(rng.uniform(-15.0, 15.0, size=(42_299, 3)), 0.4)
    begin = time.process_time()
    Modeller().run(release, lambda row: math.sin(row), rng)
    assert time.process_time() - begin < 2.0
