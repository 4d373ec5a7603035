"""Tokens, second persons, and what is logged of who may not."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial

import pytest
from booking import ABOUT, ask, at_once, edited, filled, forged, laplace, log_lines, opened, ran

from dpaudit import FloatNoise, Ledger
from dpaudit.base.errors import (
    AccessError,
    BudgetExceededError,
    InputError,
    JournalError,
    TamperedError,
)
from dpaudit.base.files import canonical_json
from dpaudit.book import (
    Book,
    BudgetRecord,
    DataSet,
    Role,
    Status,
    databases,
    decide,
    holder,
    issue,
    limit_of,
    publish,
    record_refusal,
    remaining_budgets,
    revoke,
    still_held,
    tokens,
    verify_book,
)

PLAN = laplace(4.0)


@pytest.fixture
def guarded(book):
    """A book whose one budget, of ε = 1, asks for a second person."""
    book.add(DataSet("visits", *ABOUT), by="officer")
    main = BudgetRecord("main", "visits", limit_of({"epsilon": 1.0}), approval=True)
    book.add(main, by="officer")
    return book


def used(book):
    left = remaining_budgets(book)[0].left[0]
    return left.total[0] / left.budget.limit.bounds[0]


def test_a_release_waits_holding_its_charge_until_a_second_person_approves(guarded, tmp_path):
    asked = ask(guarded, PLAN, request="7")
    assert asked.release.status is Status.REQUESTED
    assert used(guarded) == 0.25
    with (
        pytest.raises(BudgetExceededError, match="waits for approval, and nothing was drawn"),
        Ledger(PLAN, noise=FloatNoise(), budget=asked) as ledger,
    ):
        ledger.release(PLAN.invocations[0].mechanism, 0.5)
    again = guarded.reservation(asked.id, by="ann")
    with pytest.raises(JournalError, match=f"{asked.id} is requested; nothing was drawn"):
        opened(again, tmp_path / "a")
    with pytest.raises(InputError, match="waits for approval; deny it"):
        guarded.close(asked.id, by="ann", abandoned="no")
    assert decide(guarded, asked.id, by="bob", approve=True).approved == "bob"
    assert decide(guarded, asked.id, by="bob", approve=True).status is Status.RESERVED
    free = ask(guarded, PLAN, request="7")
    assert (free.id, free.release.approved) == (asked.id, "bob")
    ran(free, tmp_path / "b")
    assert verify_book(guarded)["releases"] == 1


@pytest.mark.parametrize("name", ["ann", " a nn", "ＡＮＮ", "\u0430nn\u034f"])
def test_nobody_is_their_own_second_person(guarded, name):
    asked = ask(guarded, PLAN, by="ann")
    with pytest.raises(AccessError, match="somebody else must approve it"):
        decide(guarded, asked.id, by=name, approve=True)
    assert guarded.release(asked.id).status is Status.REQUESTED


def test_what_is_denied_gives_its_charge_back_once(guarded):
    asked = ask(guarded, PLAN)
    for _ in range(2):
        assert decide(guarded, asked.id, by="bob", approve=False, why="no").status is Status.DENIED
    assert used(guarded) == 0
    with pytest.raises(InputError, match="is denied; there is nothing to decide"):
        decide(guarded, asked.id, by="bob", approve=True)
    withdrawn = ask(guarded, PLAN)
    decide(guarded, withdrawn.id, by="ann", approve=False, why="a mistake")
    with pytest.raises(InputError, match="why"):
        decide(guarded, ask(guarded, PLAN).id, by="bob", approve=False)
    guarded.add(BudgetRecord("later", "visits", limit_of({"epsilon": 5.0})), by="officer")
    assert remaining_budgets(guarded)[0].left[1].total == (
        remaining_budgets(guarded)[0].left[0].total
    )
    assert verify_book(guarded)["releases"] == 3


def test_of_two_who_decide_at_once_one_does(guarded):
    asked, answers = [ask(guarded, PLAN).id for _ in range(4)], []

    def decided(release, approve):
        with suppress(InputError):
            answers.append(decide(guarded, release, by=f"b{approve}", approve=approve, why="x"))

    for release in asked:
        at_once(*(partial(decided, release, approve) for approve in (True, False)))
    assert sorted(each.id for each in answers) == sorted(asked)
    kept = sum(each.status is Status.RESERVED for each in guarded.releases())
    assert used(guarded) == kept / 4
    verify_book(guarded)


def test_a_name_that_is_told_is_no_approval(guarded):
    with pytest.raises(InputError, match="approved is given, but a budget requires approval"):
        ask(guarded, PLAN, approved="the board")


def forge(book, event, by, **facts):
    """Add a line to the log, with a chain that holds and tables that follow it."""
    from dpaudit.book.store import Transaction

    book.change(
        Transaction(lambda page: page.write(event, by, **facts), releases=(facts["release"],))
    )


@pytest.mark.parametrize("by", ["ann", "ANN "])
def test_a_forged_approval_by_who_asked_is_found(guarded, by):
    asked = ask(guarded, PLAN)
    forge(guarded, "approved", by, release=asked.id, why="")
    with pytest.raises(TamperedError, match="has approved of release"):
        verify_book(guarded)


def test_a_release_that_did_not_wait_is_found(guarded):
    ask(guarded, PLAN)
    forged(guarded, "reserved", "record.status", "reserved")
    with pytest.raises(TamperedError, match="reserves a release that was reserved before"):
        verify_book(guarded)


def test_tokens(book, clock):
    secret = issue(book, "ann", "analyst", by="officer", until="2026-11-24")
    known = holder(book, secret)
    assert (known.name, known.role, known.until) == ("ann", Role.ANALYST, "2026-11-24")
    assert len(secret) > 43
    assert secret not in str(log_lines(book))
    assert secret not in str(tokens(book))
    for wrong in ("", secret[:-1], secret + "x", known.hash, "\udcff", "é" * 9):
        with pytest.raises(AccessError, match="does not belong to this book"):
            holder(book, wrong)
    clock.move(days=1)
    holder(book, secret)
    clock.move(days=1)
    with pytest.raises(AccessError, match="expired"):
        holder(book, secret)
    second = issue(book, "ann", Role.APPROVER, by="officer")
    with pytest.raises(AccessError, match="does not belong to this book"):
        holder(book, secret)
    with pytest.raises(AccessError, match="revoked"):
        still_held(book, known)
    revoke(book, "ann", by="officer")
    with pytest.raises(AccessError, match="revoked"):
        holder(book, second)
    for _ in range(2):
        with pytest.raises(InputError, match="must be the name of a valid token"):
            revoke(book, "ann", by="officer")
    for wrong in ("yesterday", "2026-11-01"):
        with pytest.raises(InputError, match="it must be a future day"):
            issue(book, "bob", "viewer", by="officer", until=wrong)
    with pytest.raises(InputError, match="must be visible, and of one script"):
        issue(book, "\u0430nn", "viewer", by="officer")
    with pytest.raises(InputError, match="role"):
        issue(book, "bob", "king", by="officer")
    verify_book(book)


def test_a_token_that_was_entered_beside_the_log_is_found(book):
    issue(book, "ann", "viewer", by="officer")
    known = replace(tokens(book)[0], role=Role.APPROVER)
    edited(book, "UPDATE token SET record = :record", record=canonical_json(known.to_dict()))
    with pytest.raises(TamperedError, match="token ann does not agree with the log"):
        verify_book(book)


def test_roles_are_in_order():
    assert [[one.may(least) for least in Role] for one in Role] == [
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]


def test_what_is_public_is_declared_and_may_be_taken_back(guarded):
    assert not remaining_budgets(guarded)[0].dataset.public
    for public in (True, True, False):
        publish(guarded, "visits", by="officer", public=public)
        assert remaining_budgets(guarded)[0].dataset.public is public
        guarded.add(DataSet("visits", *ABOUT), by="officer")  # the same is no change
    with pytest.raises(InputError, match="which the book does not have"):
        publish(guarded, "visit", by="officer")
    record_refusal(guarded, "ann", what="approve", why="is no approver", times=3)
    assert verify_book(guarded)["lines"] == 6


def test_a_book_of_earlier_tables_goes_on(url, clock, monkeypatch):
    with monkeypatch.context() as before:
        before.setattr(databases, "STEPS", databases.STEPS[:-1])
        old = Book.create(url, by="officer", clock=clock)
        ask(filled(old, epsilon=1.0), PLAN)
        old.disconnect()
    book = Book.create(url, by="officer", clock=clock)
    issue(book, "ann", "viewer", by="officer")
    assert ask(book, PLAN).release.status is Status.RESERVED
    assert verify_book(book)["releases"] == 2
    book.disconnect()
