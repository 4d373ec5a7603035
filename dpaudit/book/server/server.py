"""The server: where it listens, and under which conditions."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpaudit.base import files
from dpaudit.base.errors import InputError
from dpaudit.base.validate import shown
from dpaudit.book import Book
from dpaudit.book.server.application import application

_LOCAL = ("localhost", "127.0.0.1")
_MOST_CONNECTIONS = 800
"""Of a process that may usually have 1024 files open."""


@dataclass(frozen=True)
class Place:
    """Where a server listens.

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
                "--behind-proxy where a proxy speaks TLS."
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

    from dpaudit.book.server.idle_timeout import IdleTimeoutProtocol

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
            f"{place.url} cannot be served: the port is taken, the address is not of this machine, "
            "or the TLS files do not fit."
        ) from None
    ready(place.url)
    uvicorn.Server(config).run(sockets=[listening])
