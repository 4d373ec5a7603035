from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from mechanism_conformance import PrivacyConformance

from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.mechanisms import ApproximateBlackBox, ConcentratedBlackBox, Mechanism, PureBlackBox

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
    with pytest.raises(UnsupportedError, match="declares only its privacy"):
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
