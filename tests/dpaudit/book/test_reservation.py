"""A release at the door of its ledger."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest
from book_clients import start
from booking import ask, filled, forged, gaussian, laplace, opened

from dpaudit import ClosedLedgerError, FloatNoise, Gaussian, Ledger
from dpaudit.base.chain import chained_line
from dpaudit.base.errors import (
    BudgetExceededError,
    DpAuditError,
    InputError,
    JournalError,
    PlanMismatchError,
    TamperedError,
)
from dpaudit.book import BudgetRecord, Status, limit_of, remaining_budgets, verify_book
from dpaudit.ledger.journal import FORMAT


@pytest.fixture
def reserved(book):
    return ask(filled(book, rho=1.0), gaussian(count=4))


def draw(ledger):
    return ledger.release(Gaussian(2.0), 0.5)


def test_every_line_is_in_the_book_before_its_noise(book, reserved, tmp_path):
    ledger = opened(reserved, tmp_path / "j")
    assert book.release(reserved.id).status is Status.RUNNING
    for lines in (2, 3):
        draw(ledger)
        known = book.release(reserved.id)
        assert (known.lines, known.head) == (lines, ledger.journal.head)
    ledger.close()
    verify_book(book)


def test_a_release_begins_once(book, reserved, tmp_path):
    opened(reserved, tmp_path / "j").close()
    again = book.reservation(reserved.id, by="bob")
    with pytest.raises(InputError, match="has begun with another journal"):
        opened(again, tmp_path / "k")
    other = book.reservation(reserved.id, by="bob")
    with (
        pytest.raises(BudgetExceededError, match="is running; it begins once"),
        Ledger(reserved.plan, noise=FloatNoise(), budget=other) as ledger,
    ):
        draw(ledger)


def test_a_reservation_serves_one_ledger(book, reserved, tmp_path):
    ledger = opened(reserved, tmp_path / "j")
    draw(ledger)
    with pytest.raises(BudgetExceededError, match="already has a ledger"):
        Ledger(reserved.plan, noise=FloatNoise(), budget=reserved)
    with pytest.raises(BudgetExceededError, match="already has a ledger"):
        opened(reserved, tmp_path / "k")
    draw(ledger)
    ledger.close()
    assert book.check_journal(tmp_path / "j").releases == 2


def test_what_began_without_an_anchor_gives_nothing_back(book, reserved, tmp_path):
    with pytest.raises(InputError, match="already exists"):
        opened(reserved, tmp_path)  # nothing began
    ledger = Ledger(reserved.plan, noise=FloatNoise(), budget=reserved, journal=tmp_path / "j")
    assert book.release(reserved.id).status is Status.RUNNING  # before anything is drawn
    draw(ledger)
    ledger.close()
    with pytest.raises(InputError, match="has begun with another journal"):
        book.close(reserved.id, by="ann", journal=tmp_path / "j")
    assert book.close(reserved.id, by="ann").ran == ""
    verify_book(book)


@pytest.mark.parametrize("identifier", ["", None])
def test_a_forged_journal_gives_nothing_back(book, reserved, tmp_path, identifier):
    """Of a release that drew without an anchor, and whose journal is the empty text in the book."""
    draw(Ledger(reserved.plan, noise=FloatNoise(), budget=reserved))
    before = book.release(reserved.id)
    header = {"format": FORMAT, "plan": reserved.plan.to_dict(), "plan_hash": reserved.plan.hash}
    line, _ = chained_line(header | {"journal": identifier}, 0, "")
    (tmp_path / "forged").write_bytes(line)
    told = {"by": "ann", "journal": tmp_path / "forged", "abandoned": "a crash"}
    with pytest.raises(InputError, match="has begun with another journal"):
        book.close(reserved.id, **told)
    assert book.release(reserved.id) == before
    ended = book.close(reserved.id, by="ann", abandoned="a crash")
    assert (ended.status, ended.ran) == (Status.ABANDONED, "")
    assert remaining_budgets(book, "visits")[0].left[0].total[0] == before.cost("main")[0]
    verify_book(book)


@pytest.mark.parametrize("budget", [True, False])
def test_a_ledger_has_the_plan_that_was_reserved(book, reserved, tmp_path, budget):
    given = {"budget": reserved} if budget else {"anchor": reserved, "journal": tmp_path / "j"}
    with pytest.raises(PlanMismatchError, match=r"plan is not the one that release R\d reserved"):
        Ledger(gaussian(count=50), noise=FloatNoise(), **given)
    assert book.release(reserved.id).status is Status.RESERVED
    assert not (tmp_path / "j").exists()


@pytest.mark.parametrize("early", [True, False])
def test_a_forked_process_has_no_ledger_of_its_own(book, reserved, tmp_path, early):
    """Whether the fork was made before the release began, or after."""
    one = replace(reserved.plan.invocations[0], count=1, total=1)

    def child() -> None:
        with pytest.raises(BudgetExceededError, match="runs in another process"):
            reserved.admit(one)
        with pytest.raises(BudgetExceededError, match="already has a ledger"):
            Ledger(reserved.plan, noise=FloatNoise(), budget=reserved)

    def first() -> None:
        draw(Ledger(reserved.plan, noise=FloatNoise(), budget=reserved))

    if early:
        finished(first)
        with pytest.raises(BudgetExceededError, match="is running; it begins once"):
            Ledger(reserved.plan, noise=FloatNoise(), budget=reserved)
    else:
        draw(opened(reserved, tmp_path / "j"))
        finished(child)


def finished(target):
    process = start(target)
    process.join(20)
    assert process.exitcode == 0


def test_without_a_journal_it_admits_and_nothing_is_given_back(book, reserved):
    ledger = Ledger(reserved.plan, noise=FloatNoise(), budget=reserved)
    draw(ledger)
    assert book.release(reserved.id).status is Status.RUNNING
    book.close(reserved.id, by="officer", abandoned="stop")
    with pytest.raises(BudgetExceededError, match="has ended"):
        draw(ledger)
    verify_book(book)


def test_when_it_has_ended_nothing_is_drawn(book, reserved, tmp_path):
    ledger = opened(reserved, tmp_path / "j")
    draw(ledger)
    book.close(reserved.id, by="officer", abandoned="stop", journal=tmp_path / "j")
    with pytest.raises(JournalError, match=r"R\d is abandoned; nothing was drawn"):
        draw(ledger)
    with pytest.raises(ClosedLedgerError):
        draw(ledger)
    verify_book(book)


def test_an_interrupted_run_goes_on_and_a_copy_does_not(book, reserved, tmp_path):
    first = opened(reserved, tmp_path / "j")
    draw(first)
    first.journal.release()  # as if the process had ended
    shutil.copy(tmp_path / "j", tmp_path / "copy")
    one, two = (book.reservation(reserved.id, by="ann") for _ in range(2))
    ledger = Ledger.resume(tmp_path / "j", noise=FloatNoise(), budget=one, anchor=one)
    draw(ledger)
    with pytest.raises(InputError, match=r"copy that went another way|older copy"):
        Ledger.resume(tmp_path / "copy", noise=FloatNoise(), budget=two, anchor=two)
    for _ in range(2):
        draw(ledger)
    ledger.close()
    book.close(reserved.id, by="ann", journal=tmp_path / "j")
    verify_book(book)


def test_of_two_copies_at_once_one_goes_on(book, reserved, tmp_path):
    first = opened(reserved, tmp_path / "j")
    first.journal.release()
    shutil.copy(tmp_path / "j", tmp_path / "copy")
    one, two = (book.reservation(reserved.id, by="ann") for _ in range(2))
    known = one.state(first.journal.identifier)
    assert two.state(first.journal.identifier) == known
    one.advance(replace(known, lines=2, head="a" * 64), known)
    for lines in (2, 3):
        with pytest.raises(JournalError, match="continued in another copy"):
            two.advance(replace(known, lines=lines, head="b" * 64), known)


def test_a_copy_does_not_go_on_by_leaping_ahead(book, tmp_path):
    reserved = ask(filled(book, rho=2.0), plan := gaussian(count=8))
    ledger = opened(reserved, tmp_path / "j")
    shutil.copy(tmp_path / "j", tmp_path / "copy")
    other = book.reservation(reserved.id, by="bob")
    copy = Ledger.resume(tmp_path / "copy", noise=FloatNoise(), budget=other, anchor=other)
    noise = plan.invocations[0].mechanism
    with pytest.raises(JournalError, match="continued in another copy"):
        ledger.release_each(noise, [0.5] * 4, units=["ann"] * 4, at="g")
    with pytest.raises(ClosedLedgerError):
        draw(ledger)
    copy.release(noise, 0.5)
    copy.close()
    assert book.check_journal(tmp_path / "copy").releases == 1
    verify_book(book)


def test_a_line_that_was_written_and_not_entered_is_no_hindrance(book, reserved, tmp_path):
    ledger = opened(reserved, tmp_path / "j")
    ledger.journal._anchor = None  # as if the process had ended before the line was entered
    draw(ledger)
    ledger.journal.release()
    again = book.reservation(reserved.id, by="ann")
    ledger = Ledger.resume(tmp_path / "j", noise=FloatNoise(), budget=again, anchor=again)
    draw(ledger)
    ledger.close()
    book.close(reserved.id, by="ann", journal=tmp_path / "j")
    verify_book(book)


def test_only_what_was_reserved_is_admitted(book, reserved):
    invocation = replace(reserved.plan.invocations[0], count=1, total=1)
    for other in (
        replace(invocation, mechanism=Gaussian(1.0)),
        replace(invocation, at="elsewhere"),
        replace(laplace().invocations[0], at="g"),
    ):
        with pytest.raises(BudgetExceededError, match=r"is not what release R\d reserved"):
            reserved.admit(other)
    for _ in range(4):
        reserved.admit(invocation)
    with pytest.raises(BudgetExceededError, match="was reserved 4 times and is used up"):
        reserved.admit(invocation)


def test_what_never_began_is_withdrawn_and_gives_its_charge_back(book, reserved, tmp_path):
    done = book.withdraw(reserved.id, by="ann", why="not needed")
    assert (done.status, done.ran, done.withdrawn) == (Status.ABANDONED, "nothing", True)
    assert book.withdraw(reserved.id, by="ann", why="not needed") == done
    assert not any(remaining_budgets(book, "visits")[0].left[0].total)
    for given in ({"budget": reserved}, {"anchor": reserved, "journal": tmp_path / "j"}):
        with pytest.raises(DpAuditError, match=r"is abandoned|was withdrawn; no ledger can"):
            Ledger(reserved.plan, noise=FloatNoise(), **given)
    with pytest.raises(InputError, match="is abandoned, and stays abandoned"):
        book.close(reserved.id, by="ann")
    book.add(BudgetRecord("later", "visits", limit_of({"rho": 1.0})), by="officer")
    assert not any(any(each.total) for each in remaining_budgets(book, "visits")[0].left)
    verify_book(book)


@pytest.mark.parametrize("journal", [True, False])
def test_what_began_is_never_withdrawn(book, reserved, tmp_path, journal):
    if journal:
        opened(reserved, tmp_path / "j").close()
    else:
        Ledger(reserved.plan, noise=FloatNoise(), budget=reserved)
    with pytest.raises(InputError, match="a ledger was begun for release R"):
        book.withdraw(reserved.id, by="ann", why="not needed")
    book.close(reserved.id, by="ann")
    with pytest.raises(InputError, match="is closed, and stays closed"):
        book.withdraw(reserved.id, by="ann", why="not needed")
    assert remaining_budgets(book, "visits")[0].left[0].total[0] == reserved.release.cost("main")[0]


def test_a_ledger_that_could_not_be_opened_leaves_no_way_round_the_book(book, reserved, tmp_path):
    """What only passes releases on to a reservation begins the release with the first of them."""

    class Passing:
        def admit(self, invocation):
            reserved.admit(invocation)

    reserved.begin(reserved.plan, anchored=True)  # of a ledger whose journal could not be made
    ledger = Ledger(reserved.plan, noise=FloatNoise(), budget=Passing())
    draw(ledger)
    assert book.release(reserved.id).status is Status.RUNNING
    with pytest.raises(InputError, match="a ledger was begun"):
        book.withdraw(reserved.id, by="ann", why="not needed")


@pytest.mark.parametrize("place", ["there", "no/folder/j"])
def test_a_journal_that_cannot_be_made_costs_nothing(book, reserved, tmp_path, place):
    (tmp_path / "there").write_text("")
    journal = tmp_path / place
    with pytest.raises(InputError, match=r"already exists|its folder does not exist"):
        ask(book, reserved.plan, journal=journal)
    assert len(list(book.releases())) == 1
    with pytest.raises(InputError, match=r"already exists|its folder does not exist"):
        Ledger(reserved.plan, noise=FloatNoise(), budget=reserved, journal=journal)
    assert book.release(reserved.id).status is Status.RESERVED


def test_the_log_gives_back_without_a_journal_what_was_withdrawn_alone(book, reserved):
    book.withdraw(reserved.id, by="ann", why="not needed")
    forged(book, "ended", "status", "closed")
    with pytest.raises(TamperedError, match="gives back without a journal"):
        verify_book(book)
