"""Sessions end; what keeps them would let nobody in."""

from __future__ import annotations

import time

import pytest
from booking import filled

from dpaudit.base.errors import AccessError
from dpaudit.book import Role, issue
from dpaudit.book.server.request_context import SECONDS, Callers


@pytest.fixture
def callers(book):
    filled(book, rho=1.0)
    return Callers(book)


def test_a_session_ends(book, callers, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    secret = issue(book, "ann", "analyst", by="officer")
    cookie = callers.begin(secret)
    caller = callers.by_session(cookie)
    assert (caller.name, caller.token.role) == ("ann", Role.ANALYST)
    caller.require_proof(caller.proof)
    for wrong in ("", caller.proof + "x", "é", "\udcff"):
        with pytest.raises(AccessError, match="does not belong to this session"):
            caller.require_proof(wrong)
    assert callers.by_session(cookie + "x") is None
    assert cookie not in str(vars(callers))
    assert secret not in str(vars(callers))
    now[0] += SECONDS + 1
    assert callers.by_session(cookie) is None
    other = callers.begin(secret)
    callers.end(other)
    assert callers.by_session(other) is None


def test_of_very_many_sessions_the_oldest_end(book, callers, monkeypatch):
    monkeypatch.setattr("dpaudit.book.server.request_context._MOST_SESSIONS", 3)
    secret = issue(book, "ann", "analyst", by="officer")
    cookies = [callers.begin(secret) for _ in range(5)]
    assert [callers.by_session(each) is not None for each in cookies] == [False] * 2 + [True] * 3


def test_nobody_s_sessions_end_because_of_another_s(book, callers, monkeypatch):
    monkeypatch.setattr("dpaudit.book.server.request_context._MOST_OF_ONE", 3)
    mine = callers.begin(issue(book, "ann", "analyst", by="officer"))
    secret = issue(book, "eve", "viewer", by="officer")
    cookies = [callers.begin(secret) for _ in range(9)]
    assert callers.by_session(mine)
    assert [callers.by_session(each) is not None for each in cookies] == [False] * 6 + [True] * 3
