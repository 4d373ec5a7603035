"""The ledger's file: what was charged, in a chain that shows every edit.

The first line holds the plan, the last one closes the journal. A line is in the file before the
noise of its release is drawn, so what was given out is never more than what the journal charges. It
never holds private values, noise or seeds.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import NoneType
from typing import Any

from dpaudit.base import files
from dpaudit.base.chain import Chain, ChainEnd, Durability, walk_chain
from dpaudit.base.errors import InputError, PlanMismatchError, TamperedError
from dpaudit.certificate.filtering import FilterRecord
from dpaudit.ledger.account import Account
from dpaudit.ledger.anchor import Anchor, AnchorCheck, AnchorState
from dpaudit.ledger.entry import Entry
from dpaudit.plan import Plan

FORMAT = "dpaudit-ledger/2"
_FORMATS = (FORMAT, "dpaudit-ledger/1")  # the first one had samplers for observed noise alone


class Journal:
    """An append-only file of releases, held by one ledger.

    Attributes:
        identifier: tells this journal from all others.
    """

    def __init__(self, chain: Chain, identifier: str, anchor: Anchor | None) -> None:
        self.identifier = identifier
        self._chain = chain
        self._anchor = anchor
        self._held: ChainEnd | None = None
        self._kept: AnchorState | None = None
        """What the anchor remembers, as far as this writer knows."""

    @classmethod
    def create(
        cls,
        path: Path | str,
        plan: Plan,
        *,
        durability: Durability = Durability.PROCESS,
        anchor: Anchor | None = None,
        identifier: str | None = None,
        filtered: FilterRecord | None = None,
    ) -> Journal:
        """Start a journal with its plan.

        Args:
            path: of the file, which must not exist yet.
            plan: of the ledger.
            durability: what a written line survives.
            anchor: keeps the journal's head elsewhere.
            identifier: of the journal; drawn where not given.
            filtered: the privacy filter of the ledger, which nobody may choose anew later.

        Raises:
            InputError: if the file exists or cannot be created.
        """
        identifier = os.urandom(16).hex() if identifier is None else identifier
        if anchor is not None and anchor.state(identifier) is not None:
            raise InputError("the anchor knows this journal already; give it an anchor of its own.")
        header = {
            "format": FORMAT,
            "journal": identifier,
            "plan": plan.to_dict(),
            "plan_hash": plan.hash,
            **({} if filtered is None else {"privacy_filter": filtered.to_dict()}),
        }
        journal = cls(Chain.create(path, header, durability), identifier, anchor)
        journal._anchored()
        return journal

    @classmethod
    def resume(
        cls,
        path: Path | str,
        *,
        durability: Durability = Durability.PROCESS,
        anchor: Anchor | None = None,
    ) -> tuple[Journal, JournalContent]:
        """Hold a journal that was left open; :meth:`mark_resumed` before anything is appended.

        Raises:
            TamperedError: if the chain is broken, or does not fit its anchor.
            InputError: if the journal is closed, is none, or is open elsewhere.
        """
        chain, end = Chain.resume(path, durability)
        try:
            walk = _Walk(path, anchor)
            content = walk.content()
            if content.closed:
                raise InputError(f"journal {files.shown(path)} is closed; start a new one.")
        except BaseException:
            chain.release()
            raise
        journal = cls(chain, content.identifier, anchor)
        journal._held, journal._kept = end, walk.known
        return journal, content

    def mark_resumed(self) -> None:
        """Drop a cut last line, and say that the journal was taken up.

        Raises:
            JournalError: if it cannot be written.
        """
        if self._held is not None:
            self._chain.trim(self._held)
            self._write({"resumed": os.urandom(16).hex()})
            self._held = None

    @property
    def head(self) -> str:
        """Hash of the last line."""
        return self._chain.head

    @property
    def lines(self) -> int:
        """How many lines there are."""
        return self._chain.number

    @property
    def durability(self) -> Durability:
        """What a written line survives."""
        return self._chain.durability

    def has(self, head: str) -> bool:
        """Tell whether that is the hash of one of its lines, and so of all before it."""
        return any(line["hash"] == head for line in walk_chain(self._chain.path))

    def fresh_seed(self, words: list[int]) -> list[int]:
        """A seed that no earlier part of this journal had, from the words of a given seed."""
        head = bytes.fromhex(self.head)
        return [*words, *(int.from_bytes(head[i : i + 4]) for i in range(0, len(head), 4))]

    def append(self, *entries: Entry) -> None:
        """Record releases, before their noise is drawn.

        Raises:
            JournalError: if they cannot be written.
        """
        self._write(
            *(
                {
                    "at": entry.invocation.at,
                    "sampler": entry.sampler,
                    "source": entry.source,
                    "unit": entry.unit,
                    **({"more": more} if (more := len(entries) - n) else {}),
                    **({"external": True} if entry.external else {}),
                }
                for n, entry in enumerate(entries, start=1)
            )
        )

    def append_step(self, at: str, step: int, unit: str) -> None:
        """Record who contributes to a step of a continual release that is charged already."""
        self._write({"at": at, "step": step, "unit": unit})

    def close(self) -> None:
        """Write the closing line and close the file."""
        self._write({"closed": True, "lines": self.lines})
        self._chain.release()

    def release(self) -> None:
        """Close the file as it is."""
        self._chain.release()

    def _write(self, *records: Mapping[str, Any]) -> None:
        self._chain.append(*records)
        self._anchored()

    def _anchored(self) -> None:
        if self._anchor is not None:
            state = AnchorState(self.identifier, self.lines, self.head)
            self._anchor.advance(state, self._kept)
            self._kept = state


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One line of a release, or of a step of one.

    Attributes:
        at: label of the invocation.
        unit: whom it touched; None for every unit.
        source: module and line that asked for it.
        sampler: what drew the noise; empty where an old journal does not tell.
        external: whether that stands outside of this package; an old journal does not tell.
        step: number of the step of a continual release; None for a release.
    """

    at: str
    unit: str | None
    source: str = ""
    sampler: str = ""
    step: int | None = None
    external: bool = False


@dataclass(frozen=True)
class JournalEnd:
    """What the end of a journal is like, after its chain was checked.

    Attributes:
        closed: whether the closing line is there.
        cut: whether a last line was cut off (and left out here).
        lines: how many whole lines there are.
        head: hash of the last whole line.
    """

    closed: bool
    cut: bool
    lines: int
    head: str


@dataclass(frozen=True)
class JournalContent(JournalEnd):
    """What a journal says, after its chain was checked.

    Attributes:
        plan: the declared plan.
        entries: the releases and steps, in their order.
        identifier: tells the journal from others.
        filtered: the privacy filter that it began with.
    """

    plan: Plan
    entries: tuple[JournalEntry, ...]
    identifier: str
    filtered: FilterRecord | None = None

    @property
    def releases(self) -> tuple[JournalEntry, ...]:
        """The entries that are charged."""
        return tuple(entry for entry in self.entries if entry.step is None)

    def account(self) -> Account:
        """What was charged, checked against the plan.

        Raises:
            PlanMismatchError: if more was charged than the plan admits, or groups overlap.
        """
        account = Account(self.plan)
        for entry in self.entries:
            _charge(account, entry)
        return account


@dataclass(frozen=True)
class JournalSummary(JournalEnd):
    """What a journal comes to; of its releases only the counts are kept, however many there are.

    Attributes:
        plan: the declared plan.
        identifier: tells the journal from others.
        account: what was charged, which the plan admits.
        samplers: how many releases each sampler drew.
        external: how many of them it drew outside of this package.
        filtered: as of :class:`JournalContent`.
    """

    plan: Plan
    identifier: str
    account: Account
    samplers: Mapping[str, int] = field(default_factory=dict)
    external: Mapping[str, int] = field(default_factory=dict)
    filtered: FilterRecord | None = None

    @property
    def releases(self) -> int:
        """How many were charged."""
        return sum(self.samplers.values())


def read_journal(path: Path | str, *, anchor: Anchor | None = None) -> JournalContent:
    """Read a journal and check its chain.

    Raises:
        TamperedError: naming the first line that does not follow from the one before, or what does
            not fit the anchor.
        InputError: if the file is missing or is not a journal.
    """
    return _Walk(path, anchor).content()


def summarise_journal(path: Path | str, *, anchor: Anchor | None = None) -> JournalSummary:
    """Check a journal and its account, keeping no more of it than who was charged how often.

    Raises:
        TamperedError: as :func:`read_journal`.
        InputError: as :func:`read_journal`.
        PlanMismatchError: if more was charged than the plan admits, or groups overlap.
    """
    journal = _Walk(path, anchor)
    samplers, external = Counter[str](), Counter[str]()
    account, excess = Account(journal.plan), None
    for entry in journal:
        samplers.update([entry.sampler] if entry.step is None else [])
        external.update([entry.sampler] if entry.external else [])
        if excess is None:
            try:
                _charge(account, entry)
            except PlanMismatchError as error:
                excess = error  # a broken chain further on would be worse
    if excess is not None:
        raise excess
    return JournalSummary(account=account, samplers=samplers, external=external, **journal.facts())


def _charge(account: Account, entry: JournalEntry) -> None:
    """Count an entry, as the ledger did when it was written."""
    invocation = account.declared[entry.at]
    if entry.step is None:
        account.admissible(invocation.mechanism, entry.at, {entry.unit: 1})
        account.charge(invocation, entry.unit)
    else:
        account.require_member(invocation, entry.unit)
        account.join(invocation, str(entry.unit))


class _Walk:
    """The entries of a journal, checked one by one; its end is known once all were passed."""

    end: JournalEnd

    def __init__(self, path: Path | str, anchor: Anchor | None) -> None:
        self._lines = walk_chain(path)
        header = next(self._lines)
        if header.get("format") not in _FORMATS:
            path = files.shown(path)
            raise InputError(f"journal {path} has no first line of the format {FORMAT!r}.")
        self.plan = Plan.from_dict(header.get("plan", {}))
        if header.get("plan_hash") != self.plan.hash:
            raise TamperedError("the journal's plan_hash does not match its plan.")
        self.identifier = str(header.get("journal") or header["hash"])  # of a forged one never ""
        stated = header.get("privacy_filter")
        self.filtered = None if stated is None else FilterRecord.from_dict(stated)
        self._anchor = None if anchor is None else AnchorCheck(self.identifier, anchor)
        self._see(header)

    def __iter__(self) -> Generator[JournalEntry, None, None]:
        """Every entry names an invocation of the plan, and none follows the closing line."""
        labels = {invocation.at for invocation in self.plan.invocations}
        closed = False
        while True:
            try:
                record = next(self._lines)
            except StopIteration as stop:
                chain: ChainEnd = stop.value
                break
            self._see(record)
            line = record["number"] + 1
            if closed:
                raise _after_closing(line)
            closed = "closed" in record
            if not closed and "resumed" not in record:
                yield _entry(record, labels)
        if closed and chain.cut:
            raise _after_closing(chain.lines + 1)
        if self._anchor is not None:
            self._anchor.finish(chain.lines)
        self.end = JournalEnd(closed, chain.cut, chain.lines, chain.head)

    @property
    def known(self) -> AnchorState | None:
        """What the anchor knew, which is a line of this journal once all were passed."""
        return None if self._anchor is None else self._anchor.known

    def content(self) -> JournalContent:
        """All that the journal says."""
        entries = tuple(self)
        return JournalContent(entries=entries, **self.facts())

    def facts(self) -> dict[str, Any]:
        """Plan, identifier, filter and end."""
        own = {"plan": self.plan, "identifier": self.identifier, "filtered": self.filtered}
        return own | asdict(self.end)

    def _see(self, record: Mapping[str, Any]) -> None:
        if self._anchor is not None:
            more = record.get("more", 0)
            self._anchor.see(record["number"] + 1, record["hash"], more if type(more) is int else 0)


def _after_closing(line: int) -> TamperedError:
    return TamperedError(f"line {line} follows the closing line of the journal.")


def _entry(record: Mapping[str, Any], labels: set[str]) -> JournalEntry:
    """The release, or step, of a line; it names an invocation of the plan."""
    at, unit = record.get("at"), record.get("unit", 0)
    if not isinstance(at, str) or at not in labels or not isinstance(unit, str | NoneType):
        raise TamperedError(
            f"line {record['number'] + 1} names no invocation of the journal's plan."
        )
    source, sampler = str(record.get("source", "")), str(record.get("sampler", ""))
    external = bool(record.get("external", False))
    return JournalEntry(at, unit, source, sampler, record.get("step"), external)
