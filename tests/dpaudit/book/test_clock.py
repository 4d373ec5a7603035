"""A clock that leaps opens no budget, until somebody says that it is right."""

from __future__ import annotations

from datetime import timedelta

import pytest
from booking import ask, filled, laplace
from sqlalchemy import text

from dpaudit.base.errors import InputError
from dpaudit.book import set_clock, verify_book
from dpaudit.book.limits import longest_pause

PLAN = laplace(2.0)


def lines_of(book):
    with book.reading() as connection:
        return connection.execute(text("SELECT line FROM log")).scalars().all()


@pytest.mark.parametrize(
    ("window", "days"), [("year", 366), ("month", 31), ("day", 31), ("90 days", 90)]
)
def test_a_leap_of_the_clock_opens_no_budget(book, clock, window, days):
    filled(book, window, epsilon=1.0)
    assert longest_pause(window) == days
    ask(book, laplace(1.0))
    clock.move(days=days + 1)
    before = lines_of(book)
    for _ in range(2):
        with pytest.raises(InputError, match=f"{days + 1} days after the last line"):
            ask(book, PLAN)
        with pytest.raises(InputError, match=f"dpaudit book clock {clock.now.date()}"):
            book.retire("main", by="eve", why="to move the time")
    assert lines_of(book) == before
    with pytest.raises(InputError, match="must be the clock's day"):
        set_clock(book, clock.now.date() + timedelta(days=1), by="officer")
    set_clock(book, clock.now.date(), by="officer")
    ask(book, PLAN)
    verify_book(book)
    said = [line for line in lines_of(book) if '"event":"clock"' in line]
    assert len(said) == 1
    assert '"by":"officer"' in said[0]
