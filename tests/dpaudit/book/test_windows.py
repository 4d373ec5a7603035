from __future__ import annotations

from datetime import date, timedelta

import pytest

from dpaudit.base.errors import InputError
from dpaudit.book.limits import charged_buckets, checked_window, joint_buckets, span_of

DAY = date(2026, 11, 23)  # a Monday


@pytest.mark.parametrize(
    ("window", "buckets"),
    [
        ("ever", ("ever",)),
        ("day", ("2026-12-31", "2027-01-01")),
        ("week", ("2026-W53",)),
        ("month", ("2026-12", "2027-01")),
        ("year", ("2026", "2027")),
        ("30 days", ("2026-11-23",)),
    ],
)
def test_a_release_charges_every_period_whose_data_it_reads(window, buckets):
    new_year = (date(2026, 12, 31), date(2027, 1, 1))
    assert charged_buckets(window, new_year, DAY) == buckets
    assert checked_window(window=window) == window


def test_days_in_a_row_roll():
    assert joint_buckets("3 days", "2026-03-01") == ("2026-03-01", "2026-02-28", "2026-02-27")
    assert joint_buckets("week", "2026-W48") == ("2026-W48",)
    every = {charged_buckets("7 days", (DAY, DAY), DAY - timedelta(n))[0] for n in range(7)}
    assert every == set(joint_buckets("7 days", DAY.isoformat()))


@pytest.mark.parametrize("window", ["", "weeks", "0 days", "99999 days", "-1 days", "٣ days", 7])
def test_windows_that_are_none(window):
    with pytest.raises(InputError, match=r"window is .*; it must be ever, day, week, month, year"):
        checked_window(window=window)


def test_spans():
    assert span_of(None, DAY) == (DAY, DAY)
    assert span_of("2026-11-16..2026-11-22", DAY) == (date(2026, 11, 16), date(2026, 11, 22))
    assert span_of("2026-W47", DAY) == (date(2026, 11, 16), date(2026, 11, 22))
    assert span_of("2026-W53..2027-W01", DAY) == (date(2026, 12, 28), date(2027, 1, 10))
    assert span_of("2024-02", DAY) == (date(2024, 2, 1), date(2024, 2, 29))
    assert span_of("2025..2026-03", DAY) == (date(2025, 1, 1), date(2026, 3, 31))
    wrongs = ("2026-11-22..2026-11-16", "1990-01-01..2026-01-01", "monday", "2026-13-01", "2026-13")
    for wrong in (
        *wrongs,
        "2026-W47-3",
        "20261116",
        "2026-W54",
        "2026..",
        "0000",
        "٢٠٢٦",
        "9999-W52",
    ):
        with pytest.raises(InputError, match="period is"):
            span_of(wrong, DAY)


def test_a_week_that_is_named_charges_all_its_days():
    week = span_of("2026-W47", DAY)
    assert charged_buckets("week", week, DAY) == ("2026-W47",)
    assert charged_buckets("day", week, DAY) == tuple(f"2026-11-{day}" for day in range(16, 23))
