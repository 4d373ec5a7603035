import mpmath
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpaudit.mechanisms import GaussianPair
from dpaudit.mechanisms.pairs.normal_curve import normal_curve


@settings(max_examples=300, derandomize=True, deadline=None)
@given(
    log_mu=st.floats(-290, 12),
    place=st.one_of(st.floats(-12, 39.5), st.floats(-1.5, 1.5)),
)
@example(log_mu=-6.0, place=3.4)
@example(log_mu=-280.0, place=0.0)
def test_both_ends_hold_the_truth_wherever_floats_reach(log_mu, place):
    mu = 10.0**log_mu
    epsilon = max(mu * (mu / 2 + place), 0.0)
    lower, upper = GaussianPair(mu).delta_ends(epsilon)
    digits = 60 + int(abs(log_mu)) * 3
    with mpmath.workdps(digits):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        exact = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
        assert lower <= exact <= upper
        if 1e-290 < exact < 0.5:
            assert upper - lower <= 3e-12 * exact


@pytest.mark.parametrize(("mu", "epsilon"), [(2.0**500, 2.0**999), (1e150, 5e299), (1e-5, 1e308)])
def test_arguments_that_cancel_or_overflow_leave_a_probability(mu, epsilon):
    value, error = normal_curve(mu, epsilon)
    assert 0 <= value <= 1
    assert error < 1e-12
    if mu == 2.0**500:  # a = 0, and b beyond all tails
        assert abs(value - 0.5) <= error
