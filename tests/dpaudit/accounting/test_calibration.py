from __future__ import annotations

import pytest
from accounting_builders import plan, use

from dpaudit.accounting import compose, least_noise
from dpaudit.mechanisms import Gaussian, Laplace


def test_one_gaussian_is_the_analytic_mechanism() -> None:
    found = least_noise(
        lambda sigma: compose(plan(use(Gaussian(sigma)))).epsilon(1e-5).upper <= 1.0
    )
    analytic = Gaussian.calibrated(epsilon=1.0, delta=1e-5, sensitivity=1.0).sigma
    assert found == pytest.approx(analytic, rel=2e-6)


@pytest.mark.parametrize("target", [1e-12, 0.3, 1.0, 7.0, 1e9])
def test_the_target_is_met_and_hardly_less_would_not_do(target: float) -> None:
    def meets(scale: float) -> bool:
        return compose(plan(use(Laplace(scale), count=3))).epsilon(0.0).upper <= target

    found = least_noise(meets)
    assert found is not None
    assert meets(found)
    assert not meets(found * (1 - 2e-6))


def test_a_target_that_all_noise_meets_is_found_to_be_so_in_few_steps() -> None:
    asked: list[float] = []
    found = least_noise(lambda noise: not asked.append(noise))  # type: ignore[func-returns-value]
    assert found is not None
    assert found <= 1e-100
    assert len(asked) < 60


def test_there_may_be_none() -> None:
    assert least_noise(lambda _: False) is None
