"""Whatever is edited in the database is found."""

from __future__ import annotations

import json

import pytest
from booking import ask, filled, gaussian
from sqlalchemy import text

from dpaudit import FileAnchor, FloatNoise, Ledger
from dpaudit.book import BudgetRecord, limit_of, verify_book
from dpaudit.chain import chained_line
from dpaudit.errors import BudgetExceededError, TamperedError


@pytest.fixture
def used(book, tmp_path):
    """A book with a release that gave something back, one that is reserved, and one refused."""
    filled(book, rho=1.0)
    reserved = ask(book, plan := gaussian(count=4))
    with Ledger(
        plan, noise=FloatNoise(), journal=tmp_path / "j", budget=reserved, anchor=reserved
    ) as ledger:
        ledger.release(plan.invocations[0].mechanism, 0.5)
        ledger.close()
    book.close(reserved.id, by="ann", journal=tmp_path / "j")
    ask(book, gaussian(3.0))
    with pytest.raises(BudgetExceededError):
        ask(book, gaussian(0.1))
    book.add(BudgetRecord("later", "visits", limit_of({"rho": 2.0}), "30 days"), by="o")
    assert verify_book(book)["releases"] == 2
    return book


def sql(book, statement, **given):
    with book._store.transaction(writes=True) as connection:
        return connection.execute(text(statement), given)


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE log SET line = REPLACE(line, 'a test', 'a best') WHERE number = 3", "was edited"),
        ("DELETE FROM log WHERE number = 4", "does not follow line"),
        ("DELETE FROM log WHERE number = (SELECT MAX(number) FROM log)", "last lines were dropped"),
        ("UPDATE spent SET record = '[0,0]' WHERE budget = 'main'", "main in ever is not what the"),
        ("DELETE FROM spent", "is in the log and not in the table"),
        ("INSERT INTO spent VALUES ('main', 'x', '[0,0]')", "main in x is not what the log adds"),
        ("UPDATE budget SET record = REPLACE(record, '1.0', '9.0')", "budget main is not what"),
        ("UPDATE dataset SET record = REPLACE(record, 'user', 'row')", "dataset visits is not"),
        ("UPDATE release SET status = 'closed'", "release R.* is not what the log adds up to"),
        ("DELETE FROM release", "release R.* is in the log and not in the table"),
        ("UPDATE plan SET record = REPLACE(record, '3.0', '4.0')", "plan .* was edited"),
        ("DELETE FROM plan", "names a plan that is missing"),
        ("UPDATE head SET book = 'another'", "its last lines were dropped, or its head was edited"),
    ],
)
def test_every_edit_is_found(used, statement, said):
    sql(used, statement)
    with pytest.raises(TamperedError, match=said):
        verify_book(used)


def forged(book, change):
    """The log with one line changed, and all hashes made anew: what only an anchor would tell."""
    rows = sql(book, "SELECT line FROM log ORDER BY number").all()
    head, new = "", []
    for number, row in enumerate(rows):
        record = {k: v for k, v in json.loads(row.line).items() if k != "hash"}
        record = change(record) or record
        line, head = chained_line(
            {k: v for k, v in record.items() if k not in ("number", "previous")}, number, head
        )
        new.append({"number": number, "line": line.decode().rstrip("\n")})
    with book._store.transaction(writes=True) as connection:
        update = "UPDATE log SET line = :line WHERE number = :number"
        connection.execute(text(update), new)
        connection.execute(text("UPDATE head SET hash = :hash"), {"hash": head})


def cheaper(record):
    if record["event"] == "reserved":
        record["record"]["charged"]["main"][1][0] //= 2


def unbudgeted(record):
    if record["event"] == "reserved":
        record["record"]["charged"] = {}


def elsewhere(record):
    if record["event"] == "reserved":
        record["record"]["charged"]["main"][0] = ["never"]


def generous(record):
    if record["event"] == "ended":
        record["returned"]["main"][0] *= 2


def smaller(record):
    if record["event"] == "budget" and record["record"]["name"] == "main":
        record["record"]["limit"]["rho"] = 0.1


def forgetful(record):
    if record["event"] == "budget":
        record["carried"] = {}


def senseless(record):
    if record["event"] == "started":
        record["release"] = "R99"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (cheaper, "charges less to 'main' than its plan costs"),
        (unbudgeted, "does not charge every budget"),
        (elsewhere, "charges other days to 'main'"),
        (generous, "gives 'main' more back than did not run"),
        (smaller, "charges more than a budget admits"),
        (forgetful, "leaves out what was released before"),
        (senseless, "says what cannot be"),
    ],
)
def test_a_log_that_was_written_anew_must_still_add_up(used, change, said):
    forged(used, change)
    with pytest.raises(TamperedError, match=said):
        verify_book(used)


def test_an_anchor_tells_an_older_or_another_log(used, tmp_path):
    anchor = FileAnchor(tmp_path / "anchor")
    facts = verify_book(used, anchor)
    ask(used, gaussian(5.0))
    assert verify_book(used, anchor)["lines"] == facts["lines"] + 1

    def renamed(record):
        if record["event"] == "refused":
            record["purpose"] = "another"

    forged(used, renamed)
    verify_book(used)
    with pytest.raises(TamperedError, match="not the one that was anchored"):
        verify_book(used, anchor)
    sql(used, "DELETE FROM log WHERE number = (SELECT MAX(number) FROM log)")
    with pytest.raises(TamperedError, match="its last ones were dropped"):
        verify_book(used, anchor)
