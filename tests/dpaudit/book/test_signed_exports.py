"""Signed exports of a book, from the command line."""

from __future__ import annotations

import hashlib
import json
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy")
pytest.importorskip("cryptography")

from booking import ask, edited, filled, gaussian
from typed_commands import typed

from dpaudit.base.errors import TamperedError
from dpaudit.book import Book, add_people, charge_people, limit_of, records_as_of
from dpaudit.book.booking import records_of, renderer_of
from dpaudit.signing.keys import load_private, new_key
from dpaudit.signing.statements import export_statement


@pytest.fixture
def book(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("ana", "ben"):
        new_key(f"{name}.pem", None)
    made = filled(Book.create("book.db", by="officer"), rho=9.0)
    for number in range(3):
        ask(made, gaussian(2.0 + number))
    yield made
    made.disconnect()


@pytest.fixture
def call(book, capsys):
    return partial(typed, capsys)


KEYS = ("--key", "ana.pub.pem", "--key", "ben.pub.pem")


@pytest.mark.parametrize("ending", ["json", "csv", "registry.yaml"])
def test_an_export_is_signed_by_two_and_held_against_its_book(book, call, ending):
    path = f"all.{ending}"
    assert call("book", "export", "-o", path, "--sign", "ana.pem")[0] == 0
    beside = f"{path}.dsse.json"
    assert call("sign", beside, "--key", "ben.pem", "-o", beside)[0] == 0
    code, out, _ = call("verify", path, *KEYS, "--book", "book.db", "--json")
    answer = json.loads(out)
    assert (code, answer["kind"], answer["valid"], answer["lines"]) == (0, "export", True, 6)
    assert len(answer["signed_by"]) == 2
    ask(book, gaussian())
    code, _, err = call("verify", path, *KEYS, "--book", "book.db")
    assert (code, err) == (0, "dpaudit: the book has had 1 more lines since then.\n")
    Path("moved").mkdir()
    Path(path).rename(f"moved/{path}")
    assert call("verify", f"moved/{path}", *KEYS, "--signature", beside)[0] == 0


def test_what_goes_together_is_told(call):
    assert call("book", "export", "-o", "a.csv", "--sign", "ana.pem", "--no-time")[0] == 0
    one = KEYS[:2]
    for words, told in (
        (("verify", "a.csv.dsse.json", *one), "give only the export, --book"),
        (("verify", "a.csv", *one, "--ledger", "book.db"), "an export is verified by itself"),
        (("verify", "a.csv", *one, "--book", "none.db"), "does not exist; make it"),
        (("verify", "a.csv", "--book", "book.db"), "--book is given without --key"),
        (("verify", "a.csv", *KEYS), "has not signed it"),
        (("sign", "a.csv.dsse.json", "--key", "ana.pem", "-o", "b"), "has signed it already"),
        (("sign", "a.csv.dsse.json", "--key", "ben.pem", "-o", "book.db"), "of signatures"),
        (("book", "export", "-o", "a.txt", "--sign", "ana.pem"), "has an unknown ending"),
        (("book", "export", "-o", "a.csv", "--sign", "none.pem"), "does not exist"),
        (("book", "export", "-o", "a.csv", "--sign", "agent:nobody"), "SSH agent"),
    ):
        code, out, err = call(*words)
        assert (code, out, told in err) == (3, "", True), (words, err)
    Path("a.csv").write_text("edited")
    call("sign", "a.csv.dsse.json", "--key", "ben.pem", "-o", "b.dsse.json").refuses(
        "differs from the export that was signed"
    )


def test_a_policy_of_exports(book, call):
    assert call("book", "export", "-o", "a.json", "--sign", "ana.pem")[0] == 0
    own = json.loads(Path("a.json").read_text())["book"]
    for wanted, told in (
        (f"book = ['{own}']", ""),
        (f"book = ['{own[::-1]}']", "the policy wants"),
        ("current = true", "the book is missing; give it with --book."),
        ("days = 3\ndpaudit = '>=0.1'", ""),
        ("dpaudit = '>=9'", "dpaudit that made it"),
        ("days = 3\n[[limit]]\nunit = 'user'\nepsilon = 1", "demands 'limit', which only a"),
        ("journal = true", "demands 'journal', which only a certificate has."),
    ):
        Path("p.toml").write_text(wanted)
        code, _, err = call("verify", "a.json", *KEYS[:2], "--policy", "p.toml")
        assert (code, told in err, bool(err)) == (bool(told), True, bool(told)), (wanted, err)
    Path("p.toml").write_text("current = true")
    words = ("verify", "a.json", *KEYS[:2], "--policy", "p.toml", "--book", "book.db")
    assert call(*words)[0] == 0
    ask(book, gaussian())
    assert "has had 1 lines since; the policy wants the newest" in call(*words)[2]
    for lines, told in ((6, "were dropped, or its head was edited"), (9, "were dropped")):
        edited(book, f"UPDATE head SET lines = {lines}")
        call(*words).refuses(told)
    Path("p.toml").write_text("book = ['ana']")
    assert "must be 32 hexadecimal digits" in call(*words)[2]


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM release WHERE id = 'R4'",
        "UPDATE release SET record = REPLACE(record, 'a test', 'another')",
        "UPDATE budget SET record = REPLACE(record, '9.0', '99.5')",
    ],
)
def test_tables_that_the_log_contradicts_are_not_signed(book, call, statement):
    words = ("book", "export", "-o", "a.json", "--sign", "ana.pem")
    edited(book, statement)
    call(*words).refuses("tables do not agree with its log; nothing is signed")
    assert not Path("a.json").exists()


def test_whoever_signs_second_may_ask_the_book(book, call):
    """Of an export that the first signer made of tables that were edited."""
    records = records_of(book)
    head = records["book"], records["lines"], records["hash"]
    records["releases"].pop()
    content = renderer_of(Path("a.json"))(records)
    Path("a.json").write_text(content)
    stated = export_statement(*head, hashlib.sha256(content.encode()).hexdigest(), None)
    signed = stated.envelope().with_signature(load_private(Path("ana.pem"), str))
    beside = "a.json.dsse.json"
    Path(beside).write_text(signed.to_json())
    words = ("sign", beside, "--key", "ben.pem", "-o", beside)
    call(*words, "--book", "book.db").refuses("does not agree with the book's log up to line 6")
    assert call("sign", "a.json", *words[2:], "--book", "book.db")[0] == 3
    assert call(*words)[0] == 0  # who does not ask takes the first one's word
    assert call("book", "export", "-o", "a.json", "--sign", "ana.pem")[0] == 0
    assert call(*words, "--book", "book.db")[0] == 0


def test_an_export_has_no_plans_of_charges_of_people(book, call):
    about = {"key": bytes(32), "by": "ann"}
    add_people(book, "each", "visits", limit_of({"rho": 2.0}), **about)
    charge_people(book, "each", gaussian(9.0), ["bob"], lambda _: None, purpose="x", **about)
    assert call("book", "export", "-o", "a.json", "--sign", "ana.pem")[0] == 0
    assert call("verify", "a.json", *KEYS[:2], "--book", "book.db")[0] == 0


def test_an_older_state_is_what_an_export_was_then(book):
    """Beside the tables of that time, for whatever happened later."""
    then = records_of(book)
    book.close(ask(book, gaussian()).id, by="ann", abandoned="no")
    book.retire("main", by="officer", why="done")
    assert records_as_of(book, then["lines"], then["hash"]) == (then, 3)
    now = records_of(book)
    assert records_as_of(book, now["lines"], now["hash"]) == (now, 0)
    with pytest.raises(TamperedError, match="line 5 of the book's log is not the one"):
        records_as_of(book, 5, then["hash"])
    with pytest.raises(TamperedError, match="line 99 of the book's log is not the one"):
        records_as_of(book, 99, then["hash"])
