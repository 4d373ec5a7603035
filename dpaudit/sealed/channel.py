"""What the processes of a sealed run say to each other: JSON of a stated length over one socket.

Nothing is ever unpickled. Who reads takes no more than a limit, and refuses what is no message of
JSON; so whatever the other side writes is a message, an error, or the end.
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol

_LENGTH = struct.Struct(">I")
LONGEST = 2**28
"""Bytes of a message between processes that trust each other; an array of 10^7 numbers fits."""
LONGEST_REQUEST = 2**24
"""Bytes of a message of the analyst."""


class ChannelError(Exception):
    """The other side is gone, or what it said is no message."""


class GoneError(ChannelError):
    """The other side is gone, or says nothing for as long as a socket waits."""


class End(Protocol):
    """What a channel reads and writes: a socket, or as much of one as it needs."""

    def sendall(self, data: bytes, /) -> None:
        """Write all of it."""

    def recv(self, size: int, /) -> bytes:
        """Read some of it; nothing where there is no more."""

    def close(self) -> None:
        """Write nothing more."""


class Channel:
    """One end of a socket.

    Args:
        end: the socket.
        limit: of the bytes of a message that is received.
        patience: seconds for which the other side may not read; without it, all there are.
    """

    def __init__(self, end: End, limit: int = LONGEST, patience: int = 0) -> None:
        if patience and isinstance(end, socket.socket):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("@ll", patience, 0))
        self._socket = end
        self._limit = limit

    def send(self, message: Mapping[str, Any]) -> None:
        """Send one message.

        Raises:
            GoneError: if the other process has ended.
        """
        self._send(_framed(message))

    def answer(self, message: Mapping[str, Any], wake: Callable[[], None]) -> None:
        """Send one message to a process that stands still, and wake it when all that fits is there.

        Raises:
            ChannelError: if it has ended, or has sent more than what it is answered.
        """
        assert isinstance(self._socket, socket.socket)
        content, sent = _framed(message), 0
        with suppress(OSError):
            if self._socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT):
                raise ChannelError("a message came before the answer to another one")
        with suppress(OSError):  # what does not fit, or the other process has ended
            sent = self._socket.send(content, socket.MSG_DONTWAIT)
        wake()
        if sent < len(content):  # else it may have ended by now
            self._send(content[sent:])

    def _send(self, content: bytes) -> None:
        try:
            self._socket.sendall(content)
        except OSError:
            raise GoneError("the other process has ended") from None

    def receive(self) -> dict[str, Any]:
        """The next message.

        Raises:
            ChannelError: if there is none, or it is longer than the limit or no table of JSON.
        """
        (length,) = _LENGTH.unpack(self._exactly(_LENGTH.size))
        if length > self._limit:
            raise ChannelError("a message is longer than allowed")
        try:
            message = json.loads(self._exactly(length), parse_constant=_refused)
        except (ValueError, RecursionError):
            raise ChannelError("a message is not JSON") from None
        if not isinstance(message, dict):
            raise ChannelError("a message is not a table")
        return message

    def _exactly(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            try:
                part = self._socket.recv(min(size - len(parts), 2**20))
            except OSError:
                part = b""
            if not part:
                raise GoneError("the other process has ended")
            parts += part
        return bytes(parts)

    def close(self) -> None:
        """Say nothing more."""
        self._socket.close()


def _framed(message: Mapping[str, Any]) -> bytes:
    text = json.dumps(message, allow_nan=False, separators=(",", ":")).encode()
    return _LENGTH.pack(len(text)) + text


def _refused(constant: str) -> None:
    raise ValueError(constant)
