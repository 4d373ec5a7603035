"""Budgets of very many people, in SQLite and in PostgreSQL."""

from __future__ import annotations

import random
from fractions import Fraction
from functools import partial

import pytest
from booking import ABOUT, at_once, edited, filled, forged, gaussian, laplace
from sqlalchemy import text

from dpaudit import Invocation, Laplace, Plan, PrivacyUnit, ReplaceOne, TrustModel
from dpaudit.base.errors import BudgetExceededError, InputError, TamperedError, UnsupportedError
from dpaudit.book import (
    Book,
    DataSet,
    add_people,
    charge_people,
    limit_of,
    people_of,
    verify_book,
)

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
    with pytest.raises(InputError, match="request '7' was sent with another plan"):
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
    at_once(*(partial(ask, order) for order in orders))
    assert sorted(map(len, found)) == [0] * 4 + [50] * 4
    assert {row["s0"] for row in sums(each)} == {10**12}
    verify_book(each)


def test_what_cannot_be_is_refused_for_all(each):
    for plan, error, told in (
        (laplace(0.5), BudgetExceededError, "costs more than all of 'each'"),
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
    with pytest.raises(InputError, match=r"^name 2 of people is not (a valid name|in)"):
        charged(each, ["ann", wrong])
    with pytest.raises(InputError, match="people is a single text"):
        charged(each, "ann")
    assert sums(each) == []


def test_budgets_of_each_are_entered_once(each):
    def add(name="each", dataset="visits", **limit):
        add_people(each, name, dataset, limit_of(limit), key=KEY, by="officer")

    add(epsilon=1.0)
    assert len(people_of(each)) == 1
    with pytest.raises(InputError, match="the book already has another 'each'"):
        add(epsilon=1.5)
    with pytest.raises(InputError, match=r"kind 'renyi'; the limit of each unit must be rho, zcdp"):
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
        (
            "UPDATE people SET record = REPLACE(record, '1.0', '9.5')",
            "people each does not agree with",
        ),
        ("UPDATE people SET record = REPLACE(record, 'charges\"\\:1', 'charges\"\\:0')", "people"),
        ("DELETE FROM people", "is in the log but not in the table"),
    ],
)
def test_what_is_edited_is_found(each, statement, told):
    charged(each, ["ann"])
    verify_book(each)
    edited(each, statement)
    with pytest.raises(TamperedError, match=told):
        verify_book(each)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [("charge", 2, "charges people out of order"), ("cost", [1, 0], "less than its plan")],
)
def test_a_log_that_was_written_anew_charges_all_in_their_order(each, name, value, told):
    charged(each, ["ann"])
    forged(each, "charged", name, value)
    with pytest.raises(TamperedError, match=told):
        verify_book(each)
