"""Somebody's word for the time, after a pause in which a budget would begin anew."""

from __future__ import annotations

from datetime import date

from dpaudit.base.errors import InputError
from dpaudit.book.book import Book
from dpaudit.book.records import checked_text
from dpaudit.book.store import Page, Transaction


def set_clock(book: Book, day: date, *, by: str) -> None:
    """Say in the log that the clock is right, however long the book rested.

    Args:
        book: the book.
        day: the day that it is, in UTC.
        by: who says so.

    Raises:
        InputError: if the clock says another day.
    """

    def run(page: Page) -> None:
        if page.today != day:
            raise InputError(f"day is {day}; it must be the clock's day, {page.today}.")
        page.write("clock", checked_text(by=by))

    book.change(Transaction(run, alone=True, sets_time=True))
