"""What tests of the book share: plans, and a book with one data set and one budget."""

from __future__ import annotations

import json
import threading
import time

from sqlalchemy import text

from dpaudit import AddRemove, Gaussian, Invocation, Laplace, Plan, PrivacyUnit, TrustModel
from dpaudit.base.chain import chained_line
from dpaudit.book import Book, BudgetRecord, DataSet, limit_of

ABOUT = (PrivacyUnit("user"), AddRemove(), TrustModel.CENTRAL)

PLAN_FILE = """[plan]
unit = "user"
relation = "add-remove"
trust = "central"
[[invocation]]
mechanism = "laplace"
scale = 4.0
sensitivity = 1.0
"""
"""A plan of ε = 1/4."""


def gaussian(sigma: float = 2.0, count: int = 1, **facts: object) -> Plan:
    """Of ρ = count / (2 σ²)."""
    return Plan.of(Invocation(Gaussian(sigma), 1.0, *ABOUT, count=count, at="g", **facts))


def laplace(scale: float = 4.0, count: int = 1) -> Plan:
    """Of ε = count / scale."""
    return Plan.of(Invocation(Laplace(scale), 1.0, *ABOUT, count=count, at="l"))


def filled(book: Book, window: str = "ever", per: str = "", **limit: object) -> Book:
    """A book with the data set ``visits`` and the budget ``main``."""
    book.add(DataSet("visits", *ABOUT, per), by="officer")
    book.add(BudgetRecord("main", "visits", limit_of(limit), window), by="officer")
    return book


def ask(book: Book, plan: Plan, **told: object):
    return book.reserve("visits", plan, **{"by": "ann", "purpose": "a test"} | told)


def one_by_one(store, asked, entered, go) -> None:
    """Ask in threads, each once the one before it waits in the queue; then let the first go on."""
    threads = [threading.Thread(target=each) for each in asked]
    for number, each in enumerate(threads):
        each.start()
        entered.wait(10)
        while len(store._queue) < number:
            time.sleep(0.001)
    go.set()
    for each in threads:
        each.join(10)


def forged(book, change):
    """The log with one line changed, and all hashes made anew: what only an anchor would tell."""
    with book.reading() as connection:
        rows = connection.execute(text("SELECT line FROM log ORDER BY number")).all()
    head, new = "", []
    for number, row in enumerate(rows):
        record = {k: v for k, v in json.loads(row.line).items() if k != "hash"}
        record = change(record) or record
        line, head = chained_line(
            {k: v for k, v in record.items() if k not in ("number", "previous")}, number, head
        )
        new.append({"number": number, "line": line.decode().rstrip("\n")})
    with book.store.transaction(writes=True) as connection:
        update = "UPDATE log SET line = :line WHERE number = :number"
        connection.execute(text(update), new)
        connection.execute(text("UPDATE head SET hash = :hash"), {"hash": head})
