"""What the processes of a sealed run say to each other: JSON of a stated length over one socket.

Nothing is ever unpickled. Who reads takes no more than a limit, and refuses what is no message of
JSON; so whatever the other side writes is a message, an error, or the end.
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from dpaudit.base import errors
from dpaudit.base.errors import DpAuditError, InputError

_LENGTH = struct.Struct(">I")
LONGEST = 2**28
"""Bytes of a message between processes that trust each other; an array of 10^7 numbers fits."""
LONGEST_REQUEST = 2**24
"""Bytes of a message of the analyst."""


class ChannelError(Exception):
    """The other side is gone, or what it said is no message."""


class Channel:
    """One end of a socket.

    Args:
        end: the socket.
        limit: of the bytes of a message that is received.
        patience: seconds for which the other side may not read; without it, all there are.
    """

    def __init__(self, end: socket.socket, limit: int = LONGEST, patience: int = 0) -> None:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("@ll", patience, 0))
        self._socket = end
        self._limit = limit

    def send(self, message: Mapping[str, Any]) -> None:
        """Send one message.

        Raises:
            ChannelError: if the other side is gone.
        """
        text = json.dumps(message, allow_nan=False, separators=(",", ":")).encode()
        try:
            self._socket.sendall(_LENGTH.pack(len(text)) + text)
        except OSError:
            raise ChannelError("the other side is gone") from None

    def receive(self) -> dict[str, Any]:
        """The next message.

        Raises:
            ChannelError: if there is none, or it is longer than the limit or no table of JSON.
        """
        (length,) = _LENGTH.unpack(self._exactly(_LENGTH.size))
        if length > self._limit:
            raise ChannelError("a message is longer than may be")
        try:
            message = json.loads(self._exactly(length), parse_constant=_refused)
        except (ValueError, RecursionError):
            raise ChannelError("a message is no JSON") from None
        if not isinstance(message, dict):
            raise ChannelError("a message is no table")
        return message

    def _exactly(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            try:
                part = self._socket.recv(min(size - len(parts), 2**20))
            except OSError:
                part = b""
            if not part:
                raise ChannelError("the other side is gone")
            parts += part
        return bytes(parts)

    def close(self) -> None:
        """Say nothing more."""
        self._socket.close()


def _refused(constant: str) -> None:
    raise ValueError(constant)


def written(value: Any) -> Any:
    """A released value as JSON: a number, an array with its type, or counts of keys.

    >>> read(written(np.array([1, 2]))).dtype
    dtype('int64')
    """
    if isinstance(value, np.ndarray):
        return {"array": value.tolist(), "type": value.dtype.name, "shape": list(value.shape)}
    if isinstance(value, dict):
        return {"counts": [[key, count] for key, count in value.items()]}
    if isinstance(value, list):
        return {"list": [written(each) for each in value]}
    return value.item() if isinstance(value, np.generic) else value


def read(value: Any) -> Any:
    """What :func:`written` wrote."""
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return np.array(value["array"], dtype=value["type"]).reshape(value["shape"])
    if "counts" in value:
        return dict(map(tuple, value["counts"]))
    return [read(each) for each in value["list"]]


def field(message: Mapping[str, Any], name: str, kind: type | tuple[type, ...]) -> Any:
    """A field of a message.

    Raises:
        InputError: if it lacks, or is of another type.
    """
    value = message.get(name)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise InputError(f"{name} is a {type(value).__name__}; it must be of another type.")
    return value


def refusal(error: DpAuditError) -> dict[str, str]:
    """An error as a message; :func:`error_of` reads it."""
    return {"error": str(error), "kind": type(error).__name__}


def error_of(said: Mapping[str, Any]) -> DpAuditError:
    """The error of a message, of the kind that it says if this package has it."""
    kind = getattr(errors, str(said.get("kind")), InputError)
    known = isinstance(kind, type) and issubclass(kind, DpAuditError)
    return (kind if known else InputError)(str(said["error"]))


def generator(seed: Mapping[str, Any]) -> np.random.Generator:
    """The generator of a seed that is sent: its entropy, and which child of it."""
    return np.random.default_rng(np.random.SeedSequence(**seed))
