"""Where the server may listen, and that it does; whoever asks nothing holds no connection."""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from types import SimpleNamespace

import pytest
from booking import filled
from web_client import serving

from dpaudit.base.errors import InputError
from dpaudit.book import Book
from dpaudit.book.server import Place, serve
from dpaudit.book.server import server as listening
from dpaudit.book.server.server import IdleTimeoutProtocol

PATIENCE = 300
"""Seconds, however many others use the machine; only what hangs takes them."""


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "book.example"])
def test_others_are_not_let_in_without_tls(host, tmp_path):
    with pytest.raises(InputError, match="there is no TLS: tokens could be read on the way"):
        Place(host)
    assert Place(host, behind_proxy=True).hosts == ("*",)
    assert Place(host, behind_proxy=True, names=("book.example",)).hosts == ("book.example",)
    files = [tmp_path / name for name in ("c", "k")]
    with pytest.raises(InputError, match="does not exist"):
        Place(host, certificate=files[0], key=files[1])
    for each in files:
        each.write_text("x")
    assert Place(host, certificate=files[0], key=files[1]).secure
    with pytest.raises(InputError, match="one of --tls-certificate and --tls-key is missing"):
        Place(host, certificate=files[0])


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.8.0.1"])
def test_this_machine_alone_is_let_in(host):
    place = Place(host, names=("mine",))
    assert not place.secure
    own = {"::1": ["["], "127.8.0.1": ["127.8.0.1"]}.get(host, [])
    assert place.hosts == ("localhost", "127.0.0.1", *own, "mine")


def test_what_cannot_be(tmp_path):
    book = filled(Book.create(str(tmp_path / "b.db"), by="o"), rho=1.0)
    with pytest.raises(InputError, match="port is 0"):
        Place(port=0)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(InputError, match="cannot be served: the port is taken"):
            serve(book, Place(port=taken.getsockname()[1]))
    wrong = [tmp_path / name for name in ("c", "k")]
    for each in wrong:
        each.write_text("x")
    with pytest.raises(InputError, match="or the TLS files do not fit"):
        serve(book, Place(certificate=wrong[0], key=wrong[1]))


def test_the_command_serves_until_it_is_told_to_end(tmp_path):
    url = str(tmp_path / "b.db")
    filled(Book.create(url, by="o"), rho=1.0).disconnect()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "dpaudit", "book", "serve", "--book", url]
    started = subprocess.Popen(
        [*command, "--port", str(port)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        said = started.stdout.readline()
        assert re.match(rf"the book is at http://127.0.0.1:{port}/; Ctrl-C", said)
        asked = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        asked.request("GET", "/login")
        assert asked.getresponse().status == 200
        asked.close()
        os.kill(started.pid, signal.SIGINT)
    finally:
        _, told = started.communicate(timeout=PATIENCE)
    assert "Traceback" not in told


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
