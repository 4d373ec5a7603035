"""Connections on which nothing is asked: they end, so that there is room for others."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

SECONDS = 20.0
"""For the head of a request; a connection without one ends after once to twice that time."""


class IdleTimeoutProtocol(H11Protocol):  # type: ignore[misc]
    """HTTP/1.1 as uvicorn speaks it, which by itself waits for ever for a request to begin."""

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
