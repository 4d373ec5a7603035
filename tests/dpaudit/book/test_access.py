"""Who may do what in a book, and how people come and go."""

from __future__ import annotations

import json
import random
import threading
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

import pytest
from booking import ABOUT, ask, filled, forged, gaussian, laplace
from sqlalchemy import text

from dpaudit import (
    FloatNoise,
    Invocation,
    Laplace,
    Ledger,
    Plan,
    PrivacyUnit,
    ReplaceOne,
    TrustModel,
)
from dpaudit.base.chain import chained_line
from dpaudit.base.errors import (
    AccessError,
    BudgetExceededError,
    InputError,
    JournalError,
    TamperedError,
    UnsupportedError,
)
from dpaudit.book import (
    Book,
    BudgetRecord,
    DataSet,
    Role,
    Status,
    add_people,
    charge_people,
    decide,
    holder,
    issue,
    limit_of,
    people_of,
    publish,
    record_refusal,
    remaining_budgets,
    revoke,
    schema,
    still_held,
    tokens,
    verify_book,
)

# -- tokens, second persons, and what is logged of who may not -------------------------------------


PLAN = laplace(4.0)


@pytest.fixture
def guarded(book):
    """A book whose one budget, of ε = 1, asks for a second person."""
    book.add(DataSet("visits", *ABOUT), by="officer")
    main = BudgetRecord("main", "visits", limit_of({"epsilon": 1.0}), approval=True)
    book.add(main, by="officer")
    return book


def used(book):
    return (
        remaining_budgets(book)[0].left[0].total[0]
        / remaining_budgets(book)[0].left[0].budget.limit.bounds[0]
    )


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
        Ledger(PLAN, noise=FloatNoise(), journal=tmp_path / "a", budget=again, anchor=again)
    with pytest.raises(InputError, match="waits for approval; deny it"):
        guarded.close(asked.id, by="ann", abandoned="no")
    assert decide(guarded, asked.id, by="bob", approve=True).approved == "bob"
    assert decide(guarded, asked.id, by="bob", approve=True).status is Status.RESERVED
    free = ask(guarded, PLAN, request="7")
    assert (free.id, free.release.approved) == (asked.id, "bob")
    with Ledger(
        PLAN, noise=FloatNoise(), journal=tmp_path / "b", budget=free, anchor=free
    ) as ledger:
        ledger.release(PLAN.invocations[0].mechanism, 0.5)
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
    with pytest.raises(InputError, match="is denied; nothing is to be decided"):
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
        both = [threading.Thread(target=decided, args=(release, one)) for one in (True, False)]
        for each in both:
            each.start()
        for each in both:
            each.join(20)
    assert sorted(each.id for each in answers) == sorted(asked)
    kept = sum(each.status is Status.RESERVED for each in guarded.releases())
    assert used(guarded) == kept / 4
    verify_book(guarded)


def test_a_name_that_is_told_is_no_approval(guarded):
    with pytest.raises(InputError, match="approved is given, and a budget asks for approval"):
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
    asked = ask(guarded, PLAN)
    with guarded._store.transaction(writes=True) as connection:
        row = connection.execute(text("SELECT line FROM log ORDER BY number DESC LIMIT 1")).one()
        line = json.loads(row.line)
        line["record"]["status"] = "reserved"
        head = line.pop("previous")
        del line["hash"], line["number"]
        made, digest = chained_line(line, 3, head)
        told = {"line": made.decode().rstrip("\n"), "hash": digest}
        connection.execute(text("UPDATE log SET line = :line WHERE number = 3"), told)
        connection.execute(text("UPDATE head SET hash = :hash"), told)
    assert asked.id == "R3"
    with pytest.raises(TamperedError, match="reserves what was reserved before"):
        verify_book(guarded)


def test_tokens(book, clock):
    secret = issue(book, "ann", "analyst", by="officer", until="2026-11-24")
    known = holder(book, secret)
    assert (known.name, known.role, known.until) == ("ann", Role.ANALYST, "2026-11-24")
    assert len(secret) > 43
    with book.reading() as connection:
        rows = connection.execute(text("SELECT line FROM log")).all()
    assert secret not in str(rows)
    assert secret not in str(tokens(book))
    for token in ("", secret[:-1], secret + "x", known.hash, "\udcff", "é" * 9):
        with pytest.raises(AccessError, match="not one of this book"):
            holder(book, token)
    clock.move(days=1)
    holder(book, secret)
    clock.move(days=1)
    with pytest.raises(AccessError, match="expired"):
        holder(book, secret)
    second = issue(book, "ann", Role.APPROVER, by="officer")
    with pytest.raises(AccessError, match="not one of this book"):
        holder(book, secret)
    with pytest.raises(AccessError, match="revoked"):
        still_held(book, known)
    revoke(book, "ann", by="officer")
    with pytest.raises(AccessError, match="revoked"):
        holder(book, second)
    for _ in range(2):
        with pytest.raises(InputError, match="must be that of a token that holds"):
            revoke(book, "ann", by="officer")
    for wrong in ("yesterday", "2026-11-01"):
        with pytest.raises(InputError, match="it must be a day to come"):
            issue(book, "bob", "viewer", by="officer", until=wrong)
    with pytest.raises(InputError, match="must be of one script"):
        issue(book, "\u0430nn", "viewer", by="officer")
    with pytest.raises(InputError, match="role"):
        issue(book, "bob", "king", by="officer")
    verify_book(book)


def test_a_token_that_was_entered_beside_the_log_is_found(book):
    issue(book, "ann", "viewer", by="officer")
    known = replace(tokens(book)[0], role=Role.APPROVER)
    with book._store.transaction(writes=True) as connection:
        told = {"record": json.dumps(known.to_dict(), separators=(",", ":"), sort_keys=True)}
        connection.execute(text("UPDATE token SET record = :record"), told)
    with pytest.raises(TamperedError, match="token ann is not what the log adds up to"):
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
        before.setattr(schema, "STEPS", schema.STEPS[:-1])
        old = Book.create(url, by="officer", clock=clock)
        old.add(DataSet("visits", *ABOUT), by="officer")
        old.add(BudgetRecord("main", "visits", limit_of({"epsilon": 1.0})), by="officer")
        ask(old, PLAN)
        old.disconnect()
    book = Book.create(url, by="officer", clock=clock)
    issue(book, "ann", "viewer", by="officer")
    assert ask(book, PLAN).release.status is Status.RESERVED
    assert verify_book(book)["releases"] == 2
    book.disconnect()


# -- budgets of very many people, in SQLite and in PostgreSQL --------------------------------------


KEY = bytes(range(32))


@pytest.fixture
def each(book, monkeypatch):
    """A book in which every user has ε = 1: four times that of Laplace noise of scale 4."""
    monkeypatch.setattr("dpaudit.book.people._PARTITIONS", 2)  # to make and drop them takes long
    filled(book, rho=9.0)
    add_people(book, "each", "visits", limit_of({"epsilon": 1.0}), key=KEY, by="officer")
    return book


def charged(book, people, plan=None, **told):
    """Those who may take part."""
    found: list[str] = []
    given = {"key": KEY, "by": "ann", "purpose": "a test"} | told
    plan = plan or laplace(4.0)
    charge_people(book, given.pop("name", "each"), plan, people, found.extend, **given)
    return found


def sums(book, *columns):
    (known,) = people_of(book)
    with book.reading() as connection:
        return connection.execute(text(f"SELECT * FROM person_{known.table}")).mappings().all()


def test_whoever_has_nothing_left_is_left_out_and_the_others_go_on(each):
    assert charged(each, ["ann", "bob"]) == ["ann", "bob"]
    for _ in range(3):
        assert charged(each, ["bob"]) == ["bob"]
    assert charged(each, ["eve", "bob", "ann"]) == ["eve", "ann"]
    assert charged(each, ["bob"]) == []
    assert len(sums(each)) == 3
    assert {row["s0"] for row in sums(each)} <= {10**12, 5 * 10**11, 25 * 10**10}
    facts = verify_book(each)
    assert facts["lines"] == 4 + 6


def test_it_is_the_filter_of_each_person(each):
    """Beside sums of fractions, of random releases of random people."""
    rng, left = random.Random(1), {}
    names = [f"user {n}" for n in range(40)]
    for _ in range(30):
        scale = rng.choice([4.0, 8.0, 2.5])  # no sum with 2/5 is 1 but for rounding
        people, due = rng.sample(names, 25), []
        part = 1 / Fraction(scale)
        for one in people:
            if left.get(one, 0) + part <= 1:
                left[one] = left.get(one, 0) + part
                due.append(one)
        assert charged(each, people, laplace(scale)) == due
    assert any(each == 1 for each in left.values())
    assert max(row["s0"] for row in sums(each)) <= 10**12


def test_curves_have_a_sum_at_every_order(each):
    curve = limit_of({"curve": [[2, 0.5], [8, 1.5]]})
    add_people(each, "curve", "visits", curve, key=KEY, by="officer")
    # a Gaussian of sigma 2 has α/8 at order α (Mironov 2017): 2 × 1 is beyond 1.5
    assert charged(each, ["ann", "bob"], gaussian(), name="curve") == ["ann", "bob"]
    assert charged(each, ["ann"], gaussian(4.0), name="curve") == ["ann"]
    assert charged(each, ["bob", "ann"], gaussian(2.5), name="curve") == []
    verify_book(each)


def test_a_plan_may_take_all_of_a_budget(each):
    add_people(each, "one", "visits", limit_of({"rho": 0.125}), key=KEY, by="officer")
    assert charged(each, ["ann"], gaussian(2.0), name="one") == ["ann"]
    assert charged(each, ["ann", "bob"], gaussian(2.0), name="one") == ["bob"]


def test_nothing_of_a_name_is_in_the_database(each, tmp_path):
    charged(each, ["Ann Example", "Ωmega"])
    add_people(each, "more", "visits", limit_of({"rho": 0.5}), key=KEY, by="officer")
    charged(each, ["Ann Example"], name="more")
    with each.reading() as connection:
        (one, two) = (f"person_{own.table}" for own in people_of(each))
        kept = [set(connection.execute(text(f"SELECT id FROM {t}")).scalars()) for t in (one, two)]
        tables = ("log", "plan", "people", one, two)
        rows = [str(connection.execute(text(f"SELECT * FROM {t}")).all()) for t in tables]
    assert all(len(own) == 32 for own in kept[0] | kept[1])
    assert not kept[0] & kept[1]  # the same person, under another hash
    assert not any(name in row for name in ("Ann Ex", "mega", KEY.hex()) for row in rows)
    assert "'2'" not in rows[0]


def test_a_request_is_charged_once_while_it_is_the_newest(each):
    assert charged(each, ["ann", "ann", "bob"], request="7") == ["ann", "ann", "bob"]
    assert charged(each, ["bob", "ann"], request="7") == ["bob", "ann"]
    assert {row["s0"] for row in sums(each)} == {25 * 10**10}
    with pytest.raises(InputError, match="request '7' was one with another plan"):
        charged(each, ["ann"], laplace(5.0), request="7")
    charged(each, ["ann"], request="8")
    charged(each, ["ann"], request="7")  # which costs, and promises no less
    assert max(row["s0"] for row in sums(each)) == 75 * 10**10
    verify_book(each)


@pytest.mark.parametrize("number", [1, 45_000])
def test_all_are_charged_or_nobody(each, number):
    """Whatever fails: the names, or what is done with those who are charged."""

    def names():
        yield from (f"user {n}" for n in range(number))
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk"):
        charged(each, names())
    about = {"key": KEY, "by": "ann", "purpose": "a test"}
    with pytest.raises(TypeError):  # of a list as a key
        charge_people(each, "each", laplace(4.0), ["ann"], {}.__getitem__, **about)
    assert sums(each) == []
    assert people_of(each)[0].charges == 0


def test_two_at_once_take_turns(url, each):
    """Every person has room for four charges, and eight threads ask for one each."""
    names = [f"user {n}" for n in range(50)]
    found: list[list[str]] = []

    def ask(order):
        other = Book(url)
        found.append(charged(other, order))
        other.disconnect()

    orders = [names, names[::-1]] * 4
    threads = [threading.Thread(target=ask, args=(order,)) for order in orders]
    for one in threads:
        one.start()
    for one in threads:
        one.join(30)
    assert sorted(map(len, found)) == [0] * 4 + [50] * 4
    assert {row["s0"] for row in sums(each)} == {10**12}
    verify_book(each)


def test_what_cannot_be_is_refused_for_all(each):
    for plan, error, told in (
        (laplace(0.5), BudgetExceededError, "takes more than all of 'each'"),
        (
            Plan.of(Invocation(Laplace(9.0), 1.0, PrivacyUnit("row"), *ABOUT[1:])),
            InputError,
            "protects the unit row",
        ),
    ):
        with pytest.raises(error, match=told):
            charged(each, ["ann"], plan)
    with pytest.raises(InputError, match="people is 'none', which the book does not have"):
        charged(each, ["ann"], name="none")
    with pytest.raises(InputError, match="key is not that of 'each'"):
        charged(each, ["ann"], key=bytes(32))
    with pytest.raises(InputError, match="key has 5 bytes; it must have 32"):
        charged(each, ["ann"], key=b"short")
    assert sums(each) == []


@pytest.mark.parametrize(
    "wrong",
    [5, None, b"a", "", " ", "a\rb", "a\u2029", "\ud800", "e\u0301", "a\u200b", "a\0", "é" * 501],
)
def test_what_is_no_name_is_refused_for_all(each, wrong):
    with pytest.raises(InputError, match=r"^name 2 of people is (no name|not in)"):
        charged(each, ["ann", wrong])
    with pytest.raises(InputError, match="people is one text"):
        charged(each, "ann")
    assert sums(each) == []


def test_budgets_of_each_are_entered_once(each):
    def add(name="each", dataset="visits", **limit):
        add_people(each, name, dataset, limit_of(limit), key=KEY, by="officer")

    add(epsilon=1.0)
    assert len(people_of(each)) == 1
    with pytest.raises(InputError, match="the book has another 'each'"):
        add(epsilon=1.5)
    with pytest.raises(InputError, match=r"kind 'renyi'; of each unit it must be rho, zcdp"):
        add("b", epsilon=1.0, delta=1e-6)
    about = PrivacyUnit("user"), ReplaceOne(), TrustModel.CENTRAL
    each.add(DataSet("answers", *about), by="officer")
    with pytest.raises(InputError, match="need add-remove or zero-out"):
        add("b", "answers", rho=0.5)
    with pytest.raises(UnsupportedError, match="has no pure"):
        charged(each, ["ann"], gaussian())


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("UPDATE people SET record = REPLACE(record, '1.0', '9.5')", "people each is not what"),
        ("UPDATE people SET record = REPLACE(record, 'charges\"\\:1', 'charges\"\\:0')", "people"),
        ("DELETE FROM people", "is in the log and not in the table"),
    ],
)
def test_what_is_edited_is_found(each, statement, told):
    charged(each, ["ann"])
    verify_book(each)
    with each.store.transaction(writes=True) as connection:
        connection.execute(text(statement))
    with pytest.raises(TamperedError, match=told):
        verify_book(each)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [("charge", 2, "charges people in another order"), ("cost", [1, 0], "less than its plan")],
)
def test_a_log_that_was_written_anew_charges_all_in_their_order(each, name, value, told):
    charged(each, ["ann"])
    forged(each, lambda line: line | {name: value} if line["event"] == "charged" else None)
    with pytest.raises(TamperedError, match=told):
        verify_book(each)
