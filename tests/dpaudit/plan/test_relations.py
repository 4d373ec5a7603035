import pytest

from dpaudit import InputError, MetricBall, PrivacyUnit


def test_unit_and_radius_are_checked():
    with pytest.raises(InputError, match="unit"):
        PrivacyUnit("")
    with pytest.raises(InputError, match="81 characters"):
        PrivacyUnit("x" * 81)
    with pytest.raises(InputError, match="radius is 0"):
        MetricBall(0)
