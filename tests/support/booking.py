"""What tests of the book share: plans, and a book with one data set and one budget."""

from __future__ import annotations

import json
import threading
import time
from functools import partial, reduce
from operator import getitem

from sqlalchemy import text

from dpaudit import (
    AddRemove,
    FloatNoise,
    Gaussian,
    Invocation,
    Laplace,
    Ledger,
    Plan,
    PrivacyUnit,
    TrustModel,
)
from dpaudit.base.chain import chained_line
from dpaudit.book import Book, BudgetRecord, DataSet, limit_of
from dpaudit.book.store import Transaction

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


def opened(reserved, journal) -> Ledger:
    """A ledger whose budget and anchor a reservation is."""
    plan = reserved.plan
    return Ledger(plan, noise=FloatNoise(), journal=journal, budget=reserved, anchor=reserved)


def ran(reserved, journal, times: int = 1) -> Ledger:
    """One that made some releases, and is closed."""
    with opened(reserved, journal) as ledger:
        for _ in range(times):
            ledger.release(reserved.plan.invocations[0].mechanism, 0.5)
        ledger.close()
    return ledger


def at_once(*work, seconds: float = 30) -> None:
    """Do several things in threads, all of which end."""
    threads = [threading.Thread(target=each) for each in work]
    for each in threads:
        each.start()
    for each in threads:
        each.join(seconds)
        assert not each.is_alive()


def one_by_one(store, *asked) -> None:
    """Ask in threads, each once the one before it waits in the queue behind one that is slow."""
    entered, go = threading.Event(), threading.Event()

    def slow(page):
        entered.set()
        go.wait(10)

    asked = (partial(store.change, Transaction(slow)), *asked)
    threads = [threading.Thread(target=each) for each in asked]
    for number, each in enumerate(threads):
        each.start()
        entered.wait(10)
        while len(store._queue) < number:
            time.sleep(0.001)
    go.set()
    for each in threads:
        each.join(10)


def forged(book, event, place, value):
    """Change all lines of a kind and make all hashes anew: what only an anchor would tell.

    What stands at a place, its keys with dots between, becomes the value, or what that makes of it.
    """
    *way, last = (int(key) if key.isdigit() else key for key in place.split("."))
    head, new = "", []
    for number, text_of in enumerate(log_lines(book)):
        record = json.loads(text_of)
        if record["event"] == event:
            inner = reduce(getitem, way, record)
            inner[last] = value(inner[last]) if callable(value) else value
        facts = {k: v for k, v in record.items() if k not in ("number", "previous", "hash")}
        line, head = chained_line(facts, number, head)
        new.append({"number": number, "line": line.decode().rstrip("\n")})
    with book.store.transaction(writes=True) as connection:
        update = "UPDATE log SET line = :line WHERE number = :number"
        connection.execute(text(update), new)
        connection.execute(text("UPDATE head SET hash = :hash"), {"hash": head})


def log_lines(book):
    """The lines of the log, as they were written."""
    with book.reading() as connection:
        return connection.execute(text("SELECT line FROM log ORDER BY number")).scalars().all()


def edited(book, statement, **given):
    """Do in the database what no book would."""
    with book.store.transaction(writes=True) as connection:
        return connection.execute(text(statement), given)
