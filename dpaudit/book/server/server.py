"""The server: the application that it runs, where it listens, and under which conditions.

``dpaudit book serve`` calls :func:`serve`, and tests :func:`application`. Others can reach it only
where TLS hides their tokens, and a connection that asks nothing ends.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import Response
from uvicorn.protocols.http.h11_impl import H11Protocol

import dpaudit
from dpaudit.base import files
from dpaudit.base.errors import DpAuditError, InputError
from dpaudit.base.validate import shown
from dpaudit.book import Book
from dpaudit.book.server.api import Api
from dpaudit.book.server.guarding import Guard
from dpaudit.book.server.pages import routes
from dpaudit.book.server.request_context import ServerContext, TooLargeError, certificates_in


def application(
    book: Book,
    *,
    certificates: Path | None = None,
    secure: bool = False,
    hosts: Sequence[str] = ("*",),
) -> Guard:
    """Return the book as an ASGI application.

    Args:
        book: the book.
        certificates: the folder in which certificates are found by their hash.
        secure: whether browsers speak TLS, to it or to its proxy: cookies then travel no other way.
        hosts: the names by which it may be asked; no page of another name can then reach it.
    """
    context = ServerContext(book, certificates_in(certificates), secure)
    app = FastAPI(
        title="dpaudit book",
        version=dpaudit.__version__,
        description="Privacy budgets of data sets, and the releases that are charged to them.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lambda _: _lifespan(context),
        routes=routes(context),
    )
    guard = Guard(app, context)
    Api(context).mount(app)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(hosts), www_redirect=False)
    _Sentences(guard).register(app)
    _describe(app)
    return guard


_UNREADABLE = "the request cannot be read; its body must be JSON in UTF-8."


@asynccontextmanager
async def _lifespan(context: ServerContext) -> AsyncIterator[None]:
    """Read the log while the first visitors come; log at the end who was refused."""

    def read() -> None:
        with suppress(DpAuditError):
            context.history.read()

    threading.Thread(target=read, daemon=True).start()
    yield
    await run_in_threadpool(context.denials.flush)


class _Sentences:
    """The errors that libraries make of a request, in the words of the guard."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    def register(self, app: FastAPI) -> None:
        """Answer for every kind of error."""
        app.add_exception_handler(DpAuditError, self._guard.answer)
        app.add_exception_handler(Exception, self._guard.answer)
        app.add_exception_handler(RequestValidationError, self.invalid)
        app.add_exception_handler(HTTPException, self.other)

    def invalid(self, request: Request, error: RequestValidationError) -> Response:
        """Return the first field that is wrong; never what was in it."""
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
        """Answer for no such page, or a body that is no JSON."""
        cause = error.__cause__
        if isinstance(cause, TooLargeError | TimeoutError):
            return self._guard.answer(request, cause)
        told = {
            404: "this server has no such page.",
            405: "this page does not accept this method.",
            400: _UNREADABLE,
        }
        said = told.get(error.status_code, "the request was refused.")
        response = self._guard.answer(request, InputError(said))
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


SECONDS = 20.0
"""For the head of a request; a connection without one ends after once to twice that time."""


class IdleTimeoutProtocol(H11Protocol):  # type: ignore[misc]
    """A connection of uvicorn, which by itself waits for ever for a request to begin."""

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Begin to wait."""
        super().connection_made(transport)
        self._look(object())

    def _look(self, before: Any) -> None:
        """End the connection if no request came since last time, and none is being answered."""
        if self.transport.is_closing():
            return
        answered = self.cycle is None or self.cycle.response_complete
        if answered and self.cycle is before:
            self.transport.close()
        else:
            self.loop.call_later(SECONDS, self._look, self.cycle)


_LOCAL = ("localhost", "127.0.0.1")
_MOST_CONNECTIONS = 800
"""Of a process that may usually have 1024 files open."""


@dataclass(frozen=True)
class Place:
    """The address at which a server listens.

    Attributes:
        host: an address of this machine.
        port: 1 to 65535.
        certificate: of TLS, with its chain, in PEM; with ``key``.
        key: of TLS.
        behind_proxy: whether a proxy on this machine, or before it, speaks TLS with browsers.
        names: by which browsers may ask for it.

    Raises:
        InputError: if others could listen to what is sent.
    """

    host: str = "127.0.0.1"
    port: int = 8710
    certificate: Path | None = None
    key: Path | None = None
    behind_proxy: bool = False
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= self.port <= 65535:
            raise InputError(f"port is {self.port}; it must be from 1 to 65535.")
        if (self.certificate is None) is not (self.key is None):
            raise InputError("one of --tls-certificate and --tls-key is missing; give both.")
        for path in filter(None, (self.certificate, self.key)):
            files.read_bytes(path, what="TLS file")
        if not (self.is_local or self.secure):
            raise InputError(
                f"host is {shown(self.host)}, which others can reach, and there is no TLS: tokens "
                "could be read on the way; give --tls-certificate and --tls-key, or "
                "--behind-proxy if a proxy provides TLS."
            )

    @property
    def is_local(self) -> bool:
        """Whether this machine alone can reach it."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def secure(self) -> bool:
        """Whether browsers speak TLS."""
        return self.certificate is not None or self.behind_proxy

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names that are answered: of a local server no others, whatever a name leads to."""
        if self.is_local and not self.behind_proxy:
            own = "[" if ":" in self.host else self.host  # of an address as [::1], to its first :
            return tuple(dict.fromkeys((*_LOCAL, own, *self.names)))
        return self.names or ("*",)

    @property
    def url(self) -> str:
        """What to type into a browser on this machine."""
        scheme = "https" if self.certificate is not None else "http"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}:{self.port}/"


def serve(
    book: Book,
    place: Place,
    *,
    certificates: Path | None = None,
    ready: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve the book until the process is told to end.

    Args:
        book: the book.
        place: where.
        certificates: the folder in which certificates are found by their hash.
        ready: told the address, before the first request.

    Raises:
        InputError: if the address cannot be used.
    """
    import uvicorn

    app = application(book, certificates=certificates, secure=place.secure, hosts=place.hosts)
    given: dict[str, Any] = {"host": place.host, "port": place.port}
    if place.certificate is not None and place.key is not None:
        given |= {"ssl_certfile": str(place.certificate), "ssl_keyfile": str(place.key)}
    config = uvicorn.Config(
        app,
        **given,
        log_level="warning",
        ws="none",
        access_log=False,  # addresses and what people sought are nobody's
        server_header=False,
        proxy_headers=place.behind_proxy,
        http=IdleTimeoutProtocol,
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_graceful_shutdown=5,
    )
    try:
        config.load()
        family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
        listening = socket.create_server((place.host, place.port), family=family)
    except OSError:
        raise InputError(
            f"{place.url} cannot be served: the port is taken, the address does not belong "
            "to this machine, or the TLS files do not fit."
        ) from None
    ready(place.url)
    uvicorn.Server(config).run(sockets=[listening])
