"""Bandit problems: their truth, their users and the printed figures of the real data."""

from __future__ import annotations

import math
import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from dpaudit.errors import InputError
from private_bo.gp import FiniteDomain, Matern, SquaredExponential
from private_bo.problems import (
    BanditProblem,
    StudentNoise,
    UniformNoise,
    light_sensors,
    neighbourhood_prices,
    recorded_sales,
    stocks,
    synthetic,
)

needs_data = pytest.mark.skipif(
    "DPAUDIT_DATA" not in os.environ,
    reason="DPAUDIT_DATA does not name a directory with the recorded data sets",
)


def make(noise: UniformNoise | StudentNoise, seed: int = 0) -> BanditProblem:
    return synthetic(Matern(0.2, 2.5), noise, np.random.default_rng(seed))


def test_synthetic_problem_of_the_paper() -> None:
    problem = make(UniformNoise())
    assert problem.domain == FiniteDomain.grid(100)
    assert np.abs(problem.f).max() == 1.0
    assert (problem.B, problem.R, problem.v, problem.c) == (1.0, 1.0, 2.0, 1.0)
    assert problem.bounds_are_public
    assert problem.f[problem.best] == problem.f.max()
    assert np.array_equal(make(UniformNoise()).f, problem.f)
    assert not np.array_equal(make(UniformNoise(), seed=1).f, problem.f)


def test_synthetic_coefficients_are_uniform() -> None:
    """f before scaling is K a: undo the kernel and look at the coefficients' shape."""
    domain = FiniteDomain(np.arange(400.0)[:, np.newaxis])
    problem = synthetic(
        SquaredExponential(0.01), UniformNoise(), np.random.default_rng(2), domain=domain
    )
    assert problem.f.min() < -0.98
    assert abs(np.median(problem.f)) < 0.2
    assert np.mean(np.abs(problem.f) < 0.5) == pytest.approx(0.5, abs=0.13)


@pytest.mark.parametrize("noise", [UniformNoise(0.5), StudentNoise(5.0)])
def test_responses_have_the_mean_and_noise_they_declare(noise: UniformNoise | StudentNoise) -> None:
    problem = make(noise)
    rng = np.random.default_rng(9)
    answers = [problem.respond(17, rng) for _ in range(20_000)]
    errors = np.array([answer.value for answer in answers]) - problem.f[17]
    # Six standard errors of the mean: a false alarm has probability 2e-9.
    assert abs(errors.mean()) < 6 * math.sqrt(noise.second_moment / 20_000)
    assert np.abs(errors).max() <= problem.R + 1e-12
    assert len({answer.user for answer in answers}) == 20_000
    truth = 0.25 / 3 if isinstance(noise, UniformNoise) else 5 / 3
    assert errors.var() == pytest.approx(truth, rel=0.15)
    assert errors.var() <= problem.c * 1.15


def test_regret_is_cumulative() -> None:
    problem = make(UniformNoise())
    worst = int(problem.f.argmin())
    gap = problem.f.max() - problem.f.min()
    regret = problem.regret([problem.best, worst, problem.best, worst])
    assert regret == pytest.approx([0.0, gap, gap, 2 * gap])


@needs_data
def test_light_sensor_figures() -> None:
    problem = light_sensors()
    assert problem.domain.size == 41
    assert problem.best == 3
    assert round(problem.B, 1) == 945.5
    assert round(problem.R, 1) == 835.3
    assert round(problem.v) == 377_421
    assert round(problem.c) == 82_954
    assert not problem.bounds_are_public


@needs_data
def test_stock_figures() -> None:
    problem = stocks()
    assert problem.domain.size == 29
    assert problem.labels[problem.best] == "BA"
    assert round(problem.B, 1) == 237.3
    assert round(problem.R, 1) == 203.3
    assert round(problem.v) == 14_438
    assert round(problem.c) == 754
    assert not problem.bounds_are_public


@needs_data
def test_recorded_kernel_is_the_correlation_matrix() -> None:
    prices = np.genfromtxt(
        Path(os.environ["DPAUDIT_DATA"]) / "stocks" / "fin.csv", delimiter=",", skip_header=1
    )[:, 1:]
    problem = stocks()
    matrix = problem.domain.kernel_matrix(problem.kernel)
    assert matrix == pytest.approx(np.corrcoef(prices.T), abs=1e-12)
    rng = np.random.default_rng(0)
    assert {problem.respond(4, rng).value for _ in range(50)} <= set(prices[:, 4])


def small_table(directory: Path, rows: str) -> Path:
    file = directory / "fin.csv"
    file.write_text("Date,A,B\n" + rows)
    return file


def test_stocks_from_an_explicit_path(tmp_path: Path) -> None:
    problem = stocks(small_table(tmp_path, "1,1,10\n2,3,40\n3,2,70\n"))
    assert problem.f == pytest.approx([2.0, 40.0])
    assert (problem.B, problem.R, problem.best) == (40.0, 30.0, 1)
    assert problem.kernel.table[0, 1] == pytest.approx(0.5)


@pytest.mark.parametrize(
    "rows", ["1,x,2\n", "1,1,2\n2,1\n", "", "1,1,1\n2,1,2\n", "1,nan,1\n2,1,2\n"]
)
def test_a_table_that_is_not_one_is_refused(tmp_path: Path, rows: str) -> None:
    with pytest.raises(InputError, match=r"path is .*fin\.csv"):
        stocks(small_table(tmp_path, rows))


@pytest.mark.parametrize("loader", [light_sensors, stocks])
def test_missing_files_are_named(
    loader: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match="nowhere"):
        loader(tmp_path / "nowhere")
    monkeypatch.setenv("DPAUDIT_DATA", str(tmp_path))
    with pytest.raises(InputError, match="put the data there"):
        loader()
    monkeypatch.delenv("DPAUDIT_DATA")
    with pytest.raises(InputError, match="DPAUDIT_DATA is not set"):
        loader()


def test_a_file_that_is_no_sensor_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "iw_data_all.mat"
    for junk in (b"not a matlab file at all" * 20, b"junk\n", b"", b"MATLAB 5.0 MAT-file" * 30):
        file.write_bytes(junk)
        with pytest.raises(InputError, match=r"iw_data_all\.mat.*light sensor file"):
            light_sensors(file)


@pytest.mark.parametrize("junk", [b"junk\n", b"", b"\0\0\n\0", b"\xff\xfe", b'"' + b"x" * 200_000])
def test_a_file_that_is_no_table_of_prices_is_refused(tmp_path: Path, junk: bytes) -> None:
    file = tmp_path / "fin.csv"
    file.write_bytes(junk)
    with pytest.raises(InputError, match=r"fin\.csv"):
        stocks(file)


def test_recorded_sales_are_the_published_ones() -> None:
    sales = recorded_sales()
    prices = np.array([sale.price for sale in sales])
    assert len({sale.seller for sale in sales}) == 414
    assert prices.mean() == pytest.approx(37.980, abs=5e-4)
    assert (prices.min(), prices.max()) == (7.6, 117.5)


def test_simulated_sellers_answer_once_each() -> None:
    problem = neighbourhood_prices()
    rng = np.random.default_rng(6)
    answers = [problem.respond(problem.best, rng) for _ in range(3000)]
    assert len({answer.user for answer in answers}) == 3000
    assert problem.available.all()
    values = np.array([answer.value for answer in answers])
    # Six standard errors.
    assert abs(values.mean() - problem.f[problem.best]) < 6 * values.std() / math.sqrt(3000)


def test_public_bounds_hold_for_the_means_and_for_nearly_all_sales() -> None:
    problem = neighbourhood_prices()
    assert problem.bounds_are_public
    assert np.abs(problem.f).max() <= problem.B
    rewards = np.array([sale.reward for sale in recorded_sales()])
    assert np.mean(np.abs(rewards) > problem.B + problem.R) < 0.005


@pytest.mark.parametrize("answers", [1, 3])
def test_real_sellers_run_out(answers: int) -> None:
    problem = neighbourhood_prices(real=True, answers_per_user=answers)
    prices = {sale.seller: sale.reward for sale in recorded_sales()}
    rng = np.random.default_rng(4)
    asked: Counter[str] = Counter()
    for point in range(problem.domain.size):
        for _ in range(answers * 414):
            if not problem.available[point]:
                break
            answer = problem.respond(point, rng)
            assert answer.value == prices[answer.user]
            asked[answer.user] += 1
        with pytest.raises(InputError, match="still available"):
            problem.respond(point, rng)
    assert len(asked) == 370
    assert set(asked.values()) == {answers}
    problem.reset()
    assert problem.available.all()


def test_neighbourhoods_lie_around_their_sales() -> None:
    problem = neighbourhood_prices()
    assert problem.domain.dimension == 2
    spread = problem.domain.points.max(axis=0) - problem.domain.points.min(axis=0)
    assert (spread > 2.0).all()
    assert (spread < 12.0).all()
    for label in problem.labels:
        north, east = (float(part) for part in label.split()[::2])
        near = [
            sale
            for sale in recorded_sales()
            if abs(sale.latitude - north) <= 0.00351 and abs(sale.longitude - east) <= 0.00351
        ]
        assert len(near) >= 5


@pytest.mark.parametrize(
    "build",
    [
        lambda: UniformNoise(0.0),
        lambda: StudentNoise(2.0),
        lambda: make(UniformNoise()).respond(100, np.random.default_rng(0)),
        lambda: make(UniformNoise()).respond(-1, np.random.default_rng(0)),
        lambda: neighbourhood_prices(real=True, answers_per_user=0),
        lambda: neighbourhood_prices(answers_per_user=2),
    ],
)
def test_bad_problems_are_refused(build: object) -> None:
    with pytest.raises(InputError):
        build()
