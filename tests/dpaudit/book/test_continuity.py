"""A book goes on from where it was seen; a clock that leaps opens no budget by itself."""

from __future__ import annotations

import sqlite3
from datetime import timedelta

import pytest
from booking import ask, filled, laplace, log_lines
from sqlalchemy import text

from dpaudit import FloatNoise, Ledger
from dpaudit.base.errors import DpAuditError, InputError, TamperedError
from dpaudit.book import Book, BudgetRecord, limit_of, set_clock, verify_book
from dpaudit.book.limits import longest_pause

PLAN = laplace(2.0)
"""Half of the budget."""
TABLES = ("release", "spent", "budget", "dataset", "log", "head")
OTHER = "shorter than before, or is another log"


def rows_of(book):
    with book.reading() as connection:
        return {
            table: [
                dict(row) for row in connection.execute(text(f"SELECT * FROM {table}")).mappings()
            ]
            for table in TABLES
        }


def put_back(book, rows):
    """Older rows in place, by another client of the database."""
    with Book(book.store.url.render_as_string(hide_password=False)).store.transaction(
        writes=True
    ) as connection:
        for table, kept in rows.items():
            connection.execute(text(f"DELETE FROM {table}"))
            for row in kept:
                names = ", ".join(row), ", :".join(row)
                connection.execute(
                    text(f"INSERT INTO {table} ({names[0]}) VALUES (:{names[1]})"), row
                )


def test_older_rows_in_place_grant_nothing_again(book):
    filled(book, epsilon=1.0)
    before = rows_of(book)
    reserved = ask(book, PLAN)
    ask(book, PLAN)
    put_back(book, before)
    for _ in range(2):
        with pytest.raises(TamperedError, match=OTHER):
            ask(book, PLAN)
    with (
        pytest.raises(DpAuditError, match=OTHER),
        Ledger(PLAN, noise=FloatNoise(), budget=reserved) as ledger,
    ):
        ledger.release(PLAN.invocations[0].mechanism, 1.0, unit="one", at="l")
    assert rows_of(book) == before


def test_a_log_that_grew_again_is_still_another(book, clock):
    filled(book, epsilon=1.0)
    before = rows_of(book)
    ask(book, PLAN)
    put_back(book, before)
    other = Book(book.store.url.render_as_string(hide_password=False), clock=clock)
    for _ in range(3):
        other.reserve("visits", laplace(1000.0), by="bob", purpose="another")
    with pytest.raises(TamperedError, match=OTHER):
        ask(book, PLAN)
    verify_book(other)
    other.disconnect()


def test_a_backup_of_sqlite_that_is_restored_in_place_is_seen(tmp_path):
    book = filled(Book.create(str(tmp_path / "book.db"), by="officer"), epsilon=1.0)
    with (
        sqlite3.connect(tmp_path / "book.db") as live,
        sqlite3.connect(tmp_path / "kept.db") as kept,
    ):
        live.backup(kept)
        ask(book, PLAN)
        kept.backup(live)
    with pytest.raises(TamperedError, match=OTHER):
        ask(book, PLAN)
    kept.close()
    live.close()


def test_what_others_wrote_meanwhile_is_no_other_log(book, clock):
    filled(book, epsilon=1.0)
    other = Book(book.store.url.render_as_string(hide_password=False), clock=clock)
    for each in (other, book, other, book):
        ask(each, laplace(8.0))
    other.disconnect()
    assert verify_book(book)["releases"] == 4


def test_a_rest_of_one_period_and_a_budget_for_ever_ask_nobody(book, clock):
    filled(book, epsilon=1.0)
    clock.move(days=4000)
    ask(book, PLAN)
    book.add(BudgetRecord("yearly", "visits", limit_of({"epsilon": 1.0}), "year"), by="officer")
    clock.move(days=366)
    ask(book, PLAN)


@pytest.mark.parametrize(
    ("window", "days"), [("year", 366), ("month", 31), ("day", 31), ("90 days", 90)]
)
def test_a_leap_of_the_clock_opens_no_budget(book, clock, window, days):
    filled(book, window, epsilon=1.0)
    assert longest_pause(window) == days
    ask(book, laplace(1.0))
    clock.move(days=days + 1)
    before = log_lines(book)
    for _ in range(2):
        with pytest.raises(InputError, match=f"{days + 1} days after the last line"):
            ask(book, PLAN)
        with pytest.raises(InputError, match=f"dpaudit book clock {clock.now.date()}"):
            book.retire("main", by="eve", why="to move the time")
    assert log_lines(book) == before
    with pytest.raises(InputError, match="must be the clock's day"):
        set_clock(book, clock.now.date() + timedelta(days=1), by="officer")
    set_clock(book, clock.now.date(), by="officer")
    ask(book, PLAN)
    verify_book(book)
    said = [line for line in log_lines(book) if '"event":"clock"' in line]
    assert len(said) == 1
    assert '"by":"officer"' in said[0]
