"""The application: pages for people, the API for programs, and the guard before both."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import Response

import dpaudit
from dpaudit.base.errors import DpAuditError, InputError
from dpaudit.book import Book
from dpaudit.book.server.api import Api
from dpaudit.book.server.guarding import Guard
from dpaudit.book.server.pages import routes
from dpaudit.book.server.request_context import ServerContext, TooLargeError, shelf_of


def application(
    book: Book,
    *,
    certificates: Path | None = None,
    secure: bool = False,
    hosts: Sequence[str] = ("*",),
) -> Guard:
    """The book as an ASGI application.

    Args:
        book: the book.
        certificates: the folder in which certificates are found by their hash.
        secure: whether browsers speak TLS, to it or to its proxy: cookies then travel no other way.
        hosts: the names by which it may be asked; no page of another name can then reach it.
    """
    desk = ServerContext(book, shelf_of(certificates), secure)
    app = FastAPI(
        title="dpaudit book",
        version=dpaudit.__version__,
        description="Privacy budgets of data sets, and releases that are charged to them.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lambda _: _lifespan(desk),
        routes=routes(desk),
    )
    guard = Guard(app, desk)
    Api(desk).mount(app)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(hosts), www_redirect=False)
    _Sentences(guard).register(app)
    _describe(app)
    return guard


_UNREADABLE = "the request cannot be read; its body must be JSON in UTF-8."


@asynccontextmanager
async def _lifespan(desk: ServerContext) -> AsyncIterator[None]:
    """Read the log while the first visitors come; log at the end who was refused."""

    def read() -> None:
        with suppress(DpAuditError):
            desk.course.read()

    threading.Thread(target=read, daemon=True).start()
    yield
    await run_in_threadpool(desk.denials.flush)


class _Sentences:
    """What the libraries say of a request, in the words of the guard."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    def register(self, app: FastAPI) -> None:
        """Answer for every kind of error."""
        app.add_exception_handler(DpAuditError, self._guard.answer)
        app.add_exception_handler(Exception, self._guard.answer)
        app.add_exception_handler(RequestValidationError, self.invalid)
        app.add_exception_handler(HTTPException, self.other)

    def invalid(self, request: Request, error: RequestValidationError) -> Response:
        """The first field that is wrong; never what was in it."""
        first = error.errors()[0]
        kind, *place = map(str, first["loc"])
        name = ".".join(place)[:100] or kind
        said = InputError(f"{name} of the {kind} is wrong: {first['msg']:.200}.")
        if first["type"] == "json_invalid":
            said = InputError(_UNREADABLE)
        response = self._guard.answer(request, said)
        response.status_code = 422
        return response

    def other(self, request: Request, error: HTTPException) -> Response:
        """No such page, or a body that is no JSON."""
        cause = error.__cause__
        if isinstance(cause, TooLargeError | TimeoutError):
            return self._guard.answer(request, cause)
        told = {
            404: "there is no such page here.",
            405: "this page takes no such request.",
            400: _UNREADABLE,
        }
        response = self._guard.answer(request, InputError(told.get(error.status_code, "not so.")))
        response.status_code = error.status_code
        return response


def _describe(app: FastAPI) -> None:
    """Say in the OpenAPI document how programs sign in."""
    usual = app.openapi

    def openapi() -> dict[str, Any]:
        document: dict[str, Any] = usual()
        schemes = document.setdefault("components", {}).setdefault("securitySchemes", {})
        schemes["token"] = {"type": "http", "scheme": "bearer"}
        return document

    app.openapi = openapi
