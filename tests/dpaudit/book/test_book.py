"""What a book admits, keeps and gives back, in SQLite and in PostgreSQL."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta

import pytest
from booking import ABOUT, ask, filled, gaussian, laplace, opened

from dpaudit import FloatNoise, Ledger, PrivacyUnit, ReplaceOne, TrustModel
from dpaudit.accounting import AdaptiveFilter
from dpaudit.base.errors import BudgetExceededError, InputError, TamperedError, UnsupportedError
from dpaudit.book import (
    Book,
    BudgetRecord,
    DataSet,
    Status,
    limit_of,
    remaining_budgets,
    verify_book,
)


def used(book: Book, budget: str = "main", **told: str) -> dict[str, float]:
    (known,) = remaining_budgets(book, "visits", **told)
    (left,) = [each for each in known.left if each.budget.name == budget]
    return left.budget.limit.reached(left.total)


def test_it_admits_what_the_filter_admits_and_logs_what_it_refuses(book):
    filled(book, epsilon=1.0)
    rng, budget, admitted = random.Random(1), AdaptiveFilter(1.0, 0.0), 0
    for _ in range(25):
        plan = laplace(rng.choice([7.0, 10.0, 24.0, 60.0]))
        try:
            ask(book, plan)
            admitted += 1
            budget.admit(plan.invocations[0])
        except BudgetExceededError:
            with pytest.raises(BudgetExceededError):
                budget.admit(plan.invocations[0])
    assert used(book)["epsilon"] == budget.spent
    facts = verify_book(book)
    assert facts["releases"] == admitted
    assert facts["refused"] <= 25 - admitted < 2 * facts["refused"]


def test_a_flood_of_refusals_does_not_fill_the_log(book, clock):
    filled(book, rho=0.1)

    def lines(times, **told):
        for _ in range(times):
            with pytest.raises(BudgetExceededError):
                ask(book, gaussian(0.1), **told)
        return verify_book(book)

    before = verify_book(book)["lines"]
    facts = lines(20)
    assert (facts["lines"] - before, facts["refused"]) == (5, 16)  # the 1st, 2nd, 4th, 8th, 16th
    assert lines(12)["refused"] == 32
    assert lines(1, by="bob")["refused"] == 33
    clock.move(days=1)
    assert lines(1)["refused"] == 34


def test_a_request_is_charged_once(book):
    filled(book, rho=1.0)
    first = ask(book, gaussian(), request="7")
    assert ask(book, gaussian(), request="7").release == first.release
    assert used(book)["rho"] == pytest.approx(1 / 8)
    with pytest.raises(InputError, match="request '7' was sent with another plan"):
        ask(book, gaussian(3.0), request="7")
    with pytest.raises(InputError, match="another purpose"):
        ask(book, gaussian(), request="7", purpose="more")


def test_all_budgets_of_a_data_set_must_admit(book):
    filled(book, epsilon=1.0)
    small = BudgetRecord("small", "visits", limit_of({"epsilon": 0.3, "delta": 1e-6}))
    book.add(small, by="officer")
    with pytest.raises(BudgetExceededError, match="budget 'small'"):
        ask(book, laplace(1.25))
    assert used(book)["epsilon"] == 0
    book.retire("small", by="officer", why="too small")
    ask(book, laplace(1.25))
    with pytest.raises(
        InputError, match="budget is 'small'; it must be a budget that is not retired"
    ):
        book.retire("small", by="officer", why="again")
    verify_book(book)


def test_a_later_budget_counts_what_was_before(book, clock):
    filled(book, epsilon=4.0)
    ask(book, laplace(4.0))
    clock.move(days=40)
    ask(book, laplace(8.0))
    for window, due in (("ever", 0.375), ("month", 0.125), ("30 days", 0.125), ("60 days", 0.375)):
        book.add(BudgetRecord(window, "visits", limit_of({"epsilon": 1}), window), by="o")
        assert used(book, window)["epsilon"] == due
    verify_book(book)
    ask(book, gaussian_free := laplace(1e9))
    assert gaussian_free
    tiny = BudgetRecord("tiny", "visits", limit_of({"epsilon": 0.1}))
    book.add(tiny, by="officer")  # it is exceeded, and says so
    assert remaining_budgets(book)[0].left[-1].share > 3
    with pytest.raises(BudgetExceededError):
        ask(book, laplace(1e9))


@pytest.mark.parametrize(("window", "days"), [("30 days", 30), ("week", 7), ("month", 8)])
def test_budgets_of_a_time_are_there_again(book, clock, window, days):
    filled(book, window, epsilon=1.0)  # 23 November
    ask(book, laplace(1.0))
    clock.move(days=days - 1)
    with pytest.raises(BudgetExceededError, match="has too little left"):
        ask(book, laplace(1.0))
    clock.move(days=1)
    ask(book, laplace(1.0))
    verify_book(book)


def test_no_window_of_days_holds_more_than_the_limit(book, clock):
    filled(book, "10 days", epsilon=1.0)
    rng, made = random.Random(2), []
    for _ in range(40):
        clock.move(days=rng.choice([0, 1, 3]))
        try:
            ask(book, laplace(scale := rng.choice([2.0, 4.0])))
            made.append((clock.now.date(), 1 / scale))
        except BudgetExceededError:
            pass
    for day, _ in made:
        inside = [cost for other, cost in made if timedelta(0) <= other - day < timedelta(10)]
        assert sum(inside) <= 1
    assert sum(cost for _, cost in made) > 3
    verify_book(book)


def test_a_unit_per_week_is_charged_for_the_weeks_that_are_read(book):
    filled(book, "week", per="week", epsilon=1.0)
    with pytest.raises(InputError, match="a unit per week, so window must be 'week', 'ever'"):
        book.add(BudgetRecord("m", "visits", limit_of({"epsilon": 1}), "month"), by="o")
    ask(book, laplace(2.0), period="2026-11-09..2026-11-22")  # two weeks, each in full
    assert used(book, period="2026-11-10")["epsilon"] == 0.5
    assert used(book, period="2026-11-16..2026-11-23")["epsilon"] == 0.5
    assert used(book)["epsilon"] == 0
    with pytest.raises(BudgetExceededError, match="2026-W47"):
        ask(book, laplace(1.5), period="2026-11-16..2026-11-29")
    ask(book, laplace(1.0))
    with pytest.raises(BudgetExceededError, match="2026-W48"):
        ask(book, laplace(4.0), period="2026-11-16..2026-11-29")
    verify_book(book)


def test_time_never_goes_back(book, clock):
    filled(book, "2 days", epsilon=1.0)
    ask(book, laplace(1.0))
    clock.move(days=-30)
    with pytest.raises(BudgetExceededError):
        ask(book, laplace(1.0))


def test_a_plan_must_protect_what_the_data_set_asks_for(book):
    filled(book, rho=1.0)
    plan = gaussian().invocations[0]
    for changed, said in (
        ({"unit": PrivacyUnit("row")}, "protects the unit row"),
        ({"relation": ReplaceOne()}, "protects the relation replace-one"),
        (
            {"trust": TrustModel.JOINT},
            "under joint trust; data set 'visits' requires central trust",
        ),
    ):
        with pytest.raises(InputError, match=said):
            ask(book, replace(gaussian(), invocations=(replace(plan, **changed),)))
    ask(book, replace(gaussian(), invocations=(replace(plan, trust=TrustModel.CURATOR),)))
    with pytest.raises(UnsupportedError, match="has no pure ε"):
        book.add(BudgetRecord("pure", "visits", limit_of({"epsilon": 1})), by="o")
    with pytest.raises(InputError, match="period is given; data set 'visits' protects all data"):
        ask(book, gaussian(), period="2026-11-23")


@pytest.mark.parametrize(
    "name", ["Shop", "shop ", "s hop", "\uff53hop", "s\u029cop", "\u0455\u04bb\u043e\u0440"]
)
def test_a_data_set_that_looks_like_another_is_refused(book, name):
    made = DataSet("shop", *ABOUT)
    book.add(made, by="officer")
    with pytest.raises(InputError, match="looks like the data set 'shop' of the book"):
        book.add(replace(made, name=name), by="officer")
    book.add(made, by="officer")
    book.add(replace(made, name="shop 2"), by="officer")
    assert verify_book(book)["lines"] == 3


@pytest.mark.parametrize("name", ["sh\u043ep", "\ua4e2hop", "shop\u3164"])
def test_a_data_set_whose_name_is_of_several_scripts_or_hidden_is_refused(book, name):
    made = DataSet("shop", *ABOUT)
    with pytest.raises(InputError, match=r"^dataset is .*be visible, and of one script"):
        book.add(replace(made, name=name), by="officer")


def test_digits_and_punctuation_tell_data_sets_apart(book):
    names = (
        "sales-1.1",
        "sales-11",
        "2024-1-12",
        "2024-11-2",
        "C",
        "C++",
        "Sch\u00fcler",
        "Schuler",
    )
    for name in names:
        book.add(DataSet(name, *ABOUT), by="officer")
    assert verify_book(book)["lines"] == 1 + len(names)


def test_names_that_are_wrong_or_taken(book):
    with pytest.raises(
        InputError, match="dataset is 'visits', which the book does not have; add one first"
    ):
        ask(book, gaussian())
    made = DataSet("visits", *ABOUT)
    for _ in range(2):
        book.add(made, by="officer")
    with pytest.raises(InputError, match="has no budget; give it one first"):
        ask(book, gaussian())
    with pytest.raises(InputError, match="the book already has another 'visits'"):
        book.add(replace(made, per="week"), by="officer")
    with pytest.raises(InputError, match="did you mean 'visits'"):
        book.reserve("visit", gaussian(), by="a", purpose="b")
    with pytest.raises(InputError, match=r"purpose is .*; it must have at most 200 printable"):
        ask(book, gaussian(), purpose="a\nb")
    with pytest.raises(InputError, match="per is 'hour'; it must be one of day, week"):
        DataSet("x", *ABOUT, "hour")
    with pytest.raises(InputError, match="release is 'R9', which the book does not have"):
        book.close("R9", by="ann")
    assert verify_book(book)["lines"] == 2


def ran(book, tmp_path, plan, uses: int, *, name: str = "j", close: bool = True):
    """A run of a plan that makes some of its releases."""
    reserved = ask(book, plan)
    journal = tmp_path / f"{name}.jsonl"
    ledger = opened(reserved, journal)
    for _ in range(uses):
        ledger.release(plan.invocations[0].mechanism, 0.25)
    if close:
        ledger.close()
    return reserved, journal, ledger


def test_what_the_journal_proves_not_to_have_run_is_given_back(book, tmp_path):
    filled(book, rho=1.0)
    plan = gaussian(count=4)
    reserved, journal, _ = ran(book, tmp_path, plan, 3)
    assert book.release(reserved.id).status is Status.RUNNING
    assert used(book)["rho"] == pytest.approx(4 / 8)
    ended = book.close(reserved.id, by="ann", journal=journal, certificate="c" * 64)
    assert ended.status is Status.CLOSED
    assert ended.lines == 5
    assert used(book)["rho"] == pytest.approx(3 / 8)
    assert book.close(reserved.id, by="ann", journal=journal) == ended  # said twice
    with pytest.raises(InputError, match="is closed, and stays closed"):
        book.close(reserved.id, by="ann", abandoned="no")
    verify_book(book)


def test_what_nothing_proves_stays_charged(book, tmp_path):
    filled(book, rho=1.0)
    reserved, journal, _ = ran(book, tmp_path, gaussian(count=4), 1, close=False)
    with pytest.raises(InputError, match="is open; resume or abandon it"):
        book.close(reserved.id, by="ann", journal=journal)
    book.close(ask(book, gaussian()).id, by="ann", abandoned="not needed")
    assert used(book)["rho"] == pytest.approx(5 / 8)
    book.close(reserved.id, by="ann", abandoned="it crashed", journal=journal)
    assert used(book)["rho"] == pytest.approx(2 / 8)
    nothing, journal, _ = ran(book, tmp_path, gaussian(count=4), 0, name="k")
    book.close(nothing.id, by="ann", journal=journal)
    assert used(book)["rho"] == pytest.approx(2 / 8)
    verify_book(book)


def test_by_the_names_of_units_nothing_is_given_back(book, tmp_path):
    """Whoever names another unit at every release has released all of it."""
    filled(book, rho=2.0)
    for count, total, spent in ((4, 4, 4 / 8), (4, 9, 8 / 8)):
        plan = gaussian(count=count, total=total)
        reserved = ask(book, plan)
        journal = tmp_path / f"{total}.jsonl"
        ledger = opened(reserved, journal)
        for n in range(total):
            ledger.release(plan.invocations[0].mechanism, 0.25, unit=f"query {n}")
        ledger.close()
        book.close(reserved.id, by="ann", journal=journal)
        assert used(book)["rho"] == pytest.approx(spent)
    verify_book(book)


def test_a_write_that_was_cut_off_before_its_anchor_goes_on(book, tmp_path, monkeypatch):
    """All of its lines are charged, and nothing of it was drawn."""
    filled(book, rho=9.0)
    plan = gaussian(count=9)
    for abandoned in (True, False):
        reserved, journal, ledger = ran(book, tmp_path, plan, 1, name=f"{abandoned}", close=False)
        monkeypatch.setattr(reserved, "advance", interrupt)
        with pytest.raises(KeyboardInterrupt):
            ledger.release_each(plan.invocations[0].mechanism, [0.5] * 4, units=list("abcd"))
        ledger.journal.release()
        again = book.reservation(reserved.id, by="ann")
        if abandoned:
            book.close(reserved.id, by="ann", journal=journal, abandoned="it crashed")
        else:
            resumed = Ledger.resume(journal, noise=FloatNoise(), budget=again, anchor=again)
            resumed.release(plan.invocations[0].mechanism, 0.5)
            resumed.close()
            book.close(reserved.id, by="ann", journal=journal)
    assert used(book)["rho"] == pytest.approx((5 + 6) / 8)
    verify_book(book)


def interrupt(*_):
    raise KeyboardInterrupt


def test_what_runs_while_its_journal_is_read_is_not_given_back(book, tmp_path, monkeypatch):
    filled(book, rho=1.0)
    reserved, journal, ledger = ran(book, tmp_path, gaussian(count=4), 1, close=False)
    stale = book.check_journal(journal, reserved.id)
    ledger.release(reserved.plan.invocations[0].mechanism, 0.25)
    copied = replace(stale, lines=4)  # which went another way, while this one was anchored

    def check(*_):
        ledger.close()
        return copied

    for late in (lambda *_: stale, check):
        monkeypatch.setattr(book, "check_journal", late)
        with pytest.raises(InputError, match="has grown meanwhile; try again"):
            book.close(reserved.id, by="ann", abandoned="stop", journal=journal)


def test_a_journal_of_another_run_gives_nothing_back(book, tmp_path):
    filled(book, rho=1.0)
    first, _, _ = ran(book, tmp_path, gaussian(count=2), 2, name="a")
    _, other, _ = ran(book, tmp_path, gaussian(count=2), 0, name="b")
    with pytest.raises(InputError, match="has begun with another journal"):
        book.close(first.id, by="ann", journal=other)
    stranger = tmp_path / "c.jsonl"
    Ledger(gaussian(), noise=FloatNoise(), journal=stranger).close()
    with pytest.raises(InputError, match="the book does not know this journal"):
        book.check_journal(stranger)


def test_a_dropped_tail_and_a_copy_are_found(book, tmp_path):
    filled(book, rho=1.0)
    reserved, journal, _ = ran(book, tmp_path, gaussian(count=3), 3, close=False)
    lines = journal.read_bytes().splitlines(keepends=True)
    for kept in (1, 2, 3):
        journal.write_bytes(b"".join(lines[:kept]))
        with pytest.raises(TamperedError, match="its last lines were dropped"):
            book.close(reserved.id, by="ann", abandoned="x", journal=journal)
    journal.write_bytes(b"".join(lines))
    assert book.check_journal(journal).releases == 3


def test_no_private_value_is_stored(book, url, tmp_path):
    filled(book, rho=1.0)
    secret = 73.58213
    reserved = ask(book, gaussian(1.0, count=1), purpose="a count")
    with opened(reserved, tmp_path / "j") as ledger:
        released = ledger.release(reserved.plan.invocations[0].mechanism, secret)
    book.close(reserved.id, by="ann", journal=tmp_path / "j")
    from sqlalchemy import text

    tables = ("head", "log", "dataset", "budget", "spent", "plan", "release", "version")
    with book.reading() as connection:
        rows = [tuple(r) for t in tables for r in connection.execute(text(f"SELECT * FROM {t}"))]
    book.disconnect()
    files = [path.read_bytes().decode("latin-1") for path in tmp_path.glob("book.db*")]
    stored = repr(rows) + "".join(files)
    assert "a count" in stored
    for hidden in (secret, released):
        assert f"{hidden:.5f}"[:6] not in stored
    assert len(rows) > 10


def test_there_is_no_book(url):
    with pytest.raises(InputError, match=r"does not exist|there is no book"):
        Book(url)
