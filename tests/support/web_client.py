"""A served book and those who ask it, over a real socket."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import uvicorn

from dpaudit.book import Book
from dpaudit.book.server import application

FORM = "application/x-www-form-urlencoded"


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Client:
    """A program with a token, or a browser without scripts that keeps its cookie."""

    port: int
    token: str | None = None
    cookies: dict[str, str] = field(default_factory=dict)
    proof: str = ""

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """One request; a dictionary goes as JSON, headers with _ for -."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.token is not None:
            sent.setdefault("Authorization", f"Bearer {self.token}")
        if self.cookies:
            sent["Cookie"] = "; ".join(f"{k}={v}" for k, v in self.cookies.items())
        if isinstance(body, dict):
            body = json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, sent)
            found = connection.getresponse()
            told = {name.lower(): value for name, value in found.getheaders()}
            return Answer(found.status, told, found.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, **headers)

    def post(self, path: str, _body: Any = None, /, **fields: Any) -> Answer:
        """As a program; what is not given stays out."""
        return self.ask("POST", path, {} if _body is None and not fields else _body or fields)

    def send(self, path: str, _headers: dict[str, str] | None = None, /, **fields: str) -> Answer:
        """A form, as a browser sends it."""
        told = {"Content-Type": FORM} | (_headers or {})
        given = ({"proof": self.proof} if self.proof else {}) | fields
        return self.ask("POST", path, urlencode(given).encode(), **told)

    def sign_in(self, token: str) -> Client:
        """Begin a session."""
        answer = self.send("/login", token=token)
        assert answer.status == 303, answer.text
        name, _, value = answer.headers["set-cookie"].partition(";")[0].partition("=")
        self.cookies[name] = value
        page = self.get("/").text
        self.proof = page.partition('name="proof" value="')[2].partition('"')[0]
        assert self.proof
        return self


@contextmanager
def serving(
    book: Book,
    certificates: Path | None = None,
    *,
    server: dict[str, Any] | None = None,
    **given: Any,
) -> Iterator[Client]:
    """A server on a port of its own, with settings of uvicorn; yields somebody without a token."""
    app = application(book, certificates=certificates, **given)
    # Its own configuration ends all handlers, of which that of absl closes what pytest reads.
    told = {"port": 0, "ws": "none", "access_log": False, "log_config": None}
    running = uvicorn.Server(uvicorn.Config(app, **(told | (server or {})), server_header=False))
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    while not running.started:
        assert thread.is_alive()
        time.sleep(0.005)
    try:
        yield Client(running.servers[0].sockets[0].getsockname()[1])
    finally:
        running.should_exit = True
        thread.join(20)
