"""What a release costs on its own, in words."""

from __future__ import annotations

from booking import ask, filled, gaussian, opened

from dpaudit.book import BudgetRecord, limit_of
from dpaudit.book.costs import ReleaseCosts


def test_a_cost_is_what_stays_charged(book, tmp_path):
    filled(book, rho=1.0)
    whole, part, none = (ask(book, plan := gaussian(count=2)) for _ in range(3))
    with opened(part, tmp_path / "j") as ledger:
        ledger.release(plan.invocations[0].mechanism, 0.5)
        ledger.close()
    book.close(part.id, by="ann", journal=tmp_path / "j")
    book.withdraw(none.id, by="ann", why="not needed")
    costs = ReleaseCosts(book)
    told = [costs.everywhere(book.release(each.id)) for each in (whole, part, none)]
    assert told == ["rho = 0.25", "rho = 0.125", "nothing"]


def test_every_budget_that_counts_is_named_where_costs_differ(book):
    filled(book, rho=1.0)
    book.add(BudgetRecord("same", "visits", limit_of({"rho": 2.0})), by="officer")
    one = ask(book, gaussian())
    assert ReleaseCosts(book).everywhere(one.release) == "rho = 0.125"
    zcdp = limit_of({"kind": "zcdp", "epsilon": 9.0, "delta": 1e-6})
    book.add(BudgetRecord("other", "visits", zcdp), by="officer")
    said = ReleaseCosts(book).everywhere(ask(book, gaussian()).release)
    assert said.startswith("main: rho = 0.125; same: rho = 0.125; other: epsilon = ")
    for name in ("main", "same", "other"):
        book.retire(name, by="officer", why="done")
    assert ReleaseCosts(book).everywhere(one.release) == "–"
