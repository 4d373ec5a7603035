from __future__ import annotations

import pytest
from accounting_builders import plan, poisson, use

from dpaudit.accounting import Parameter, calibrate, guarantee
from dpaudit.errors import InputError
from dpaudit.mechanisms import Gaussian, Laplace, RandomizedResponse

MIXED = plan(use(Laplace(20.0), count=3, at="tally"), use(Gaussian(20.0), count=10, at="sum"))
SAMPLED = plan(use(Gaussian(1.0), count=100, sampling=poisson(0.01), at="sgd"))


def test_one_gaussian_is_the_analytic_mechanism() -> None:
    found = calibrate(plan(use(Gaussian(1.0))), Parameter.SIGMA, epsilon=1.0, delta=1e-5)
    analytic = Gaussian.calibrated(epsilon=1.0, delta=1e-5, sensitivity=1.0).sigma
    assert found.value == pytest.approx(analytic, rel=2e-6)


@pytest.mark.parametrize(
    ("ledger", "parameter", "at", "worse"),
    [
        (MIXED, Parameter.SIGMA, "sum", 0.999),
        (MIXED, Parameter.SCALE, "tally", 0.999),
        (SAMPLED, Parameter.RATE, "sgd", 1.001),
        (SAMPLED, Parameter.COUNT, "sgd", None),
    ],
)
def test_the_target_is_met_and_hardly_less_would_not_do(
    ledger: object, parameter: Parameter, at: str, worse: float | None
) -> None:
    target = 2.0
    found = calibrate(
        ledger,  # type: ignore[arg-type]
        parameter,
        epsilon=target,
        delta=1e-5,
        accountant="rdp",
        at=at,
    )
    assert found.epsilon == guarantee(found.plan, 1e-5, "rdp").epsilon <= target
    again = calibrate(found.plan, parameter, epsilon=target, delta=1e-5, accountant="rdp", at=at)
    assert again.value == pytest.approx(found.value, rel=3e-6)
    assert found.epsilon >= target * (0.999 if worse else 0.98)


def test_a_function_of_the_value_will_do() -> None:
    found = calibrate(lambda p: plan(use(RandomizedResponse(p), count=2)), Parameter.P, epsilon=2.0)
    assert guarantee(found.plan).epsilon <= 2.0
    assert found.value == pytest.approx(2 / (1 + 2.718281828459045), rel=1e-5)


def test_counts_are_exact() -> None:
    found = calibrate(plan(use(Laplace(10.0))), Parameter.COUNT, epsilon=0.35)
    assert found.value == 3


def test_a_rate_of_one_is_allowed_where_it_fits() -> None:
    found = calibrate(SAMPLED, Parameter.RATE, epsilon=1e5, delta=1e-5, accountant="rdp")
    assert found.value == 1.0


def test_no_value_is_one_sentence() -> None:
    with pytest.raises(InputError, match="no count meets epsilon"):
        calibrate(plan(use(Laplace(1.0))), Parameter.COUNT, epsilon=0.01)
    with pytest.raises(InputError, match="no sigma meets epsilon 1"):
        calibrate(plan(use(Gaussian(1.0))), Parameter.SIGMA, epsilon=1.0)
    with pytest.raises(InputError, match="laplace at 'tally' has no parameter sigma"):
        calibrate(MIXED, Parameter.SIGMA, epsilon=1.0, at="tally")
    with pytest.raises(InputError, match="at is ''; it must be the label of one invocation"):
        calibrate(MIXED, Parameter.COUNT, epsilon=1.0)
    with pytest.raises(InputError, match="has no rate"):
        calibrate(MIXED, Parameter.RATE, epsilon=1.0, at="sum")
