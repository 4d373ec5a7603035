"""The ledger's file: JSON lines, each with the hash of the line before.

The first line holds the plan, the last one closes the journal. An edited, removed or moved line
breaks the chain; a last line that was cut off (a crash while writing) is recognised as such.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import NoneType
from typing import Any

from dpaudit import files
from dpaudit.errors import InputError, TamperedError
from dpaudit.plan import Plan

__all__ = ["Journal", "JournalContent", "read_journal"]

FORMAT = "dpaudit-ledger/1"
MAX_JOURNAL_BYTES = 2_000_000_000


def _hash_of(record: Mapping[str, Any]) -> str:
    return hashlib.sha256(files.canonical_json(record).encode()).hexdigest()


@lru_cache(maxsize=256)
def _quoted(text: str) -> str:
    return files.canonical_json(text)


class Journal:
    """An append-only file of releases. It never holds private values, noise or seeds."""

    def __init__(self, path: Path, previous: str, number: int) -> None:
        self._path = path
        self._previous = previous
        self._number = number
        self._file = path.open("ab", buffering=0)  # a line is in the file once it is written

    @classmethod
    def create(cls, path: Path | str, plan: Plan) -> Journal:
        """Start a journal with its plan.

        Raises:
            InputError: if the file exists or cannot be created.
        """
        path = Path(path)
        try:
            path.touch(exist_ok=False)
            journal = cls(path, "", 0)
        except FileExistsError:
            raise InputError(f"journal {str(path)!r} exists already; give a new path.") from None
        except OSError as error:
            raise InputError(
                f"journal {str(path)!r} cannot be created: {error.strerror}; give a writable path."
            ) from None
        journal._write({"format": FORMAT, "plan": plan.to_dict(), "plan_hash": plan.hash})
        return journal

    @classmethod
    def resume(cls, path: Path | str) -> Journal:
        """Go on with a journal that was left open; a cut last line is dropped.

        Raises:
            TamperedError: if the chain is broken.
            InputError: if the journal is closed or is none.
        """
        content = read_journal(path)
        if content.closed:
            raise InputError(f"journal {str(path)!r} is closed; start a new one.")
        if content.cut:
            os.truncate(path, content.whole_bytes)
        return cls(Path(path), content.last_hash, len(content.entries) + 1)

    def append(self, at: str, unit: str | None, source: str, sampler: str | None = None) -> None:
        """Record one release; ``sampler`` names who drew the noise, if not the ledger."""
        # Canonical JSON written out, as the general encoder takes most of the time of an entry.
        drawn = "" if sampler is None else f'"sampler":{_quoted(sampler)},'
        named = "null" if unit is None else _quoted(unit)
        self._write_text(
            f'{{"at":{_quoted(at)},"number":{self._number},"previous":"{self._previous}",{drawn}'
            f'"source":{_quoted(source)},"unit":{named}}}'
        )

    def close(self) -> None:
        """Write the closing line and close the file."""
        if not self._file.closed:
            self._write({"closed": True, "entries": self._number - 1})
            self._file.close()

    def _write(self, record: dict[str, Any]) -> None:
        numbered = record | {"number": self._number, "previous": self._previous}
        self._write_text(files.canonical_json(numbered))

    def _write_text(self, text: str) -> None:
        """One line: canonical JSON, to which its own hash is added."""
        content = text.encode()
        self._previous = hashlib.sha256(content).hexdigest()
        self._file.write(content[:-1] + f',"hash":"{self._previous}"}}\n'.encode())
        self._number += 1


@dataclass(frozen=True)
class JournalContent:
    """What a journal says, after its chain was checked.

    Attributes:
        plan: the declared plan.
        entries: one record a release, with ``at``, ``unit`` and ``source``.
        closed: whether the closing line is there.
        cut: whether a last line was cut off (and left out here).
        last_hash: hash of the last whole line.
        whole_bytes: length of the whole lines.
    """

    plan: Plan
    entries: tuple[Mapping[str, Any], ...]
    closed: bool
    cut: bool
    last_hash: str
    whole_bytes: int

    def charges(self) -> dict[str, Counter[Any]]:
        """How often each unit was charged, by label of the invocation."""
        charges: dict[str, Counter[Any]] = {i.at: Counter() for i in self.plan.invocations}
        for entry in self.entries:
            charges[entry["at"]][entry["unit"]] += 1
        return charges


def read_journal(path: Path | str) -> JournalContent:
    """Read a journal and check its chain.

    Raises:
        TamperedError: naming the first line that does not follow from the one before.
        InputError: if the file is missing or is no journal.
    """
    text = files.read_text(path, what="journal", limit=MAX_JOURNAL_BYTES)
    lines = text.split("\n")
    tail = lines.pop()
    cut = tail != ""
    records: list[dict[str, Any]] = []
    previous = ""
    for number, line in enumerate(lines):
        record = _chained(line, number, previous)
        records.append(record)
        previous = record["hash"]
    if not records or records[0].get("format") != FORMAT:
        raise InputError(f"journal {str(path)!r} has no first line of the format {FORMAT!r}.")
    plan = Plan.from_dict(records[0].get("plan", {}))
    closed = bool(records[-1].get("closed"))
    if closed and cut:
        raise TamperedError(f"line {len(lines) + 1} follows the closing line of the journal.")
    entries = tuple(records[1:-1] if closed else records[1:])
    _check_entries(entries, plan)
    whole = len(text.encode()) - len(tail.encode())
    return JournalContent(plan, entries, closed, cut, previous, whole)


def _chained(line: str, number: int, previous: str) -> dict[str, Any]:
    """One line, if it is whole and follows the line before."""
    try:
        record: dict[str, Any] = files.parse_json(line, what="line")
        claimed = record.pop("hash")
        unbroken = record["number"] == number and record["previous"] == previous
        intact = claimed == _hash_of(record)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise TamperedError(f"line {number + 1} of the journal is not a ledger line.") from None
    if not intact:
        raise TamperedError(
            f"line {number + 1} of the journal was edited: its hash does not match."
        )
    if not unbroken:
        raise TamperedError(
            f"line {number + 1} of the journal does not follow line {number}: "
            "a line was removed, added or moved."
        )
    record["hash"] = claimed
    return record


def _check_entries(entries: tuple[Mapping[str, Any], ...], plan: Plan) -> None:
    """Every entry must name an invocation of the plan, and none may follow the closing line."""
    labels = {invocation.at for invocation in plan.invocations}
    for entry in entries:
        line = entry["number"] + 1
        if "closed" in entry:
            raise TamperedError(f"line {line + 1} follows the closing line of the journal.")
        named = isinstance(entry.get("unit", 0), str | NoneType)
        if entry.get("at") not in labels or not named:
            raise TamperedError(f"line {line} names no invocation of the journal's plan.")
