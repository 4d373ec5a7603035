"""Mechanisms of which a cost is stated, and no law."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from accounting_builders import plan, use
from examples import gaussian_invocation
from mechanism_conformance import PrivacyConformance

from dpaudit import Ledger, Plan, checker
from dpaudit.accounting import compose
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.mechanisms import (
    ApproximateBlackBox,
    ConcentratedBlackBox,
    Mechanism,
    Opaque,
    PureBlackBox,
    StatedNoise,
)

BOXES = [PureBlackBox(0.5), ApproximateBlackBox(0.5, 1e-6), ConcentratedBlackBox(0.1)]


class TestPureBlackBox(PrivacyConformance):
    mechanism = PureBlackBox(0.5)
    bad_parameters = ({"epsilon": -1.0}, {"epsilon": math.inf})


class TestApproximateBlackBox(PrivacyConformance):
    mechanism = ApproximateBlackBox(0.5, 1e-6)
    bad_parameters = ({"delta": 1.0}, {"delta": -0.1}, {"epsilon": math.nan})


class TestConcentratedBlackBox(PrivacyConformance):
    mechanism = ConcentratedBlackBox(0.1)
    bad_parameters = ({"rho": math.nan}, {"rho": -1})


@pytest.mark.parametrize("box", BOXES)
@pytest.mark.parametrize("sensitivity", [0.5, 2.0])
def test_an_input_changes_or_does_not(box: Mechanism, sensitivity: float) -> None:
    for cost in (box.pair, box.pair_and_failure):
        with pytest.raises(InputError, match="takes 0 or 1"):
            cost(sensitivity)


@pytest.mark.parametrize("box", BOXES)
def test_it_cannot_be_run(box: Mechanism) -> None:
    with pytest.raises(UnsupportedError, match="states only its privacy"):
        box.release(1.0, np.random.default_rng(0))
    with pytest.raises(UnsupportedError, match=f"{box.kind} declares no density"):
        box.log_density(np.zeros(1), 0.0)
    with pytest.raises(UnsupportedError, match=f"{box.kind} has no finite list of outputs"):
        box.probabilities(0.0)
    assert box.is_black_box


def test_its_pair_has_the_declared_privacy() -> None:
    assert PureBlackBox(0.5).pair(1).delta(0.5) == pytest.approx(0.0, abs=1e-15)
    assert ApproximateBlackBox(0.5, 1e-6).pair(1).delta(0.5) == pytest.approx(1e-6, rel=1e-9)
    assert ConcentratedBlackBox(0.1).pair(1).renyi([2.0, 5.0]) == pytest.approx([0.2, 0.5])
    with pytest.raises(UnsupportedError, match="law of the privacy loss"):
        ConcentratedBlackBox(0.1).pair(1).delta(1.0)


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 3.0])
def test_a_failure_set_apart_leaves_the_curve_as_it_is(epsilon: float) -> None:
    """(1 − δ) times the curve of ε alone, and δ."""
    box = ApproximateBlackBox(0.5, 0.01)
    pair, failure = box.pair_and_failure(1.0)
    assert failure == 0.01
    whole = (1 - failure) * pair.delta(epsilon) + failure
    assert box.pair(1.0).delta(epsilon) == pytest.approx(float(whole), abs=1e-15)


def test_a_group_has_the_square_of_the_concentration() -> None:
    grown = ConcentratedBlackBox(0.1).for_group(3)
    assert grown is not None
    assert Fraction(grown.rho) >= 9 * Fraction(0.1)
    assert grown.rho == pytest.approx(0.9, rel=1e-15)
    assert PureBlackBox(0.1).for_group(3) is None


MECHANISM = Opaque("projection", 1.0, 1e-5, sampler=lambda value, rng: value + rng.normal())


def test_claims_nothing_that_an_accountant_could_use():
    with pytest.raises(UnsupportedError, match="'projection' states a claim without a proof"):
        MECHANISM.pair(1.0)
    assert MECHANISM.pair(0.0).pure_epsilon == 0
    assert MECHANISM.is_black_box


def test_serialises_without_its_sampler():
    again = Mechanism.parse(MECHANISM.to_dict())
    assert again == MECHANISM
    with pytest.raises(UnsupportedError, match="no sampler"):
        again.release(1.0, np.random.default_rng(0))


def test_runs_its_sampler():
    outputs = MECHANISM.release_many(2.0, 1000, np.random.default_rng(0))
    assert abs(outputs.mean() - 2) < 0.2
    assert isinstance(MECHANISM.release(2.0, np.random.default_rng(0)), float)
    assert MECHANISM.release_many([1.0, 2.0], 0, np.random.default_rng(0)).shape == (0, 2)


def test_a_sampler_may_work_in_place_without_touching_other_runs():
    def in_place(value, rng):
        value += 1
        return value

    released = Opaque("counter", 1.0, sampler=in_place).release_many(
        [0.0, 5.0], 3, np.random.default_rng(0)
    )
    assert released.tolist() == [[1.0, 6.0]] * 3


def test_a_value_that_fails_the_check_is_refused_before_it_is_charged():
    def at_most_one(value):
        if value.max() > 1:
            raise InputError("value has an entry above 1.")

    mechanism = Opaque("sketch", 1.0, sampler=lambda value, rng: value, check=at_most_one)
    ledger = Ledger(Plan.of(gaussian_invocation(mechanism=mechanism)), rng=np.random.default_rng(0))
    for release in (
        lambda: mechanism.release([0.5, 2.0], np.random.default_rng(0)),
        lambda: ledger.release(mechanism, [0.5, 2.0]),
    ):
        with pytest.raises(InputError, match="above 1"):
            release()
    assert len(ledger) == 0
    assert list(ledger.release(mechanism, [0.5, 1.0])) == [0.5, 1.0]
    assert Mechanism.parse(mechanism.to_dict()) == mechanism


def test_bad_parameters():
    for parameters in ({"epsilon": -1}, {"epsilon": math.nan}, {"delta": 1.0}, {"label": ""}):
        with pytest.raises(InputError):
            Opaque(**({"label": "x", "epsilon": 1.0} | parameters))


def test_stated_noise_proves_nothing_but_says_how_far_values_are_apart():
    noise = StatedNoise("bounded domain", 1.0, 1e-6)
    with pytest.raises(UnsupportedError, match="without a proof"):
        noise.pair(1.0)
    assert noise.pair(0.0).pure_epsilon == 0
    assert noise.distance(np.array([1.0, 2.0]), np.array([4.0, 0.0])) == 5
    assert Mechanism.parse(noise.to_dict()) == noise


class TestConcentratedBlackBoxWithXi(PrivacyConformance):
    mechanism = ConcentratedBlackBox(0.1, 0.3)
    bad_parameters = ({"xi": -1.0}, {"xi": math.nan}, {"xi": math.inf}, {"rho": -1.0})


@pytest.mark.parametrize("rho", [0.02, 0.5, 30.0])
@pytest.mark.parametrize("xi", [1e-6, 0.4, 12.0])
def test_xi_adds_up_and_is_added_to_what_rho_costs(rho, xi):
    """ε(δ) of ρ and ξ is that of ρ, at whichever order, and ξ more (Bun and Steinke 2016)."""
    for count in (1, 5):
        both, alone = (
            compose(plan(use(ConcentratedBlackBox(rho, each), count=count))) for each in (xi, None)
        )
        for delta in (1e-9, 1e-3):
            found = both.epsilon(delta).upper
            least = alone.epsilon(delta).upper + count * xi
            assert least * (1 - 1e-3) <= found <= least * 1.02 + 1e-9
    pair = ConcentratedBlackBox(rho, xi).pair(1)
    assert pair.renyi([2.0, 5.0]) == pytest.approx([xi + 2 * rho, xi + 5 * rho])
    assert pair.zcdp_rho == pair.pure_epsilon == math.inf


def test_without_rho_xi_is_pure_and_without_xi_nothing_changes():
    assert compose(plan(use(ConcentratedBlackBox(0.0, 0.3)))).epsilon(0.0).upper == 0.3
    assert ConcentratedBlackBox(0.1, 0.0) == ConcentratedBlackBox(0.1)
    assert ConcentratedBlackBox(0.1).to_dict() == {"kind": "concentrated-black-box", "rho": 0.1}
    assert ConcentratedBlackBox(0.1, 0.3).for_group(2) is None
    record = ConcentratedBlackBox(0.1, 0.3).to_dict()
    with pytest.raises(checker.MissingError, match="ξ in addition to ρ"):
        checker.uses_of(record, Fraction(1), 1, drawn=False)
