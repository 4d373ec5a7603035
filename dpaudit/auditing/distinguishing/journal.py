"""The journal of an experiment: finished chunks, so that a killed audit goes on where it was.

The first line says which experiment it is; every further line holds one finished chunk and a
checksum. A chunk is known by its place in the experiment, and its runs follow from its own seed:
one that is missing is run again and is the very same, so no run is lost and none counts twice.
"""

from __future__ import annotations

import base64
import errno
import json
import os
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpaudit.auditing.evidence.types import Both
from dpaudit.base import files
from dpaudit.base.errors import InputError, JournalError, TamperedError

FORMAT = "dpaudit-trials/2"


class TrialJournal:
    """A file to which finished chunks are appended, one open experiment at a time.

    Args:
        path: of the file.
        identity: public facts that determine every run, JSON values.

    Raises:
        InputError: if the file belongs to another experiment or cannot be written.
        TamperedError: if a line is damaged.
    """

    def __init__(self, path: Path | str, identity: dict[str, Any]) -> None:
        self._path = Path(path)
        self._header = {"format": FORMAT, "experiment": files.digest(identity)}
        try:
            self._finished = self._read()
            self._file = self._path.open("ab", buffering=0)
        except OSError as error:
            raise InputError(
                f"journal {files.shown(path)} cannot be used: {error.strerror}; give a "
                "writable path."
            ) from None

    def finished(self, stage: int) -> dict[int, Both]:
        """The chunks of a stage that were finished before, by number."""
        return self._finished.get(stage, {})

    def append(self, stage: int, number: int, both: Both) -> None:
        """Record a finished chunk; on disk before this returns."""
        record = {"stage": int(stage), "number": number, "outputs": [*map(_packed, both)]}
        length = os.fstat(self._file.fileno()).st_size
        try:
            line = _line(record | {"checksum": self._checksum(record)})
            if self._file.write(line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(self._file.fileno())
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._file.fileno(), length)
            raise JournalError(
                f"journal {files.shown(self._path)} cannot be written: {error.strerror}; the "
                "chunks that are in it stay."
            ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _checksum(self, record: dict[str, Any]) -> str:
        return files.digest([self._header, record])

    def _read(self) -> dict[int, dict[int, Both]]:
        """The finished chunks; a line that was cut off by a kill is removed."""
        header = _line(self._header)
        if self._path.exists() and not self._path.is_file():
            raise InputError(f"journal {files.shown(self._path)} is no regular file; give another.")
        data = self._path.read_bytes() if self._path.exists() else b""
        if not header.startswith(data[: len(header)]):  # nothing of it is touched
            raise InputError(
                f"journal {files.shown(self._path)} belongs to another experiment (mechanism, "
                "pair, seed or runs); give another path."
            )
        lines = data.splitlines(keepends=True)
        if lines and not lines[-1].endswith(b"\n"):
            os.truncate(self._path, sum(map(len, lines[:-1])))
            lines.pop()
        if not lines:
            self._path.write_bytes(header)
        finished: dict[int, dict[int, Both]] = {}
        for place, line in enumerate(lines[1:], start=2):
            try:
                record = json.loads(line)
                whole = record.pop("checksum") == self._checksum(record)
                x, x_prime = map(_unpacked, record["outputs"])
                chunks = finished.setdefault(record["stage"], {})
            except (ValueError, KeyError, TypeError, AttributeError):
                whole = False
            if not whole:
                raise TamperedError(
                    f"line {place} of journal {files.shown(self._path)} is damaged; delete the "
                    "line, and its runs are made again."
                )
            chunks[record["number"]] = x, x_prime
        return finished


def _line(record: dict[str, Any]) -> bytes:
    return (files.canonical_json(record) + "\n").encode()


def _packed(array: NDArray[np.float64]) -> str:
    buffer = BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return base64.b64encode(buffer.getvalue()).decode()


def _unpacked(text: str) -> NDArray[np.float64]:
    array: NDArray[np.float64] = np.load(BytesIO(base64.b64decode(text)), allow_pickle=False)
    return array
