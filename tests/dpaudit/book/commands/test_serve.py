"""Tokens, approvals and reports as people type them."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy")
pytest.importorskip("fastapi")

from booking import PLAN_FILE
from typed_commands import typed

from dpaudit.book import Book, holder, verify_book


@pytest.fixture
def call(capsys, tmp_path, monkeypatch):
    """``dpaudit book`` in a folder with a plan and a book that asks for approval."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("DPAUDIT_BOOK", raising=False)
    Path("plan.toml").write_text(PLAN_FILE)

    run = partial(typed, capsys, "book")
    assert run("init")[0] == 0
    assert run("dataset", "visits", "--unit", "user", "--relation", "add-remove")[0] == 0
    budget = ("budget", "main", "--dataset", "visits", "--limit", "epsilon = 1", "--approval")
    assert run(*budget)[0] == 0
    return run


def asked(call, by="ann", request="1"):
    told = ("--dataset", "visits", "--by", by, "--request", request, "--json")
    code, out, _ = call("reserve", "plan.toml", *told)
    assert code == 0
    return release(out)


def release(out):
    (found,) = json.loads(out)["releases"]
    return found


def test_a_second_person_approves_or_denies(call):
    made = asked(call)
    assert made["status"] == "requested"
    code, _, told = call("approve", made["id"], "--by", "Ann")
    assert code == 1
    assert "somebody else must approve it" in told
    code, out, _ = call("approve", made["id"], "--by", "bob", "--json")
    assert (code, release(out)["status"], release(out)["approved"]) == (0, "reserved", "bob")
    other = asked(call, request="2")
    code, _, told = call("deny", other["id"], "--by", "bob")
    assert (code, "why" in told) == (3, True)
    code, out, _ = call("deny", other["id"], "--by", "bob", "--why", "no", "--json")
    assert (code, release(out)["status"]) == (0, "denied")
    assert "25 %" in call("status")[1]
    book = Book("book.db")
    assert verify_book(book)["releases"] == 2
    book.disconnect()


def test_tokens(call):
    code, out, _ = call("token", "ann", "--role", "analyst", "--until", "2999-12-31")
    assert code == 0
    book, secret = Book("book.db"), out.strip()
    assert holder(book, secret).role == "analyst"
    book.disconnect()
    code, out, _ = call("token")
    assert re.search(r"ann +analyst +2999-12-31", out)
    assert secret not in out
    assert call("token", "ann", "--revoke")[0] == 0
    assert "revoked" in call("token")[1]
    for wrong in (("token", "ann", "--revoke"), ("token", "x", "--role", "king")):
        code, _, told = call(*wrong)
        assert code == 3
        assert told.count("\n") == 1


def test_what_is_public_and_reports(call):
    assert "visits is public" in call("publish", "visits")[1]
    assert "visits is no longer public" in call("publish", "visits", "--withdraw")[1]
    assert call("publish", "visit")[0] == 3
    asked(call)
    assert call("report", "-o", "a.html", "--dataset", "visits")[0] == 0
    assert "Privacy report of visits" in Path("a.html").read_text("utf-8")
    assert call("report", "-o", "a.txt")[0] == 3
    assert call("report", "-o", "a.html", "--from", "yesterday")[0] == 3


def test_a_server_that_others_could_reach_is_refused(call):
    code, _, told = call("serve", "--host", "0.0.0.0")
    assert code == 3
    assert "give --tls-certificate and --tls-key, or --behind-proxy" in told
