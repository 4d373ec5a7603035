"""Where data sets are looked for."""

from __future__ import annotations

import math
import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from dpaudit.base.errors import InputError
from private_bo.problems import light_sensors, neighbourhood_prices, recorded_sales, stocks


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
    assert problem.domain.points.shape[1] == 2
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


needs_data = pytest.mark.skipif(
    "DPAUDIT_DATA" not in os.environ,
    reason="DPAUDIT_DATA does not name a directory with the recorded data sets",
)


@needs_data
@pytest.mark.parametrize(
    ("loader", "size", "figures"),
    [
        (light_sensors, 41, (945.5, 835.3, 377_421, 82_954)),
        (stocks, 29, (237.3, 203.3, 14_438, 754)),
    ],
)
def test_recorded_figures(loader, size: int, figures: tuple[float, ...]) -> None:
    problem = loader()
    assert problem.domain.size == size
    assert problem.best == 3 or problem.labels[problem.best] == "BA"
    found = round(problem.B, 1), round(problem.R, 1), round(problem.v), round(problem.c)
    assert found == figures
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


MATLAB = (b"not a matlab file at all" * 20, b"junk\n", b"", b"MATLAB 5.0 MAT-file" * 30)
PRICES = (b"junk\n", b"", b"\0\0\n\0", b"\xff\xfe", b'"' + b"x" * 200_000)


@pytest.mark.parametrize(
    ("loader", "name", "contents", "words"),
    [
        (light_sensors, "iw_data_all.mat", MATLAB, r"iw_data_all\.mat.*light sensor file"),
        (stocks, "fin.csv", PRICES, r"fin\.csv"),
    ],
)
def test_a_file_of_another_kind_is_refused(loader, name, contents, words, tmp_path: Path) -> None:
    for junk in contents:
        (tmp_path / name).write_bytes(junk)
        with pytest.raises(InputError, match=words):
            loader(tmp_path / name)
