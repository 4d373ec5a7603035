"""The recorded sales of Taipei."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from dpaudit.base.errors import InputError
from private_bo.problems import (
    neighbourhood_prices,
    recorded_sales,
)


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
