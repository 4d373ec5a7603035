"""Estimates of proofs: told before anything is computed, and not far too low."""

import time

import pytest
from examples import gaussian_invocation

from dpaudit import DiscreteLaplace, Gaussian, Laplace, Plan, PoissonSampling
from dpaudit.accounting import MOST_SECONDS, require_affordable, seconds_of_proof
from dpaudit.base.errors import InputError
from dpaudit.mechanisms import Norm
from dpaudit.mechanisms.continual import BinaryTree, ContinualLaplace, HonakerTree
from dpaudit.plan import AddRemove, Group, Membership


def plan(*mechanisms, **facts):
    return Plan.of(*(gaussian_invocation(mechanism=each, **facts) for each in mechanisms))


def laplaces(number):
    return plan(*(Laplace(1 + place / number) for place in range(number)))


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
    assert seconds_of_proof(plan(Gaussian(1.0))) < 0.1
    assert seconds_of_proof(laplaces(10)) < seconds_of_proof(laplaces(60)) < MOST_SECONDS
    assert seconds_of_proof(laplaces(5000)) > MOST_SECONDS
    sampled = PoissonSampling(0.1)
    one = plan(Laplace(1.0), Laplace(2.0), relation=AddRemove())
    assert seconds_of_proof(one) < seconds_of_proof(
        plan(Laplace(1.0), Laplace(2.0), relation=AddRemove(), sampling=sampled)
    )
    small, large = (plan(DiscreteLaplace(9.0), sensitivity=s) for s in (10.0, 1e6))
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
    assert plan(Gaussian(1.0)).kinds_of_unit == 1


def test_what_is_not_affordable_is_a_sentence():
    require_affordable(plan(Gaussian(1.0)))
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
