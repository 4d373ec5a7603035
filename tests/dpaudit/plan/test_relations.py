import pytest

from dpaudit import InputError, MetricBall, PrivacyUnit


def test_unit_and_radius_are_checked():
    with pytest.raises(InputError, match="unit"):
        PrivacyUnit("")
    with pytest.raises(InputError, match="printable characters"):
        PrivacyUnit("row\nverdict certified")
    with pytest.raises(InputError, match="at most 80 printable characters"):
        PrivacyUnit("x" * 81)
    with pytest.raises(InputError, match="radius is 0"):
        MetricBall(0)


def test_a_row_is_a_row_by_whatever_usual_name():
    assert PrivacyUnit(" Example").is_row
    assert PrivacyUnit("row").is_row
    assert not PrivacyUnit("user").is_row
    assert not PrivacyUnit("patient").is_row
