import numpy as np
import pytest

from dpaudit.mechanisms.quadrature import panels


def test_a_function_with_corners_is_integrated_to_rounding():
    corners = np.array([-3.0, 1.5, 99.0])
    places, weights = panels(-10.0, 20.0, corners)
    assert weights.sum() == pytest.approx(30.0, rel=1e-14)
    found = (weights * np.exp(-np.abs(places + 3.0)) * np.abs(places - 1.5)).sum()
    fine = np.linspace(-10.0, 20.0, 3_000_001)
    truth = np.trapezoid(np.exp(-np.abs(fine + 3.0)) * np.abs(fine - 1.5), fine)
    assert found == pytest.approx(truth, rel=1e-9)
    assert len(places) == len(weights)
