from __future__ import annotations

import math
from fractions import Fraction

import pytest
from accounting_builders import pure_invocations, use
from accounting_conformance import AccountantLaws
from hypothesis import strategies as st

from dpaudit.accounting.closed_forms.pure import PureAccountant
from dpaudit.base.errors import UnsupportedError
from dpaudit.mechanisms import ApproximateBlackBox, Gaussian, Laplace


class TestPure(AccountantLaws):
    accountant = PureAccountant()
    ledgers = st.lists(pure_invocations(), min_size=1, max_size=4)


def test_sums_are_exact_before_they_are_rounded() -> None:
    thirds = PureAccountant().compose([use(Laplace(3.0), count=3)])
    assert thirds.total == 3 * Fraction(1, 3)
    assert thirds.epsilon(0.5).upper == 1.0
    assert thirds.native == {"pure_epsilon": 1.0}
    assert not thirds.is_exact


@pytest.mark.parametrize("delta", [1e-9, 1e-3, 0.3])
def test_one_use_has_its_own_curve(delta: float) -> None:
    """δ(ε') = 1 − exp((ε' − ε)/2) of one Laplace release."""
    alone = PureAccountant().compose([use(Laplace(1.0), 1.5)])
    assert alone.is_exact
    interval = alone.epsilon(delta)
    assert interval.lower is not None
    assert interval.lower <= 1.5 + 2 * math.log1p(-delta) <= interval.upper
    assert interval.upper - interval.lower < 1e-6
    ends = alone.delta(0.4)
    assert ends.lower is not None
    assert ends.lower <= -math.expm1((0.4 - 1.5) / 2) <= ends.upper


def test_several_uses_have_the_curve_of_all_that_are_so_private() -> None:
    """(e^E − e^ε)/(1 + e^E) for a sum E."""
    two = PureAccountant().compose([use(Laplace(1.0), count=2)])
    exact = (math.exp(2) - math.exp(0.5)) / (1 + math.exp(2))
    assert exact <= two.delta(0.5).upper <= exact * (1 + 1e-12)
    assert two.delta(2.0).upper == 0


def test_failures_come_on_top() -> None:
    box = PureAccountant().compose([use(ApproximateBlackBox(0.5, 1e-6), count=2)])
    assert box.epsilon(1e-6).upper == math.inf
    assert box.epsilon(2.1e-6).upper == 1.0
    assert box.native["delta"] == pytest.approx(2e-6)


def test_unbounded_losses_are_named() -> None:
    with pytest.raises(UnsupportedError, match="gaussian at 'g' has unbounded loss"):
        PureAccountant().compose([use(Laplace(1.0)), use(Gaussian(1.0), at="g")])
