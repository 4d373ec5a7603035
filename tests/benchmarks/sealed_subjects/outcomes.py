"""What becomes of a wrong subject that is written sealed."""

from __future__ import annotations

import csv
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, chdir, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit.auditing.replaying.replay import replay
from dpaudit.base.errors import DpAuditError
from dpaudit.certificate import Certificate, Premise, Standing
from dpaudit.ledger import Ledger
from dpaudit.project.sealed_subject import Held, OpenSubject, SealedSubject
from dpaudit.sealed.store import ReadTable, all_rows, opened, tables_to_try
from dpaudit.workflow.running import run_subject
from tests.benchmarks.sealed_subjects import wrong
from tests.benchmarks.sealed_subjects.wrong import Sealed
from tests.benchmarks.wrong_subjects.shop import COLUMNS, PURCHASES, Row

SECRET = bytes(range(32))
HERE = Path(__file__).parent
SEALED_HERE = {
    "CapAtImport": "cap_at_import.py:CapAtImport",
    "CapAsDefault": "caps.py:CapAsDefault",
}
"""Those that make their mistake before they run: they are truly sealed."""


REFUSALS = ("an expression sees one row", "have no length, order or content")
"""What refuses a mistake; other words would refuse how it is written here."""


class Outcome(StrEnum):
    """What the mistake of a subject becomes."""

    REFUSED = "cannot be written"
    HARMLESS = "harmless"
    ASSUMED = "assumed"
    LEAKS = "leaks"


@dataclass(frozen=True)
class Found:
    """The outcome for one subject.

    Attributes:
        name: of the subject that holds rows.
        outcome: what its mistake becomes.
        why: the sentence that refuses it, or what was measured.
    """

    name: str
    outcome: Outcome
    why: str


def sealed_kinds() -> list[type[Sealed]]:
    """Every wrong subject that is written sealed and runs in this process."""
    kinds = (each for each in vars(wrong).values() if isinstance(each, type))
    return [each for each in kinds if issubclass(each, Sealed) and each is not Sealed]


@contextmanager
def held(subject: SealedSubject, rows: Sequence[Row], columns: Sequence[str]) -> Iterator[Held]:
    """The table of a subject, with these rows."""
    path = Path(subject.table().source)
    with path.open("w", newline="") as file:
        lines = csv.DictWriter(file, columns, extrasaction="ignore")
        lines.writeheader()
        lines.writerows(rows)
    with ExitStack() as stack:
        table = ReadTable.of(subject.table().to_dict(), path.parent)
        tried = tables_to_try(table, subject.plan(), stack)
        yield Held(table, tried, opened(table, SECRET, stack), all_rows(table), stack)


def distance(kind: type[Sealed], one: Sequence[Row], two: Sequence[Row], folder: str) -> float:
    """How many times what is declared two tables are apart before noise; ∞ if more is told.

    Settings stay those of the first table.
    """
    subject = kind(folder=folder, **kind.public(one))
    with held(subject, one, COLUMNS) as first, held(subject, two, COLUMNS) as second:
        report = replay(OpenSubject(subject), first, second)
    known = [each.observed / each.declared for each in report.comparisons]
    told = any(each.rule != "sensitivity-understated" for each in report.findings)
    return np.inf if told or not known else max(known)


def outcome(kind: type[Sealed], most: int = 8) -> Found:
    """Run a subject on its example, and on neighbours of the declared unit and of the person.

    Args:
        kind: the subject.
        most: units of which each is removed, those of the person first.
    """
    name, rows = kind.of.__name__, kind.example()
    without = [each for each in rows if not kind.of.is_eves(each)]
    with tempfile.TemporaryDirectory() as folder:
        try:
            run(kind(folder=folder, **kind.public(rows)), rows, COLUMNS)
        except DpAuditError as error:
            said = str(error)
            assert any(each in said for each in REFUSALS), f"{name} has a mistake of ours: {said}"
            return Found(name, Outcome.REFUSED, said)
        first = [each for each in rows if kind.of.is_eves(each)]
        units = list(dict.fromkeys(each[kind.unit] for each in (*first, *rows)))
        apart = max(
            distance(kind, rows, [each for each in rows if each[kind.unit] != unit], folder)
            for unit in units[:most]
        )
        person = distance(kind, rows, without, folder)
    if apart > 1 + 1e-9:
        return Found(name, Outcome.LEAKS, f"a unit moves it {apart:.2f} times what is declared")
    if person > 1 + 1e-9 or kind.public(rows) != kind.public(without):
        assert kind.assumed is not None, f"{name} leaves something to the word of its author"
        premise, why = kind.assumed
        return Found(name, Outcome.ASSUMED, f"{premise}: {why}")
    return Found(name, Outcome.HARMLESS, f"a unit moves it {apart:.2f} times what is declared")


def run(subject: SealedSubject, rows: Sequence[Row], columns: Sequence[str]) -> dict[str, Any]:
    """What the subject publishes of these rows, its noise from a seed."""
    with held(subject, rows, columns) as data:
        ledger = Ledger(subject.plan(), rng=np.random.default_rng(1))
        result = OpenSubject(subject).run(data, ledger, np.random.default_rng(2))
    return dict(result.summary)


def run_sealed(target: str) -> Certificate:
    """The certificate of a truly sealed run, on the purchases beside the code.

    Raises:
        DpAuditError: saying why there is none.
    """
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for path in (HERE / "caps.py", HERE / "cap_at_import.py", PURCHASES):
            shutil.copy(path, folder)
        made, _ = run_subject(target, (), None, 1, Path("out"), sealed=True)
    return made


def sealed_outcome(name: str, target: str) -> Found:
    """What becomes of a subject that is truly sealed, where its code opens the table.

    Raises:
        DpAuditError: if something else stopped it, as a machine that cannot seal.
    """
    try:
        run_sealed(target)
    except DpAuditError as error:
        if "No such file" not in str(error):
            raise
        return Found(name, Outcome.REFUSED, str(error))
    return Found(name, Outcome.LEAKS, "it read the table")


def typed_outcome() -> Found:
    """What becomes of a bound that its author saw, and wrote down, by its certificate."""
    made = run_sealed("caps.py:CapTyped")
    (known,) = {e.standing for e in made.assumptions if e.premise is Premise.PUBLIC_FACTS}
    outcome = Outcome.ASSUMED if known is Standing.ASSUMED else Outcome.LEAKS
    return Found("CapTyped", outcome, f"{Premise.PUBLIC_FACTS}: the bound was read off the table")
