"""The door of the server: who asks, how much they may send, and what no answer may show.

Every request passes it before anything reads the body. Whatever goes wrong is one sentence; what
the database says of it stays in the server's own log.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from dpaudit.base.errors import AccessError, BudgetExceededError, DpAuditError, InputError
from dpaudit.book.server.request_context import (
    COOKIE,
    BusyError,
    Caller,
    ServerContext,
    TooLargeError,
)
from dpaudit.book.server.templating import render_page

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

MOST_BYTES, _OTHER_BYTES, _FIRST_BYTES = 8_000_000, 256_000, 10_000
"""Of a request with a journal, of any other, and of somebody's who is not known."""
_SECONDS = 30.0
"""In which a request must have come."""
_OPEN = ("/api/public", "/openapi.json")
POLICY = (
    "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
"""No script, and nothing from elsewhere."""
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
_log = logging.getLogger(__name__)


class Guard:
    """The guard before everything else of the application.

    It knows the caller before the body is read, stops bodies that are too large, sets the headers
    of every answer, and turns whatever happens into one sentence.
    """

    def __init__(self, app: Callable[..., Awaitable[None]], context: ServerContext) -> None:
        self._app = app
        self._context = context

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request, begun = Request(scope), False

        async def guarded(message: MutableMapping[str, Any]) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                self._add_headers(message)
            await send(message)

        try:
            await run_in_threadpool(self._admit, request)
            limited = _limited(request, receive)
            await self._app(scope, limited, guarded)
        except Exception as error:  # noqa: BLE001 - whatever it is, no answer shows more of it
            if begun:
                return
            response = await run_in_threadpool(self.answer, request, error)
            await response(scope, receive, guarded)

    def _add_headers(self, message: MutableMapping[str, Any]) -> None:
        known = {name.lower() for name, _ in message["headers"]}
        headers = _HEADERS | {"Content-Security-Policy": POLICY}
        if self._context.secure:
            headers["Strict-Transport-Security"] = "max-age=31536000"
        message["headers"] = [
            *message["headers"],
            *(
                (k.encode(), v.encode())
                for k, v in headers.items()
                if k.lower().encode() not in known
            ),
        ]

    def _admit(self, request: Request) -> None:
        """Find out who asks."""
        path, stated = request.url.path, request.headers.get("authorization")
        if not path.startswith("/api/"):
            request.scope["dpaudit.caller"] = self._by_session(request)
            return
        request.scope["dpaudit.caller"] = None
        kind, _, secret = (stated or "").partition(" ")
        if stated is not None and kind.lower() == "bearer":
            request.scope["dpaudit.caller"] = self._context.callers.by_token(secret.strip())
        elif path not in _OPEN:
            raise AccessError("the bearer token is missing; send a token of this book.")

    def _by_session(self, request: Request) -> Caller | None:
        cookie = request.cookies.get(COOKIE)
        return None if cookie is None else self._context.callers.by_session(cookie)

    def answer(self, request: Request, error: Exception) -> Response:
        """Say in one sentence what went wrong, and log it where somebody was refused."""
        status, said = _status_and_sentence(error)
        caller: Caller | None = request.scope.get("dpaudit.caller")
        if isinstance(error, AccessError):
            status = 403 if caller is not None else 401
            action = request.scope.get("dpaudit.action", "sign in")
            self._context.denials.record("" if caller is None else caller.name, action, said)
        if status == 500:
            _log.error("%s while answering %s", type(error).__name__, request.method)
        elif _is_silent(error):  # the operator alone can put back a file that is gone
            _log.error("%s", error)
        if request.url.path.startswith("/api/"):
            headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
            return JSONResponse({"error": said}, status, headers)
        page = render_page("error", who=caller, title="This could not be done", said=said)
        return HTMLResponse(page, status)


def _is_silent(error: Exception) -> bool:
    return isinstance(error, InputError) and " does not answer: " in str(error)


def _status_and_sentence(error: Exception) -> tuple[int, str]:
    said = str(error)
    if _is_silent(error):  # which may name the server
        return 503, "the book does not answer; try again later with the same request."
    if isinstance(error, InputError) and "which the book does not have" in said:
        return 404, said
    if isinstance(error, UnicodeError):  # half of a pair of surrogates, which JSON can name
        return 400, "the request contains invalid characters; send text in UTF-8."
    if isinstance(error, TimeoutError):
        return 408, f"the request did not arrive within {_SECONDS:.0f} s; send it again."
    kinds = {
        AccessError: 403,
        BudgetExceededError: 409,
        BusyError: 503,
        TooLargeError: 413,
        InputError: 400,
        DpAuditError: 409,
    }
    for kind, status in kinds.items():
        if isinstance(error, kind):
            return status, said
    return 500, "the server failed; its operators find more in its log."


def _limited(request: Request, receive: Receive) -> Receive:
    """Return the body, as far as it may be read, and as long."""
    most = MOST_BYTES if _CLOSING.fullmatch(request.url.path) else _OTHER_BYTES
    most = most if request.scope["dpaudit.caller"] is not None else _FIRST_BYTES
    length = request.headers.get("content-length", "0")
    _require(int(length) if length.isascii() and length.isdigit() else most + 1, most)
    count = 0
    end: float | None = asyncio.get_running_loop().time() + _SECONDS

    async def limited() -> MutableMapping[str, Any]:
        nonlocal count, end
        async with asyncio.timeout_at(end):
            message = await receive()
        count += len(message.get("body", b""))
        _require(count, most)
        if not message.get("more_body"):  # what follows is that the caller hung up
            end = None
        return message

    return limited


_CLOSING = re.compile("/api/releases/R[0-9]+/close")


def _require(length: int, most: int) -> None:
    if length > most:
        raise TooLargeError(f"the request is longer than {most} bytes; send less.")


def require_same_site(request: Request) -> None:
    """Refuse what a page of another site sent.

    Raises:
        AccessError: saying what to do.
    """
    sent, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    fine = sent in (None, "same-origin", "none")
    if not fine or (origin is not None and urlsplit(origin).netloc != request.headers.get("host")):
        raise AccessError("the form was sent from another site; open the page on this one.")
