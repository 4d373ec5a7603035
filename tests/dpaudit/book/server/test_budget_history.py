"""How much was left, by day: beside what the book itself adds up."""

from __future__ import annotations

import pytest
from booking import ask, filled, laplace

from dpaudit.book import BudgetRecord, decide, limit_of, remaining_budgets
from dpaudit.book.server.budget_history import BudgetHistory, Point, drawing, thinned


def told(course, book, name):
    budget = next(
        each.budget for each in remaining_budgets(book)[0].left if each.budget.name == name
    )
    return [(point.at, round(point.used, 9)) for point in course.of(budget)]


def test_budgets_of_every_window(book, clock):
    filled(book, epsilon=1.0)
    for name, window in (("monthly", "month"), ("rolling", "2 days")):
        made = BudgetRecord(name, "visits", limit_of({"epsilon": 2.0}), window)
        book.add(made, by="officer")
    course = BudgetHistory(book)
    ask(book, laplace(8.0))
    assert told(course, book, "main") == [("2026-11-23", 0.125)]
    for days in (1, 1, 10):
        clock.move(days=days)
        ask(book, laplace(8.0))
    days = ["2026-11-23", "2026-11-24", "2026-11-25", "2026-12-05"]
    shares = [0.125, 0.25, 0.375, 0.5]
    assert told(course, book, "main") == list(zip(days, shares, strict=True))
    assert told(BudgetHistory(book), book, "main") == told(course, book, "main")
    assert told(course, book, "monthly") == [("2026-11", 0.1875), ("2026-12", 0.0625)]
    rolling = [0.0625, 0.125, 0.125, 0.0625]
    assert told(course, book, "rolling") == list(zip(days, rolling, strict=True))
    for left in remaining_budgets(book)[0].left:
        assert course.of(left.budget)[-1].used == left.share


def test_what_is_given_back_and_what_was_before(book, clock):
    filled(book, epsilon=1.0)
    ask(book, laplace(8.0))
    made = BudgetRecord("later", "visits", limit_of({"epsilon": 1.0}), approval=True)
    book.add(made, by="officer")
    course, asked = BudgetHistory(book), ask(book, laplace(8.0))
    clock.move(days=1)
    decide(book, asked.id, by="bob", approve=False, why="no")
    for name in ("main", "later"):
        assert told(course, book, name) == [("2026-11-23", 0.25), ("2026-11-24", 0.125)]


def test_a_drawing_stays_within_its_frame():
    points = [Point("2026-01-01", 0.25), Point("2026-01-11", 3.0)]
    drawn = drawing(points, "2026-01-21")
    assert drawn.line == "52.0,47.0 241.0,47.0 241.0,152.0 430.0,152.0".replace(
        "52.0,47.0", "52,12 52.0,47.0"
    )
    assert (drawn.first, drawn.last) == ("2026-01-01", "2026-01-21")
    assert drawing([], "2026-01-21") is None
    assert drawing([Point("2026-W01", 0.5)], "2026-01-21").last == "2026-W01"
    assert points[1].described == "more than 100 %"
    assert points[0].described == "25 %"


def test_one_period_is_drawn_by_the_days_of_its_charges(book, clock):
    filled(book, "year", epsilon=1.0)
    course = BudgetHistory(book)
    budget = remaining_budgets(book)[0].left[0].budget
    assert course.only_period(budget) == ""
    ask(book, laplace(8.0))
    clock.move(days=8)
    ask(book, laplace(8.0))
    assert told(course, book, "main") == [("2026-11-23", 0.125), ("2026-12-01", 0.25)]
    assert course.only_period(budget) == "2026"
    clock.move(days=10)
    drawn = drawing(course.of(budget), book.today.isoformat(), "2026")
    assert (drawn.first, drawn.last) == ("2026-01-01", "2026-12-31")
    x = [52 + 378 * days / 364 for days in (326, 334, 344)]
    steps = [(x[0], 12), (x[0], 29.5), (x[1], 29.5), (x[1], 47), (x[2], 47)]
    assert drawn.line == " ".join(["52,12", *(f"{a:.1f},{b:.1f}" for a, b in steps)]).replace(
        f"{x[0]:.1f},12.0", f"{x[0]:.1f},12"
    )
    assert drawn.area == f"52,152 {drawn.line} {x[2]:.1f},152"
    clock.move(days=30)
    ask(book, laplace(8.0))
    assert told(course, book, "main") == [("2026", 0.25), ("2027", 0.125)]
    assert course.only_period(budget) == ""


def test_long_tables_are_thinned():
    points = [Point(f"{n}", n / 1000) for n in range(1000)]
    kept = thinned(points)
    assert len(kept) <= 24
    assert kept[-1] is points[-1]
    assert thinned(points[:5]) == points[:5]
    assert pytest.approx(0.999) == kept[-1].used
