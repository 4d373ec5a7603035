"""What follows from points of a curve."""

import math

import numpy as np
import pytest

from dpaudit.accounting import CurvePoint
from dpaudit.auditing.evidence.eprocess import curve_points
from dpaudit.certificate import Claim
from dpaudit.certificate.claimed_points import PointsCurve


def test_between_points_the_least_holds():
    curve = PointsCurve((CurvePoint(0.5, 1e-2), CurvePoint(1.0, 1e-4)))
    assert curve(np.array([0.5, 0.7, 1.0, 2.0])).tolist() == [1e-2, 1e-2, 1e-4, 1e-4]
    # Kairouz, Oh and Viswanath 2015, Theorem 2.1: total variation of (0.5, 0.01)-privacy.
    left = 0.01 + 0.99 * (math.exp(0.5) - 1) / (math.exp(0.5) + 1)
    assert curve(0.0) == pytest.approx(left)
    assert curve.epsilon(1e-3).upper == 1.0
    assert curve.epsilon(0.0).upper == math.inf


def test_bets_are_made_at_every_point():
    claim = Claim.of(curve=[[0.37, 0.2], [0.9, 0.02], [3.0, 0.0]])
    assert {0.37, 0.9, 3.0} <= {point.epsilon for point in curve_points(claim.curve)}
    many = Claim.of(curve=[[0.01 * k, 0.5 / k] for k in range(1, 200)])
    assert len(curve_points(many.curve)) < 20


def test_rates_tell_themselves():
    assert Claim.of(tpr=0.3, fpr=0.1).curve.rates == (0.3, 0.1)
    assert Claim.of(advantage=0.3).curve is None
    smooth = Claim.of(mu=1.0).curve(np.array([1.0]))
    assert smooth == pytest.approx([0.126936738], rel=1e-8)
    assert Claim.of(mu=1.0).implied.deltas(1.01) > Claim.of(mu=1.0).curve(np.array([1.01]))[0]
