"""What other suites expect, beside what is proved here."""

import math

import pytest

from audits.accountants.__main__ import PAGE, Row, measured, plan_of, settings
from dpaudit.accounting import Interval

SETTINGS = settings()
SUITES = {each["suite"] for each in SETTINGS}


def test_each_setting_names_its_test_and_stands_once():
    keys = [repr((each["test"], each["plan"], each.get("runs"), each["states"], each["at"]))
            for each in SETTINGS]  # fmt: skip
    assert len(set(keys)) == len(keys)
    assert len(SUITES) >= 5
    for each in SETTINGS:
        assert plan_of(each).invocations
        assert each["within"] > 0
        assert each["version"]


@pytest.mark.parametrize("setting", SETTINGS[::9], ids=lambda each: each["test"][-60:])
def test_no_value_contradicts_ours_without_a_reason(setting):
    row = measured(setting)
    assert row.verdict in ("equal", "theirs is larger") or row.reason
    assert math.isfinite(row.ours.upper)


@pytest.mark.parametrize(
    ("expected", "verdict"),
    [(1.0, "equal"), (1.2, "theirs is larger"), (0.8, "theirs is too small")],
)
def test_a_value_is_judged_by_both_ends(expected, verdict):
    row = Row({"test": "a.b", "expected": expected, "within": 0.01}, Interval(0.99, 1.01))
    assert row.verdict == verdict


def test_without_a_lower_end_nothing_is_too_small():
    row = Row({"test": "a.b", "expected": 0.5, "within": 0.01}, Interval(None, 1.0))
    assert row.verdict == "ours is larger"


def test_the_page_has_every_value():
    assert f"{len(SETTINGS)} values" in PAGE.read_text("utf-8")
