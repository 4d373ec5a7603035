"""What several plans release together, against closed forms."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import log_ndtr

from dpaudit import (
    AddRemove,
    Gaussian,
    InputError,
    Invocation,
    Laplace,
    Plan,
    PrivacyUnit,
    ReplaceOne,
    TrustModel,
    guarantee,
)
from dpaudit.accounting import compose
from dpaudit.workflow.budgets import in_sequence


def use(mechanism, *, unit="row", relation=None, **more):
    return Invocation(
        mechanism, 1, PrivacyUnit(unit), relation or AddRemove(), TrustModel.CENTRAL, **more
    )


def laplace(epsilon, **more):
    return use(Laplace(1 / epsilon), **more)


def gaussian_epsilon(mu, delta):
    """The exact ε of a Gaussian of shift μ (Balle and Wang 2018, Theorem 8)."""

    def excess(epsilon):
        first = math.exp(log_ndtr(mu / 2 - epsilon / mu))
        return first - math.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu)) - delta

    return brentq(excess, 0, 100, xtol=1e-13)


def test_gaussian_plans_add_up_in_squares():
    plans = {"a": Plan.of(use(Gaussian(4.0), count=3)), "b": Plan.of(use(Gaussian(2.0)))}
    exact = gaussian_epsilon(math.sqrt(3 / 16 + 1 / 4), 1e-6)
    proved = guarantee(in_sequence(plans), 1e-6).epsilon
    assert exact <= proved <= exact * (1 + 1e-6)
    alone = sum(guarantee(plan, 1e-6).epsilon for plan in plans.values())
    assert proved < 0.8 * alone


def test_labels_say_whose_they_are():
    plans = {"a": Plan.of(laplace(1.0, at="x"), laplace(1.0)), "b": Plan.of(laplace(1.0, at="x"))}
    labels = [each.at for each in in_sequence(plans).invocations]
    assert labels == ["a: x", "a: invocation 2", "b: x"]


def test_groups_of_one_plan_stay_parallel():
    grouped = Plan.of(laplace(1.0, group="left"), laplace(2.0, group="right"))
    together = in_sequence({"a": grouped, "b": Plan.of(laplace(0.5))})
    assert guarantee(together).epsilon == pytest.approx(2.5, rel=1e-12)


@pytest.mark.parametrize("names", [("young", "old"), ("left", "right"), ("right", "left")])
def test_groups_of_two_plans_may_overlap_whatever_their_names(names):
    """Somebody may be in the worst group of both: 2 + 3, not max(1, 2, 0.5, 3)."""
    first = Plan.of(laplace(1.0, group="left"), laplace(2.0, group="right"))
    second = Plan.of(laplace(0.5, group=names[0]), laplace(3.0, group=names[1]))
    proved = guarantee(in_sequence({"a": first, "b": second})).epsilon
    assert proved == pytest.approx(5.0, rel=1e-12)
    with_all = in_sequence({"a": first, "b": second, "c": Plan.of(laplace(0.25))})
    assert guarantee(with_all).epsilon == pytest.approx(5.25, rel=1e-12)


losses = st.lists(st.floats(0.01, 3), min_size=1, max_size=3)


@settings(deadline=None)
@given(st.lists(st.lists(losses, min_size=1, max_size=3), min_size=1, max_size=3))
def test_the_sum_over_plans_of_the_worst_group(plans):
    """Pure ε: groups take the maximum within a plan, plans add up."""
    built = {
        f"p{n}": Plan.of(
            *(
                laplace(loss, group=f"g{g}" if len(groups) > 1 else None)
                for g, group in enumerate(groups)
                for loss in group
            )
        )
        for n, groups in enumerate(plans)
    }
    expected = sum(max(math.fsum(group) for group in groups) for groups in plans)
    proved = compose(in_sequence(built), "pure").epsilon(0.0).upper
    assert proved == pytest.approx(expected, rel=1e-9)


def test_what_protects_different_things_has_no_sum():
    rows, users = Plan.of(laplace(1.0)), Plan.of(laplace(1.0, unit="user"))
    with pytest.raises(InputError, match="mixes the units row and user"):
        in_sequence({"a": rows, "b": users})
    replaced = Plan.of(laplace(1.0, relation=ReplaceOne()))
    with pytest.raises(InputError, match="mixes the relations"):
        in_sequence({"a": rows, "b": replaced})


def test_too_many_combinations_are_refused_at_once():
    grouped = Plan.of(*(laplace(1.0, group=str(n)) for n in range(20)))
    with pytest.raises(InputError, match="8000 combinations"):
        in_sequence({"a": grouped, "b": grouped, "c": grouped})
