"""The journal of an experiment: finished chunks, so that a killed audit goes on where it was.

The first line says which experiment it is; every further line holds one finished chunk and the
hash of the line before. A chunk that was cut off by a kill is dropped and run again *from its own
seed*: its runs are the very same, so none is lost and none counts twice.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpaudit import files
from dpaudit.auditing.distinguishing.experiment import Chunk, Stage
from dpaudit.errors import InputError, TamperedError

__all__ = ["TrialJournal"]

FORMAT = "dpaudit-trials/1"
Both = tuple[NDArray[np.float64], NDArray[np.float64]]


class TrialJournal:
    """An append-only file of finished chunks, one open experiment at a time."""

    def __init__(self, path: Path, finished: dict[Stage, dict[int, Both]], last: str) -> None:
        self._finished = finished
        self._last = last
        self._file = path.open("ab")

    @classmethod
    def open(cls, path: Path | str, identity: dict[str, Any]) -> TrialJournal:
        """Start a journal, or go on with one of the same experiment.

        Args:
            path: of the file.
            identity: public facts that determine every run, JSON values.

        Raises:
            InputError: if the file belongs to another experiment or cannot be written.
            TamperedError: if a line does not follow from those before.
        """
        path = Path(path)
        header = {"format": FORMAT, "experiment": files.digest(identity)}
        try:
            if not path.exists() or path.stat().st_size == 0:
                path.write_bytes(_line(header, ""))
            finished, last = _read(path, header)
            return cls(path, finished, last)
        except OSError as error:
            raise InputError(
                f"journal {str(path)!r} cannot be used: {error.strerror}; give a writable path."
            ) from None

    def finished(self, stage: Stage) -> dict[int, Both]:
        """The finished chunks of a stage, by number, without a gap."""
        return self._finished.get(stage, {})

    def append(self, chunk: Chunk, result: Both) -> None:
        """Record a finished chunk; on disk before this returns."""
        record = {
            "stage": int(chunk.stage),
            "number": chunk.number,
            "outputs": [_packed(side) for side in result],
        }
        line = _line(record, self._last)
        self._last = _hash(line)
        self._file.write(line)
        self._file.flush()
        os.fsync(self._file.fileno())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()


def _line(record: dict[str, Any], previous: str) -> bytes:
    return (files.canonical_json(record | {"previous": previous}) + "\n").encode()


def _hash(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()


def _packed(array: NDArray[np.float64]) -> str:
    buffer = BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return base64.b64encode(buffer.getvalue()).decode()


def _unpacked(text: str) -> NDArray[np.float64]:
    array: NDArray[np.float64] = np.load(BytesIO(base64.b64decode(text)), allow_pickle=False)
    return array


def _read(path: Path, header: dict[str, Any]) -> tuple[dict[Stage, dict[int, Both]], str]:
    """The finished chunks and the hash of the last whole line; a cut line is removed."""
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    if lines and not lines[-1].endswith(b"\n"):
        os.truncate(path, len(whole) - len(lines.pop()))
    if not lines:
        path.write_bytes(_line(header, ""))
        lines = [_line(header, "")]
    if lines[0] != _line(header, ""):
        raise InputError(
            f"journal {str(path)!r} belongs to another experiment (mechanism, pair, seed or runs); "
            "give another path."
        )
    finished: dict[Stage, dict[int, Both]] = {}
    for number, line in enumerate(lines[1:], start=1):
        try:
            record = json.loads(line)
            chained = record["previous"] == _hash(lines[number - 1])
            stage, chunk = Stage(record["stage"]), record["number"]
            x, x_prime = map(_unpacked, record["outputs"])
        except (ValueError, KeyError, TypeError):
            raise TamperedError(f"line {number + 1} of the journal is not a chunk.") from None
        if not chained or chunk != len(finished.setdefault(stage, {})):
            raise TamperedError(
                f"line {number + 1} of the journal does not follow from the lines before."
            )
        finished[stage][chunk] = x, x_prime
    return finished, _hash(lines[-1])
