"""Whoever asks nothing, or half of it, holds no connection."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from types import SimpleNamespace

import pytest

pytest.importorskip("uvicorn")

from web_client import serving

from dpaudit.book.server import server as listening
from dpaudit.book.server.server import IdleTimeoutProtocol, Place


@pytest.mark.parametrize("sent", [b"", b"GET /public HTTP/1.1\r\nHost: x\r\nX: "])
def test_a_connection_without_a_request_ends(guarded, monkeypatch, sent):
    monkeypatch.setattr(listening, "SECONDS", 0.2)
    told = {"http": IdleTimeoutProtocol, "limit_concurrency": 9}
    with serving(guarded, server=told) as client, ExitStack() as held:
        place = "127.0.0.1", client.port
        idle = [held.enter_context(socket.create_connection(place, 20)) for _ in range(12)]
        for each in idle:
            each.sendall(sent)
        assert {each.recv(1000)[:12] for each in idle} <= {b"", b"HTTP/1.1 503"}
        assert client.get("/public").status == 200


def test_a_connection_on_which_something_happens_goes_on():
    looks, closed = [], []
    known = IdleTimeoutProtocol.__new__(IdleTimeoutProtocol)
    known.loop = SimpleNamespace(call_later=lambda _, look, before: looks.append((look, before)))
    known.transport = SimpleNamespace(
        is_closing=lambda: bool(closed), close=lambda: closed.append(1)
    )
    known.cycle = None
    known._look(object())
    for done in (True, False, False, True):
        if done or known.cycle.response_complete:
            known.cycle = SimpleNamespace(response_complete=False)
        look, before = looks.pop()
        look(before)
        known.cycle.response_complete = done
        assert not closed
    look, before = looks.pop()
    look(before)
    assert (closed, looks) == ([1], [])
    known._look(None)
    assert looks == []


@pytest.mark.parametrize("host", ["127.0.0.2", "::1"])
def test_the_address_that_is_told_is_answered(guarded, host):
    place = Place(host, port=1)
    with serving(guarded, hosts=place.hosts) as client:
        named = place.url.removeprefix("http://").removesuffix("/")
        assert client.get("/public", Host=named).status == 200
        assert client.get("/public", Host="evil.example").status == 400
