"""Whatever is edited in the database is found."""

from __future__ import annotations

import json

import pytest
from booking import ask, edited, filled, forged, gaussian, opened, ran

from dpaudit import FileAnchor, FloatNoise, Ledger
from dpaudit.base.errors import BudgetExceededError, InputError, TamperedError
from dpaudit.book import BudgetRecord, limit_of, verify_book


@pytest.fixture
def used(book, tmp_path):
    """A book with a release that gave something back, one that is reserved, and one refused."""
    filled(book, rho=1.0)
    reserved = ask(book, gaussian(count=4))
    ran(reserved, tmp_path / "j")
    book.close(reserved.id, by="ann", journal=tmp_path / "j")
    ask(book, gaussian(3.0))
    with pytest.raises(BudgetExceededError):
        ask(book, gaussian(0.1))
    book.add(BudgetRecord("later", "visits", limit_of({"rho": 2.0}), "30 days"), by="o")
    assert verify_book(book)["releases"] == 2
    return book


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE log SET line = REPLACE(line, 'a test', 'a best') WHERE number = 3", "was edited"),
        ("DELETE FROM log WHERE number = 4", "does not follow line"),
        ("DELETE FROM log WHERE number = (SELECT MAX(number) FROM log)", "last lines were dropped"),
        (
            "UPDATE spent SET record = '[0,0]' WHERE budget = 'main'",
            "main in ever does not agree with the",
        ),
        ("DELETE FROM spent", "is in the log but not in the table"),
        (
            "INSERT INTO spent VALUES ('main', 'x', '[0,0]')",
            "main in x does not agree with the log",
        ),
        (
            "UPDATE budget SET record = REPLACE(record, '1.0', '9.0')",
            "budget main does not agree with",
        ),
        (
            "UPDATE dataset SET record = REPLACE(record, 'user', 'row')",
            "dataset visits does not agree",
        ),
        ("UPDATE release SET status = 'closed'", "release R.* does not agree with the log"),
        ("DELETE FROM release", "release R.* is in the log but not in the table"),
        ("UPDATE plan SET record = REPLACE(record, '3.0', '4.0')", "plan .* was edited"),
        ("DELETE FROM plan", "names a plan that is missing"),
        ("UPDATE head SET book = 'another'", "its last lines were dropped, or its head was edited"),
    ],
)
def test_every_edit_is_found(used, statement, said):
    edited(used, statement)
    with pytest.raises(TamperedError, match=said):
        verify_book(used)


@pytest.mark.parametrize(
    ("event", "place", "value", "said"),
    [
        (
            "reserved",
            "record.charged.main.1.0",
            lambda n: n // 2,
            "charges less to 'main' than its",
        ),
        ("reserved", "record.charged", {}, "does not charge every budget"),
        ("reserved", "record.charged.main.0", ["never"], "charges the wrong days to 'main'"),
        (
            "ended",
            "returned.main.0",
            lambda n: 2 * n,
            "gives back more to 'main' than the cost of what did not run",
        ),
        ("budget", "record.limit.rho", 0.1, "charges more than a budget admits"),
        ("budget", "carried", {}, "leaves out the cost of earlier releases"),
        ("started", "release", "R99", "is not possible"),
        ("anchored", "lines", 1, r"has anchored of release R\d, which was running, with 1 lines"),
        ("ended", "lines", lambda n: n + 2, r"has ended of release R\d, which was running"),
        ("ended", "status", "running", r"has ended of release R\d, which was running"),
    ],
)
def test_a_log_that_was_written_anew_must_still_add_up(used, event, place, value, said):
    forged(used, event, place, value)
    with pytest.raises(TamperedError, match=said):
        verify_book(used)


def released(reserved):
    """All that was reserved, without a journal."""
    ledger = Ledger(reserved.plan, noise=FloatNoise(), budget=reserved)
    for _ in range(4):
        ledger.release(reserved.plan.invocations[0].mechanism, 0.5)
    ledger.close()


def set_back(book, reserved, status):
    """Make a release what it was, in its row: the log does not say so."""
    record = book.release(reserved.id).to_dict() | {"status": status}
    edited(
        book,
        "UPDATE release SET status = :status, record = :record WHERE id = :id",
        **{"status": status, "record": json.dumps(record), "id": reserved.id},
    )


def test_a_release_that_was_made_to_run_again_is_found(book):
    reserved = ask(filled(book, rho=1.0), gaussian(count=4))
    released(reserved)
    set_back(book, reserved, "reserved")
    released(book.reservation(reserved.id, by="ann"))
    with pytest.raises(TamperedError, match=r"has started of release R\d, which was running"):
        verify_book(book)


def test_a_release_that_was_given_back_twice_is_found(book, tmp_path):
    reserved = ask(filled(book, rho=1.0), gaussian(count=4))
    ran(reserved, tmp_path / "j")
    book.close(reserved.id, by="ann", journal=tmp_path / "j")
    set_back(book, reserved, "running")
    book.close(reserved.id, by="ann", journal=tmp_path / "j")
    with pytest.raises(TamperedError, match=r"has ended of release R\d, which was closed"):
        verify_book(book)


def test_a_release_that_went_on_after_its_end_is_found(book, tmp_path):
    reserved = ask(filled(book, rho=1.0), gaussian(count=4))
    ledger = opened(reserved, tmp_path / "j")
    book.close(reserved.id, by="ann", journal=tmp_path / "j", abandoned="stop")
    set_back(book, reserved, "running")
    ledger.release(reserved.plan.invocations[0].mechanism, 0.5)
    with pytest.raises(TamperedError, match=r"has anchored of release R\d, which was abandoned"):
        verify_book(book)


def test_a_time_that_was_set_back_is_found(book, clock):
    filled(book, "day", rho=0.2)
    ask(book, gaussian())
    edited(book, "UPDATE head SET made = '2026-11-01T00:00:00.000000+00:00'")
    with pytest.raises(TamperedError, match="time is not that of the last line"):
        verify_book(book)
    clock.move(days=-3)
    ask(book, gaussian())
    with pytest.raises(TamperedError, match="states an earlier time than the line before"):
        verify_book(book)


def test_what_was_deleted_and_entered_again_is_found(book):
    ask(filled(book, rho=0.2), gaussian(), request="7")
    edited(book, "DELETE FROM release")
    edited(book, "DELETE FROM spent")
    ask(book, gaussian(), request="7")
    with pytest.raises(TamperedError, match="reserves a release that was reserved before"):
        verify_book(book)


def test_a_budget_that_was_exchanged_is_found(book):
    filled(book, rho=0.2)
    edited(book, "DELETE FROM budget")
    edited(book, "UPDATE head SET catalogue = -1")
    book.add(BudgetRecord("main", "visits", limit_of({"rho": 9.0})), by="o")
    with pytest.raises(TamperedError, match="enters a budget again"):
        verify_book(book)


def test_an_anchor_tells_an_older_or_another_log(used, tmp_path):
    anchor = FileAnchor(tmp_path / "anchor")
    with pytest.raises(InputError, match=r"is missing or empty; .* --new-anchor"):
        verify_book(used, anchor)  # perhaps a mistyped path
    assert not anchor.path.exists()
    facts = verify_book(used, anchor, new_anchor=True)
    with pytest.raises(InputError, match="already knows this book"):
        verify_book(used, anchor, new_anchor=True)
    ask(used, gaussian(5.0))
    assert verify_book(used, anchor)["lines"] == facts["lines"] + 1
    forged(used, "refused", "purpose", "another")
    verify_book(used)
    with pytest.raises(TamperedError, match="not the one that was anchored"):
        verify_book(used, anchor)
    edited(used, "DELETE FROM log WHERE number = (SELECT MAX(number) FROM log)")
    with pytest.raises(TamperedError, match="its last ones were dropped"):
        verify_book(used, anchor)
