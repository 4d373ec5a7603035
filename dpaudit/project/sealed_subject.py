"""Subjects whose code holds handles, and never a row.

``SealedSubject`` is what an author writes. The sealed process of a run loads it here;
:class:`OpenSubject` runs the same code on the same operations within one process, for audits and
for machines that cannot seal.
"""

from __future__ import annotations

import hmac
import json
import secrets
import tempfile
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpaudit.base import files
from dpaudit.base.errors import InputError
from dpaudit.certificate import Claim, Finding
from dpaudit.plan import Plan
from dpaudit.project.subject import AuditPair, Move, RunResult, Subject
from dpaudit.sealed.handles import Rows, SealedLedger, code_of
from dpaudit.sealed.table import Table, is_made_up

if TYPE_CHECKING:
    from dpaudit.ledger import Ledger
    from dpaudit.sealed.per_unit import UnitFunctions
    from dpaudit.sealed.rows import Rows as Described
    from dpaudit.sealed.store import ReadTable, Store


class SealedSubject(Subject):
    """Base of an algorithm that holds handles of its data: a frozen dataclass of public facts.

    ``table``, ``plan`` and ``run`` must be written. ``run(data, ledger, rng)`` is given rows that
    can be asked about and not read, and a ledger that releases of them.
    """

    sees_rows: ClassVar[bool] = False
    public_files: ClassVar[tuple[str, ...]] = ()
    """Files beside the code that it reads, known without the data."""
    functions: ClassVar[tuple[Callable[..., Any], ...]] = ()
    """Functions of one unit's records that ``run`` hands to ``per_unit``; each stands at the top of
    a file of the code."""

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


MADE_UP_ROWS = "synthetic 200"
"""Rows on which a sealed subject is tried where none are named."""


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
        raise InputError(
            f"{name} returned something other than finite numbers, texts and lists."
        ) from None


class _Kept(ExitStack):
    """What is open as long as somebody holds rows of it."""

    def __del__(self) -> None:
        self.close()


@dataclass(frozen=True, eq=False)
class Held:
    """Rows in this process.

    Attributes:
        table: as it was declared.
        tried: the same table without rows, and with made-up rows.
        stored: its rows.
        rows: which of these there are.
        stack: holds what must be closed.
    """

    table: ReadTable
    tried: tuple[Store, Store]
    stored: Store
    rows: Described
    stack: ExitStack


@dataclass(frozen=True)
class OpenSubject(Subject):
    """A sealed subject that runs in the process that holds the rows: as it would, without a seal.

    Attributes:
        sealed: what runs.
        folder: from which paths of its table are seen.
        made_up: made-up rows that it runs on by default, in place of the table.
    """

    sees_rows: ClassVar[bool] = False
    sealed: SealedSubject
    folder: Path = field(default=Path())
    made_up: str = ""

    @property
    def default_data(self) -> str:  # type: ignore[override]
        """The made-up rows, or the source of the table."""
        return self.made_up or self.sealed.default_data

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

    def audit_release(self, data: Any, size: int, rng: np.random.Generator) -> NDArray[Any]:
        """As the sealed subject draws it."""
        return self.sealed.audit_release(data, size, rng)

    def statistic(self, releases: Sequence[Any]) -> NDArray[Any]:
        """That of the sealed subject."""
        return self.sealed.statistic(releases)

    def load(self, source: str, rng: np.random.Generator) -> Held:
        """Rows of the source, of another file, or ``synthetic N`` made-up ones.

        Raises:
            InputError: if the table cannot be read as declared.
        """
        from dpaudit.sealed.store import ReadTable, all_rows, opened, tables_to_try, with_data

        record = self.sealed.table().to_dict()
        stack = _Kept()
        made_up = is_made_up(source)
        if not made_up and source != self.sealed.default_data:
            record["source"] = str(Path(source).resolve())
        table = ReadTable.of(record, self.folder)
        if made_up:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="dpaudit-"))
            table = with_data(table, source, Path(folder), rng)
        tried = tables_to_try(table, self.plan(), stack)
        rows = opened(table, secrets.token_bytes(32), stack)
        return Held(table, tried, rows, all_rows(table), stack)

    def neighbours(self, data: Held, rng: np.random.Generator) -> Iterable[Move]:
        """The rows without those of one unit, or with another's in place of these."""
        names = data.stored.units()
        for number in rng.permutation(len(names))[:20].tolist():
            kept = f"SELECT * FROM ({data.rows.sql}) WHERE code <> {number}"
            recipe = f"unit {number + 1} removed"
            if self.plan().invocations[0].relation.replaces:
                other = int(rng.integers(len(names)))
                copied = f"SELECT {number} AS code, * EXCLUDE (code) FROM ({data.rows.sql})"
                kept = f"{kept} UNION ALL {copied} WHERE code = {other}"
                recipe = f"unit {number + 1} replaced by unit {other + 1}"
            yield Move(replace(data, rows=replace(data.rows, sql=kept)), recipe)

    def run(self, data: Held, ledger: Ledger, rng: np.random.Generator) -> RunResult:
        """Run the sealed subject on handles of these rows."""
        from dpaudit.sealed.operations import FatalError, Operations
        from dpaudit.sealed.sealable import require_sealable
        from dpaudit.sealed.sums import Side, trial_of

        plan = ledger.plan
        require_sealable(plan, data.table)
        trials = [Side(each, trial_of(ledger)) for each in data.tried]
        real, functions = Side(data.stored, ledger), self._functions(rng)
        operations = Operations(plan, data.table, trials, real, data.rows, functions)

        def ask(request: Mapping[str, Any]) -> dict[str, Any]:
            try:
                return operations.answer(json.loads(json.dumps(request)))
            except FatalError:
                raise InputError("the rows cannot be processed.") from None

        result = self.sealed.run(Rows(ask, 0), SealedLedger(plan, ask), rng)
        published(type(self.sealed).__name__, result)
        return replace(result, owner=RunResult(operations.owner) if operations.owner else None)

    def _functions(self, rng: np.random.Generator) -> UnitFunctions | None:
        """What runs the functions of the subject here; None where it has none.

        Args:
            rng: of the run; nothing is drawn from it.
        """
        from dpaudit.sealed.per_unit import UnitFunctions
        from dpaudit.sealed.workers import OwnFunctions

        functions = {code_of(each): each for each in self.sealed.functions}
        if not functions:
            return None
        # of a copy, so that the code draws here what it draws in a sealed run
        secret = hmac.digest(deepcopy(rng).bytes(32), b"functions", "sha256")
        return UnitFunctions(OwnFunctions(functions), functions.keys(), secret)


def on_made_up_rows(subject: Subject | None, data: str | None = None) -> Subject | None:
    """A sealed subject that reads made-up rows in place of its table; another as it is."""
    if not isinstance(subject, OpenSubject):
        return subject
    return replace(subject, made_up=MADE_UP_ROWS if data is None else data)
