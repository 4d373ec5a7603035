from __future__ import annotations

import math

import numpy as np
import pytest
from accounting_builders import plan, poisson, use

from dpaudit.accounting import (
    AccountantName,
    compose,
    epsilon_after_rounds,
    guarantee,
    privacy_curve,
)
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.mechanisms import (
    ApproximateBlackBox,
    Gaussian,
    Laplace,
    LaplacePair,
    Opaque,
    RandomizedResponse,
)
from dpaudit.plan import ReplaceOne

PAPER_DELTA = 200**-1.1
PAPER_CASES = [(0.15, 1.0), (0.25, 1.0), (0.5, 1.0), (0.25, 1.2), (0.25, 1.5)]


def test_ten_laplace_releases_are_exactly_a_half() -> None:
    found = guarantee(plan(use(Laplace(20.0), count=10)))
    assert found.epsilon == 0.5
    assert found.accountant is AccountantName.PURE


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 1.0, 2.5])
def test_a_calibrated_laplace_meets_its_wish_exactly(epsilon: float) -> None:
    mechanism = Laplace.calibrated(epsilon=epsilon, sensitivity=3.0)
    assert guarantee(plan(use(mechanism, 3.0))).epsilon == epsilon


def test_500_gaussian_releases_against_the_printed_figure() -> None:
    found = guarantee(plan(use(Gaussian(20.0), count=500)), 1e-5)
    assert found.epsilon == pytest.approx(4.98331, abs=1e-4)
    assert found.accountant is AccountantName.GAUSSIAN
    assert found.error_bound is not None
    assert found.error_bound < 1e-11


@pytest.mark.parametrize("accountant", ["gaussian", "zcdp", "rdp", "best"])
def test_replace_one_doubles_what_one_record_contributes(accountant: str) -> None:
    found = guarantee(plan(use(Gaussian(10.0), 2.0, ReplaceOne())), 1e-5, accountant)
    slack = {"gaussian": 1e-4, "best": 1e-4}.get(accountant, 0.08)
    assert 0.7255 <= found.epsilon <= 0.7255 + slack


@pytest.mark.parametrize(
    ("case", "moments"),
    list(zip(PAPER_CASES, [5.93, 9.91, 20.12, 7.39, 5.22], strict=True)),
)
def test_classic_moments_reproduce_the_printed_losses(
    case: tuple[float, float], moments: float
) -> None:
    rate, sigma = case
    steps = plan(use(Gaussian(sigma), count=40, sampling=poisson(rate)))
    assert guarantee(steps, PAPER_DELTA, "moments").epsilon == pytest.approx(moments, abs=0.005)


@pytest.mark.parametrize(
    ("case", "rdp", "pld"),
    list(
        zip(
            PAPER_CASES,
            [4.88, 8.41, 18.40, 6.18, 4.27],
            [3.96, 7.05, 15.71, 5.15, 3.60],
            strict=True,
        )
    ),
)
def test_rdp_is_at_most_the_reference_and_at_least_the_truth(
    case: tuple[float, float], rdp: float, pld: float
) -> None:
    rate, sigma = case
    steps = plan(use(Gaussian(sigma), count=40, sampling=poisson(rate)))
    assert pld - 0.005 <= guarantee(steps, PAPER_DELTA, "rdp").epsilon <= rdp + 0.005


def test_gaussian_noise_has_no_pure_guarantee() -> None:
    found = guarantee(plan(use(Gaussian(1.0))))
    assert found.epsilon == math.inf
    assert found.native["reason"] == "no pure guarantee: gaussian has unbounded loss"
    with pytest.raises(UnsupportedError, match="gaussian at 'g' has unbounded loss"):
        guarantee(plan(use(Gaussian(1.0), at="g")), 0.0, "pure")


@pytest.mark.parametrize("sigma", [1e-160, 1e-200, 5e-324])
def test_noise_too_small_is_infinite_with_a_reason(sigma: float) -> None:
    found = guarantee(plan(use(Gaussian(sigma), count=3)), 1e-5)
    assert found.epsilon == math.inf
    assert "no finite guarantee below δ=1e-05" in found.native["reason"]
    assert found.to_dict()["epsilon"] is None


def test_small_noise_that_does_not_overflow_is_a_number() -> None:
    found = guarantee(plan(use(Gaussian(1e-100))), 1e-5)
    assert found.epsilon == pytest.approx(0.5e200, rel=1e-6)


def test_an_opaque_claim_is_not_certified() -> None:
    with pytest.raises(UnsupportedError, match="states a claim without a proof"):
        guarantee(plan(use(Opaque("sorter", 0.1)), use(Laplace(1.0))), 1e-5)


def test_disjoint_groups_compose_in_parallel() -> None:
    both = plan(
        use(Laplace(1.0), group="left"), use(Laplace(2.0), group="right"), use(Laplace(4.0))
    )
    assert guarantee(both).epsilon == 1.25


def test_the_curve_is_valid_and_ends_at_the_pure_point() -> None:
    found = guarantee(plan(use(Laplace(1.0), count=2)), 1e-3)
    epsilons = [point.epsilon for point in found.curve]
    deltas = [point.delta for point in found.curve]
    assert epsilons == sorted(epsilons)
    assert deltas == sorted(deltas, reverse=True)
    assert found.curve[-1].epsilon == 2.0
    assert found.curve[-1].delta == 0.0


def test_the_curve_of_one_pure_mechanism_is_its_own() -> None:
    from fractions import Fraction

    epsilons = np.linspace(0, 1.5, 16)
    curve = privacy_curve(plan(use(Laplace(1.0))), "pure")(epsilons)
    exact = LaplacePair(Fraction(1)).delta(epsilons)
    assert (curve >= exact).all()
    assert np.allclose(curve, exact, atol=1e-12)


def test_the_curve_of_two_uses_dominates_their_exact_composition() -> None:
    curve = privacy_curve(plan(use(RandomizedResponse(0.5), count=2)), "pure")
    truth, lie = 0.75, 0.25
    for epsilon in (0.0, 0.5, 1.5, 2.0):
        outputs = [(truth**2, lie**2), (truth * lie, truth * lie), (truth * lie, truth * lie)]
        outputs.append((lie**2, truth**2))
        exact = sum(max(p - math.exp(epsilon) * q, 0) for p, q in outputs)
        assert exact <= curve(epsilon)
    assert curve(0.0) == pytest.approx(0.8)
    assert curve(math.log(9.001)) == 0


def test_compared_names_every_accountant_that_applies() -> None:
    compared = guarantee(plan(use(Gaussian(5.0), count=7)), 1e-6).compared
    assert set(compared) >= {"gaussian", "zcdp", "rdp", "moments"}
    assert compared["gaussian"] == min(compared.values())


def test_a_black_box_delta_is_paid_by_every_accountant() -> None:
    box = plan(use(ApproximateBlackBox(0.1, 1e-6), count=10))
    for accountant in ("pure", "zcdp", "rdp", "best"):
        assert guarantee(box, 0.99e-5, accountant).epsilon == math.inf
        assert guarantee(box, 1.01e-5, accountant).epsilon <= 1.0 + 1e-12
    assert guarantee(box, 1.01e-5, "pure").epsilon == pytest.approx(1.0)


def test_rounds_agree_with_the_composition_of_each() -> None:
    step = use(Gaussian(1.0), sampling=poisson(0.01))
    found = epsilon_after_rounds(plan(step), 1e-5, [1, 10, 1000])
    for rounds, epsilon in zip([1, 10, 1000], found, strict=True):
        many = use(Gaussian(1.0), sampling=poisson(0.01), count=rounds)
        assert epsilon == pytest.approx(compose(plan(many), "rdp").epsilon(1e-5).upper, rel=1e-9)


def test_pld_rounds_contain_the_composition_of_each() -> None:
    step = use(Gaussian(1.0), sampling=poisson(0.1))
    found = epsilon_after_rounds(plan(step), 1e-5, np.arange(1, 31), "pld")
    assert (np.diff(found) >= 0).all()
    for rounds in (1, 30):
        many = use(Gaussian(1.0), sampling=poisson(0.1), count=rounds)
        interval = compose(plan(many), "pld").epsilon(1e-5)
        assert interval.lower is not None
        assert interval.lower <= found[rounds - 1] <= interval.upper * 1.01


@pytest.mark.parametrize("delta", [-0.1, 1.0, math.nan, "small"])
def test_a_wrong_delta_is_one_sentence(delta: object) -> None:
    with pytest.raises(InputError, match=r"delta is .*; it must be a number in \[0, 1\)"):
        guarantee(plan(use(Laplace(1.0))), delta)  # type: ignore[arg-type]


def test_wrong_names_rounds_and_epsilons_are_refused() -> None:
    once = plan(use(Laplace(1.0)))
    with pytest.raises(InputError, match="accountant is 'magic'"):
        guarantee(once, 0.0, "magic")
    with pytest.raises(InputError, match="rounds has a value"):
        epsilon_after_rounds(once, 1e-5, [0])
    with pytest.raises(InputError, match="epsilon has the value -1"):
        privacy_curve(once)([-1.0])
