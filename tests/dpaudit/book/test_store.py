"""Many clients at once, clients and servers that die, and what the database must be set to."""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from book_clients import reserve_many, start, told_in
from booking import ask, at_once, filled, gaussian, laplace, one_by_one

from dpaudit.base.errors import BudgetExceededError, InputError
from dpaudit.book import Book, BudgetRecord, databases, limit_of, remaining_budgets, verify_book
from dpaudit.book.store import Store, Transaction

PLAN = laplace(32.0)


def releases(book: Book) -> dict[str, str]:
    found = list(book.releases())
    assert len({each.request for each in found}) == len(found)
    return {each.request: each.id for each in found}


def test_clients_in_processes_and_threads_never_overspend(url, tmp_path):
    book = filled(Book.create(url, by="officer"), epsilon=1.0)
    given = [(url, PLAN, f"{n}", 6, 4, tmp_path / f"{n}.told") for n in range(3)]
    for process in [start(reserve_many, *each) for each in given]:
        process.join(60)
        assert process.exitcode == 0
    told = told_in(tmp_path)
    assert len(told) == 72
    assert sum(told.values()) == len(releases(book)) == 32
    assert (
        remaining_budgets(book)[0].left[0].total
        == remaining_budgets(book)[0].left[0].budget.limit.bounds
    )
    assert 20 < verify_book(book)["refused"] <= 40  # the 1st, 2nd, 4th … of each have a line


def test_what_threads_ask_at_once_is_one_transaction(book):
    store, seen, answers = filled(book, epsilon=1.0)._store, [], []

    def count(page):
        seen.append(id(page))

    def refuse(page):
        raise InputError("no")

    def refused():
        with pytest.raises(InputError, match="no"):
            store.change(Transaction(refuse))
        answers.append("refused")

    one_by_one(store, *[lambda: store.change(Transaction(count))] * 5, refused)
    assert len(seen) == 5
    assert len(set(seen)) == 1
    assert answers == ["refused"]


def test_a_wish_that_fails_fails_alone_and_is_not_quoted(book):
    store, answers = filled(book, epsilon=1.0)._store, []

    def hostile():
        with pytest.raises(InputError, match="cannot write this") as error:
            store.change(Transaction(lambda page: page.write("barred", "eve", why="hers\ud800")))
        answers.append(str(error.value))

    one_by_one(store, hostile, *[partial(ask, book, PLAN)] * 3, hostile)
    assert len(releases(book)) == 3
    assert len(answers) == 2
    assert "hers" not in str(answers)
    verify_book(book)


@pytest.mark.parametrize("gone", [["-wal"], ["-shm"], ["-wal", "-shm"]])
@pytest.mark.parametrize("backup", [True, False])
def test_nothing_is_charged_once_what_lies_beside_the_file_is_gone(tmp_path, backup, gone):
    path = tmp_path / "book.db"
    book = filled(Book.create(str(path), by="officer"), epsilon=1.0)
    sqlite3.connect(path).execute("PRAGMA wal_checkpoint(TRUNCATE)")
    copy = path.read_bytes()
    ask(book, PLAN)
    if backup:
        path.write_bytes(copy)  # in place: the same file, with older content
    for name in gone:
        Path(f"{path}{name}").unlink()
    with pytest.raises(InputError, match="was removed or replaced while it was open"):
        ask(book, PLAN)


@pytest.mark.parametrize("backup", [True, False])
def test_nothing_is_written_into_a_file_that_is_gone(tmp_path, backup):
    path = tmp_path / "book.db"
    book = filled(Book.create(str(path), by="officer"), epsilon=1.0)
    sqlite3.connect(path).execute("PRAGMA wal_checkpoint(TRUNCATE)")
    copy = path.read_bytes()
    path.rename(tmp_path / "moved.db")
    if backup:
        path.write_bytes(copy)
    for act in (lambda: ask(book, PLAN), lambda: list(book.releases())):
        with pytest.raises(InputError, match="was removed or replaced while it was open"):
            act()
    assert (not backup) or not releases(Book(str(path)))
    (tmp_path / "moved.db").replace(path)
    assert not releases(Book(str(path)))


def test_a_budget_counts_what_was_reserved_while_it_waited(book):
    filled(book, epsilon=1000.0)
    later = BudgetRecord("later", "visits", limit_of({"epsilon": 0.1875}))

    def reserve():
        with suppress(BudgetExceededError):
            ask(book, PLAN)

    adding = partial(book.add, later, by="officer")
    one_by_one(book._store, *[reserve] * 4, adding, *[reserve] * 4)
    assert len(releases(book)) == 6
    main, found = remaining_budgets(book)[0].left
    assert main.total == found.total == found.budget.limit.bounds
    verify_book(book)


def test_more_wait_than_one_transaction_takes(book, monkeypatch):
    monkeypatch.setattr("dpaudit.book.store._MOST_AT_ONCE", 2)
    filled(book, epsilon=1000.0)
    at_once(*[partial(ask, book, PLAN)] * 12)
    assert verify_book(book)["releases"] == 12


def test_clients_that_are_killed_lose_and_double_nothing(url, tmp_path):
    book = filled(Book.create(url, by="officer"), epsilon=1000.0)
    for turn in range(4):
        told = tmp_path / f"{turn}.told"
        process = start(reserve_many, url, PLAN, f"{turn}", 10_000, 2, told)
        while not told.exists() or told.stat().st_size < 60 * (turn + 1):
            time.sleep(0.005)
        os.kill(process.pid, signal.SIGKILL)
        process.join(10)
        held = set(releases(book))
        assert set(told_in(tmp_path)) <= held
        assert len(held) <= len(told_in(tmp_path)) + 2 * (turn + 1)  # one in each thread
    ask(book, PLAN)  # waits for what the server still does for a client that is no more
    assert verify_book(book)["releases"] == len(releases(book)) > 30


def test_a_server_that_is_killed_loses_nothing(tmp_path):
    pytest.importorskip("psycopg")
    import postgres

    if postgres.binaries() is None:
        pytest.skip("there is no PostgreSQL")
    with postgres.server() as server:
        url = server.database()
        book = filled(Book.create(url, by="officer"), epsilon=1000.0)
        told = tmp_path / "1.told"
        process = start(reserve_many, url, PLAN, "1", 40, 2, told, True)
        for turn in (1, 2):
            while not told.exists() or told.stat().st_size < 100 * turn:
                time.sleep(0.005)
            server.kill()
            server.start()
        process.join(60)
        assert process.exitcode == 0
        assert set(releases(book)) == set(told_in(tmp_path))
        assert verify_book(book)["releases"] == 80
        server.kill()
        server.start("-c", "fsync=off")
        with pytest.raises(InputError, match="runs with fsync off, which can lose a charge"):
            Book(url)


def test_a_transaction_that_fails_changes_nothing(book, monkeypatch):
    filled(book, epsilon=1.0)
    before = verify_book(book)

    def broken(*_):
        raise RuntimeError("no power")

    with monkeypatch.context() as patch:
        patch.setattr(Store, "_save", broken)
        with pytest.raises(InputError, match=r"cannot write this \(RuntimeError\)"):
            ask(book, PLAN)
    assert verify_book(book) == before
    ask(book, PLAN)


def test_a_fork_has_connections_of_its_own(book, url, tmp_path):
    filled(book, epsilon=1.0)

    def child() -> None:
        ask(book, PLAN)

    process = start(child)
    process.join(20)
    assert process.exitcode == 0
    ask(book, PLAN)
    assert verify_book(book)["releases"] == 2


def test_no_setting_may_lose_a_charge(url, book):
    filled(book, epsilon=1.0)
    with book._store.transaction(writes=True) as connection:
        if "://" in url:
            shown = connection.exec_driver_sql("SHOW synchronous_commit").scalar()
        else:
            shown = connection.exec_driver_sql("PRAGMA synchronous").scalar()
            assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
    assert shown in ("on", 2)


@pytest.mark.parametrize(
    "url", ["mysql://a@b/c", "sqlite://", "sqlite:///:memory:", "://", "postgresql"]
)
def test_urls_that_are_none(url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"it must be a file, or postgresql://|does not exist"):
        Book(url)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:SECRET@localhost:1/none",
        "postgresql://me:SECRET@localhost:noport/none",
        "postgresql://me:SE@CRET@localhost:1/none",
        "postgresql://me:1/SECRET@localhost:1/none",
        "postgresql://me:SECRET@[::1/none",
        "postgresql://me@localhost:1/none?password=SECRET",
        "postgresql://me@localhost:1/none?sslpassword=SECRET",
        "postgresql://me@localhost:1/none?%70assword=SECRET",
        "postgresql://me@localhost:1/none?password=SECRET&password=SECRET2",
        "postgresql://me@localhost:1/none?sslmode=SECRET",
        "postgresql://me@/none?host=SECRET.invalid",
        "postgresql:/me:SECRET@localhost/none",
        "me:SECRET@localhost/none",
        "host=localhost/none password=SECRET",
        "mysql://me@localhost/none?password=SECRET",
        "sqlite:///none.db?password=SECRET",
        "sqlite://me:SECRET@localhost/none.db",
    ],
)
@pytest.mark.parametrize("make", [Book, partial(Book.create, by="officer")])
def test_a_password_is_not_shown(url, make, tmp_path, monkeypatch):
    pytest.importorskip("psycopg")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"does not (answer|exist)|it must be|write %40") as caught:
        make(url)
    assert "CRET" not in str(caught.value)


def test_an_error_names_the_book(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pytest.importorskip("psycopg")
    with pytest.raises(InputError, match="book 'postgresql://localhost' does not answer"):
        Book("postgresql://me:word@localhost:1/none")
    with pytest.raises(InputError, match=r"book 'none\.db' does not exist"):
        Book("none.db")


@pytest.mark.parametrize("url", ["what?.db", "sqlite:///what?.db"])
def test_a_file_with_a_question_mark_is_not_another_file(url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"has a \?; it must be a file"):
        Book.create(url, by="officer")
    assert list(tmp_path.iterdir()) == []


def test_several_make_the_book_at_once(url):
    made: list[Book] = []
    waiting = threading.Barrier(4)

    def make() -> None:
        waiting.wait(10)
        made.append(Book.create(url, by="officer"))

    at_once(*[make] * 4)
    assert len(made) == 4
    assert len({verify_book(each)["book"] for each in made}) == 1
    for each in made:
        each.disconnect()


def test_older_and_newer_tables(url, book, monkeypatch):
    known = len(databases.STEPS)
    steps = (*databases.STEPS, ("CREATE TABLE later (one INTEGER)",))
    monkeypatch.setattr(databases, "STEPS", steps)
    with pytest.raises(
        InputError, match=f"version {known}, not {known + 1}: they are older; dpaudit"
    ):
        Book(url)
    newer = filled(Book.create(url, by="officer"), epsilon=1.0)
    ask(newer, PLAN)
    assert verify_book(newer)["releases"] == 1
    monkeypatch.setattr(databases, "STEPS", steps[:known])
    with pytest.raises(InputError, match="newer"):
        Book(url)
    with pytest.raises(BudgetExceededError):
        ask(newer, laplace(1.0))
    with pytest.raises(InputError, match="has no pure"):
        ask(newer, gaussian())


def test_a_folder_that_takes_no_book(tmp_path):
    with pytest.raises(InputError, match=r"unable to open .*; it must be in a folder that exists"):
        Book.create(str(tmp_path / "none" / "book.db"), by="officer")


def test_a_file_that_is_no_book(tmp_path):
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE mine (one INTEGER)")
    other.close()
    with pytest.raises(InputError, match="there is no book in this database"):
        Book(str(path))
    path.write_text("hello " * 100)
    with pytest.raises(InputError, match="does not answer: file is not a database"):
        Book(str(path))
