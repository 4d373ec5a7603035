"""Subjects whose code holds handles, and never a row.

``SealedSubject`` is what an author writes. The sealed process of a run loads it here;
:class:`OpenSubject` runs the same code on the same operations within one process, for audits and
for machines that cannot seal.
"""

from __future__ import annotations

import json
import secrets
import tempfile
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dpaudit.base import files
from dpaudit.base.errors import InputError
from dpaudit.base.fields import plain
from dpaudit.certificate import Claim, Finding, SubjectRecord
from dpaudit.plan import AddRemove, Plan
from dpaudit.project.foreign import foreign
from dpaudit.project.subject import AuditPair, Move, RunResult, Subject
from dpaudit.sealed.handles import Rows, SealedLedger
from dpaudit.sealed.table import Table, is_made_up

if TYPE_CHECKING:
    from dpaudit.ledger import Ledger
    from dpaudit.sealed.rows import Rows as Described
    from dpaudit.sealed.store import ReadTable, Store


class SealedSubject(Subject):
    """Base of an algorithm that holds handles of its data: a frozen dataclass of public facts.

    ``table``, ``plan`` and ``run`` must be written. ``run(data, ledger, rng)`` is given rows that
    can be asked about and not read, and a ledger that releases of them.
    """

    public_files: ClassVar[tuple[str, ...]] = ()
    """Files beside the code that it reads, known without the data."""

    @abstractmethod
    def table(self) -> Table:
        """Where the data are, and what their columns may hold; from the fields alone."""

    @abstractmethod
    def run(self, data: Rows, ledger: SealedLedger, rng: np.random.Generator) -> RunResult:  # type: ignore[override]
        """Release by the plan, and return what follows from releases and public facts.

        Args:
            data: all rows of the table that have a unit.
            ledger: releases of handles.
            rng: source of the randomness that has no privacy role.
        """

    @property
    def default_data(self) -> str:  # type: ignore[override]
        """The source of the table."""
        return self.table().source


@dataclass(frozen=True)
class Loaded:
    """A sealed subject as the analyst runs it.

    Attributes:
        name: by which it was found.
        subject: what was found.
        record: how a certificate names it.
    """

    name: str
    subject: SealedSubject
    record: SubjectRecord

    def data(self) -> dict[str, Any]:
        """Its table, and the names of public files that it reads, as JSON."""
        with foreign(self.name, public=True):
            own = self.subject
            found = {"table": own.table().to_dict(), "files": list(map(str, own.public_files))}
            return json.loads(files.canonical_json(plain(found)))  # type: ignore[no-any-return]

    def facts(self) -> dict[str, Any]:
        """What it declares beside these, as JSON."""
        with foreign(self.name, public=True):
            own = self.subject
            claim = own.claim()
            found = {
                "configuration": self.record.configuration,
                "location": self.record.location,
                "plan": own.plan().to_dict(),
                "claim": None if claim is None else claim.to_dict(),
                "findings": [each.to_dict() for each in own.findings()],
                "not_covered": list(own.not_covered()),
            }
            return json.loads(files.canonical_json(plain(found)))  # type: ignore[no-any-return]

    def run(self, data: Rows, ledger: SealedLedger, rng: np.random.Generator) -> dict[str, Any]:
        """What it published, as JSON."""
        with foreign(self.name, public=True):
            return published(self.name, self.subject.run(data, ledger, rng))


def published(name: str, result: object) -> dict[str, Any]:
    """The record of what a run published.

    Raises:
        InputError: if it is no result, or holds more than JSON can.
    """
    if not isinstance(result, RunResult) or result.owner is not None:
        raise InputError(
            f"{name} must return a RunResult without owner; tell the owner by data.tell_owner."
        )
    try:
        return json.loads(files.canonical_json(result.to_dict()))  # type: ignore[no-any-return]
    except (TypeError, ValueError, RecursionError):
        raise InputError(f"{name} returned more than finite numbers, texts and lists.") from None


def load(name: str, settings: Mapping[str, Any]) -> Loaded:
    """A sealed subject by its name, in the process that is sealed.

    Raises:
        InputError: if there is none.
        UnsealableError: if it is a subject of rows, which may stand beside sealed ones.
    """
    from dpaudit.project.targets import find_subject, subject_record
    from dpaudit.sealed.sandbox import UnsealableError

    found = find_subject(name, settings)
    if not isinstance(found, SealedSubject):
        raise UnsealableError(f"{type(found).__name__} is no SealedSubject.")
    return Loaded(name, found, subject_record(name, found))


def main(descriptor: int) -> None:
    """Be the analyst of a sealed run."""
    from dpaudit.sealed.analyst import serve

    serve(descriptor, load)


# -- without a seal ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Held:
    """Rows in this process.

    Attributes:
        table: as it was declared.
        none: the same table without rows.
        stored: its rows.
        rows: which of these there are.
        stack: holds what must be closed.
    """

    table: ReadTable
    none: Store
    stored: Store
    rows: Described
    stack: ExitStack


@dataclass(frozen=True)
class OpenSubject(Subject):
    """A sealed subject that runs in the process that holds the rows: as it would, without a seal.

    Attributes:
        sealed: what runs.
        folder: from which paths of its table are seen.
    """

    sees_rows: ClassVar[bool] = False
    sealed: SealedSubject
    folder: Path = field(default=Path())

    @property
    def default_data(self) -> str:  # type: ignore[override]
        """The source of the table."""
        return self.sealed.default_data

    def plan(self) -> Plan:
        """That of the sealed subject."""
        return self.sealed.plan()

    def claim(self) -> Claim | None:
        """That of the sealed subject."""
        return self.sealed.claim()

    def findings(self) -> tuple[Finding, ...]:
        """Those of the sealed subject."""
        return self.sealed.findings()

    def not_covered(self) -> tuple[str, ...]:
        """What the sealed subject says."""
        return self.sealed.not_covered()

    def audit_pairs(self) -> tuple[AuditPair, ...]:
        """Those of the sealed subject."""
        return self.sealed.audit_pairs()

    def load(self, source: str, rng: np.random.Generator) -> Held:
        """Rows of the source, of another file, or ``synthetic N`` made-up ones.

        Raises:
            InputError: if the table cannot be read as declared.
        """
        from dpaudit.sealed.store import ReadTable, all_rows, opened, with_data

        record = self.sealed.table().to_dict()
        stack = ExitStack()
        made_up = is_made_up(source)
        if not made_up and source != self.default_data:
            record["source"] = str(Path(source).resolve())
        table = ReadTable.of(record, self.folder)
        if made_up:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="dpaudit-"))
            table = with_data(table, source, Path(folder), rng)
        none, rows = opened(table, secrets.token_bytes(32), stack)
        return Held(table, none, rows, all_rows(table), stack)

    def neighbours(self, data: Held, rng: np.random.Generator) -> Iterable[Move]:
        """The rows without those of one unit, or with another's in place of these."""
        names = data.stored.units()
        for number in rng.permutation(len(names))[:20].tolist():
            kept = f"SELECT * FROM ({data.rows.sql}) WHERE code <> {number}"
            recipe = f"unit {number + 1} removed"
            if not isinstance(self.plan().invocations[0].relation, AddRemove):
                other = int(rng.integers(len(names)))
                copied = f"SELECT {number} AS code, * EXCLUDE (code) FROM ({data.rows.sql})"
                kept = f"{kept} UNION ALL {copied} WHERE code = {other}"
                recipe = f"unit {number + 1} replaced by unit {other + 1}"
            yield Move(replace(data, rows=replace(data.rows, sql=kept)), recipe)

    def run(self, data: Held, ledger: Ledger, rng: np.random.Generator) -> RunResult:
        """Run the sealed subject on handles of these rows."""
        from dpaudit.ledger import Ledger as Door
        from dpaudit.sealed.operations import FatalError, Operations, Side, require_sealable

        plan = ledger.plan
        require_sealable(plan, data.table)
        trial = Door(plan, rng=np.random.default_rng(0))
        sides = Side(data.none, trial), Side(data.stored, ledger)
        operations = Operations(plan, data.table, *sides, rows=data.rows)

        def ask(request: Mapping[str, Any]) -> dict[str, Any]:
            try:
                return operations.answer(json.loads(json.dumps(request)))
            except FatalError:
                raise InputError("the rows cannot be worked off.") from None

        result = self.sealed.run(Rows(ask, 0), SealedLedger(plan, ask), rng)
        published(type(self.sealed).__name__, result)
        return replace(result, owner=RunResult(operations.owner) if operations.owner else None)
