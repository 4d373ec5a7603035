"""The registry of accountants, and what every accountant inherits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from accounting_builders import use

from dpaudit.accounting import (
    Accountant,
    AccountantName,
    Composition,
    Interval,
    accountant_of,
    epsilon_after_rounds,
    guarantee,
)
from dpaudit.base.errors import InputError
from dpaudit.mechanisms import Laplace
from dpaudit.plan import Plan


class Linear(Composition):
    """ε = c (1 − δ)."""

    native = {}  # noqa: RUF012

    def __init__(self, slope: float) -> None:
        self.slope = slope

    def epsilon(self, delta: float) -> Interval:
        return Interval(None, self.slope * (1 - delta))

    def delta(self, epsilon: float) -> Interval:
        return Interval(None, max(0.0, 1 - epsilon / self.slope))


def test_a_width_is_that_of_both_ends() -> None:
    assert Interval(1.0, 3.0).width == 2.0
    assert Interval(math.inf, math.inf).width == 0.0
    assert Interval(None, 3.0).width is None


def test_arrays_of_any_shape_are_asked_one_by_one() -> None:
    asked = np.array([[0.0, 0.5], [0.25, 1.0]])
    assert Linear(4.0).epsilons(asked).tolist() == [[4.0, 2.0], [3.0, 0.0]]
    assert Linear(4.0).deltas(4 * asked).tolist() == [[1.0, 0.5], [0.75, 0.0]]
    assert Linear(4.0).epsilons(0.5).shape == ()
    assert not Linear(4.0).is_exact


def test_every_name_has_an_accountant_of_that_name() -> None:
    for name in AccountantName:
        assert accountant_of(name).kind == name
        assert accountant_of(str(name)) == accountant_of(name)
    assert set(Accountant.kinds()) >= {*AccountantName}


@pytest.mark.parametrize("name", ["pldd", "", "PLD", None, 3, ["pld"]])
def test_an_unknown_name_is_one_sentence(name: object) -> None:
    once = Plan.of(use(Laplace(1.0)))
    for door in (
        lambda: accountant_of(name),  # type: ignore[arg-type]
        lambda: guarantee(once, 0.0, name),  # type: ignore[arg-type]
        lambda: epsilon_after_rounds(once, 0.0, [1], name),  # type: ignore[arg-type]
    ):
        with pytest.raises(InputError, match=r"^accountant is .*(did you mean|must be one of)"):
            door()


def test_a_name_is_taken_once() -> None:
    with pytest.raises(InputError, match=r"accountant kind 'pld' is that of .*PLDAccountant alr"):

        class Other(Accountant):
            kind = "pld"


def test_rounds_are_composed_one_number_after_the_other() -> None:
    found = accountant_of("pure").epsilon_after_rounds([use(Laplace(8.0), count=2)], 0.0, [1, 4])
    assert found.tolist() == [0.25, 1.0]
