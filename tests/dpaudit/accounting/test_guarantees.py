"""Guarantees with their curves, the best accountant, calibration, and work told beforehand."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from accounting_builders import gaussian_invocations, plan, poisson, pure_invocations, use
from accounting_conformance import AccountantLaws
from examples import gaussian_invocation
from hypothesis import strategies as st

from dpaudit import Plan, PoissonSampling
from dpaudit.accounting import (
    MOST_SECONDS,
    AccountantName,
    compose,
    epsilon_after_rounds,
    guarantee,
    least_noise,
    privacy_curve,
    require_affordable,
    seconds_of_proof,
)
from dpaudit.accounting.best import BestAccountant, BestComposition
from dpaudit.accounting.closed_forms.additive import GaussianComposition
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.mechanisms import (
    ApproximateBlackBox,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    LaplacePair,
    Norm,
    Opaque,
    RandomizedResponse,
)
from dpaudit.mechanisms.continual import BinaryTree, ContinualLaplace, HonakerTree
from dpaudit.plan import AddRemove, Group, Membership, ReplaceOne

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


# The least of all accountants, and which of them it asks


class TestBest(AccountantLaws):
    accountant = BestAccountant()
    inversion_slack = 0.05  # numbers read from two grids
    deltas = st.sampled_from([1e-6, 1e-3, 0.05])  # below, a few Laplace uses need large grids
    curve = (1e-9, 1e-6, 1e-3, 0.3)
    ledgers = st.lists(
        st.one_of(pure_invocations(), gaussian_invocations()), min_size=1, max_size=3
    )


def test_the_least_upper_end_is_named_and_lower_ends_are_kept() -> None:
    composed = BestAccountant().compose([use(Gaussian(5.0), count=7)])
    compared = composed.compared(1e-6)
    assert list(compared) == ["gaussian", "zcdp", "rdp", "moments"]
    assert composed.refusals["pld"] == "a closed form is exact."
    assert "no pure guarantee" in composed.refusals["pure"]
    assert composed.winner(1e-6) == "gaussian"
    assert composed.epsilon(1e-6) == compared["gaussian"]
    assert composed.native["zcdp"]["rho"] == pytest.approx(7 / 50)
    assert composed.uses == 7


def test_at_delta_zero_a_pure_sum_settles_the_answer() -> None:
    composed = BestAccountant().compose([use(Laplace(8.0), count=4)])
    assert composed.winner(0.0) == "pure"
    assert "pld" not in composed.compared(0.0)
    assert "pld" in composed.compared(1e-6)
    assert composed.epsilons([0.0]).tolist() == [0.5]


def test_losses_beyond_the_floats_need_no_grid() -> None:
    composed = BestAccountant().compose([use(DiscreteLaplace(5e-324), count=2)])
    assert composed.refusals["pld"] == "its losses are too large for floats."
    assert composed.epsilon(1e-6).upper == math.inf


def test_without_any_theorem_the_invocation_is_named() -> None:
    with pytest.raises(UnsupportedError, match="opaque at 'sort'"):
        BestAccountant().compose([use(Opaque("sorter", 1.0), at="sort"), use(Laplace(1.0))])


def test_accountants_that_contradict_each_other_are_an_error() -> None:
    known = BestAccountant().compose([use(Gaussian(2.0))])
    wrong = BestComposition(
        {**known.compositions, "zcdp": GaussianComposition(0.1)}, known.refusals
    )
    with pytest.raises(InputError, match="accountants disagree"):
        wrong.epsilon(1e-6)


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


@pytest.mark.parametrize("near", [3.0, 2.9999, 2.5, 100.0, 1e-9])
def test_a_guess_saves_steps_where_it_is_near_and_is_only_a_guess(near: float) -> None:
    asked: list[float] = []

    def meets(noise: float) -> bool:
        asked.append(noise)
        return noise >= 3.0

    found = least_noise(meets, 1e-4, near)
    assert found is not None
    assert 3.0 <= found <= 3.0 * (1 + 1e-4)
    assert len(asked) <= (2 if abs(near / 3 - 1) < 1e-4 else 60)


def test_there_may_be_none() -> None:
    assert least_noise(lambda _: False) is None


# Estimates of proofs: told before anything is computed, and not far too low


def plan_work(*mechanisms, **facts):
    return Plan.of(*(gaussian_invocation(mechanism=each, **facts) for each in mechanisms))


def laplaces(number):
    return plan_work(*(Laplace(1 + place / number) for place in range(number)))


def grouped(number, membership, alike=False):
    return Plan.of(
        *(
            gaussian_invocation(
                mechanism=Laplace(1.0 if alike else 1 + place / number),
                count=1 if alike else 1 + place,
                group=Group(f"group {place}", membership),
            )
            for place in range(number)
        )
    )


def test_an_estimate_grows_with_what_costs():
    assert seconds_of_proof(plan_work(Gaussian(1.0))) < 0.1
    assert seconds_of_proof(laplaces(10)) < seconds_of_proof(laplaces(60)) < MOST_SECONDS
    assert seconds_of_proof(laplaces(5000)) > MOST_SECONDS
    sampled = PoissonSampling(0.1)
    one = plan_work(Laplace(1.0), Laplace(2.0), relation=AddRemove())
    assert seconds_of_proof(one) < seconds_of_proof(
        plan_work(Laplace(1.0), Laplace(2.0), relation=AddRemove(), sampling=sampled)
    )
    small, large = (plan_work(DiscreteLaplace(9.0), sensitivity=s) for s in (10.0, 1e6))
    assert seconds_of_proof(small) < MOST_SECONDS < seconds_of_proof(large)


@pytest.mark.parametrize("membership", list(Membership))
def test_groups_that_are_alike_cost_as_one(membership):
    assert seconds_of_proof(grouped(1000, membership, alike=True)) < 30
    assert seconds_of_proof(grouped(40, membership)) > MOST_SECONDS


def test_pairs_of_groups_are_counted_and_not_made():
    start = time.perf_counter()
    many = grouped(3000, Membership.VALUE)
    assert many.kinds_of_unit == 3000 * 2999 // 2
    assert seconds_of_proof(many) > MOST_SECONDS
    assert time.perf_counter() - start < 20


@pytest.mark.parametrize("membership", list(Membership))
@pytest.mark.parametrize("number", [1, 2, 5])
def test_kinds_of_units_are_as_many_as_there_are(membership, number):
    some = grouped(number, membership)
    assert some.kinds_of_unit == len(some.by_unit())
    assert plan_work(Gaussian(1.0)).kinds_of_unit == 1


def test_what_is_not_affordable_is_a_sentence():
    require_affordable(plan_work(Gaussian(1.0)))
    with pytest.raises(InputError, match=r"would take about .* --allow-work computes it"):
        require_affordable(laplaces(5000))
    with pytest.raises(InputError, match="--allow-work"):
        require_affordable(laplaces(10), times=100)


def test_patterns_of_weights_that_never_increase_are_those_of_the_search():
    for steps, count, gap in ((37, 3, 5), (64, 9, 1), (100, 2, 70), (1, 4, 9)):
        for tree in (HonakerTree(steps), BinaryTree(steps)):
            weights, best = tree._column_sums(), 0.0
            fits = min(count, 1 + (steps - 1) // gap)
            table = [[0.0] * (steps + 1) for _ in range(fits + 1)]
            for taken in range(1, fits + 1):
                for step in range(1, steps + 1):
                    before = table[taken - 1][max(step - gap, 0)]
                    table[taken][step] = max(table[taken][step - 1], before + weights[step - 1])
            best = table[fits][steps]
            found = tree.sensitivity(count, gap, Norm.L1)
            assert best <= found <= best * (1 + 1e-9)
    assert (
        ContinualLaplace(
            scale=1.0, factorization=HonakerTree(10**6), participations=10**6, min_separation=2
        ).sensitivity_factor
        > 1e6
    )
