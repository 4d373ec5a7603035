"""The rows: what each paper states, the function that measures it, and what comes out.

The statements stand in ``claims``. A row is measured now, from records where it needs runs; what
was measured before is kept, and :func:`changes` says where it is no longer so.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from audits.paper_rows.measurement import ERRORS, Measurement, Number, Verdict
from audits.paper_rows.measures import code
from audits.paper_rows.recording import FOLDER, VARIABLE, Recording
from audits.result_table import Record, ResultTable, in_order
from dpaudit.base.errors import InputError

FILES = Path(__file__).parent / "claims"
MEASURES = "audits.paper_rows.measures"
TIMINGS = frozenset({"local.cheaper"})
"""Measures of processor time, which differ from run to run; the verdict must not."""
_ROUNDING = 1e-4
TESTS = "code.tests"


class _NotRunError(Exception):
    """A record that is not there."""


@dataclass(frozen=True)
class Row:
    """One statement of a paper.

    Attributes:
        id: letter of the paper and number.
        place: in the paper.
        claim: what it states, in our words.
        measure: ``module.function`` of :mod:`audits.paper_rows.measures`; empty if nothing can.
        arguments: of that function.
        impossible: why nothing can be measured.
    """

    id: str
    place: str
    claim: str
    measure: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    impossible: str = ""

    @property
    def command(self) -> str:
        """What prints the row."""
        return f"python -m audits.paper_rows --only {self.id}"

    @property
    def asked(self) -> Record:
        """What a record of it repeats."""
        return {"place": self.place, "claim": self.claim}


@dataclass(frozen=True)
class Paper:
    """One paper.

    Attributes:
        reference: authors, title, place.
        summary: who is protected from whom, and what became of the claim.
        certificates: title and remark of each, by the subject's name in the project file.
        folder: of its algorithms.
        pictures: experiments whose curves are shown.
        rows: its statements.
    """

    reference: str
    summary: str
    certificates: Mapping[str, tuple[str, str]]
    folder: str
    pictures: tuple[str, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Outcome:
    """What became of a row.

    Attributes:
        row: which.
        measured: numbers, verdict and reason.
        recorded: experiments whose records it was read from.
    """

    row: Row
    measured: Measurement
    recorded: tuple[str, ...] = ()

    @property
    def record(self) -> Record:
        """What is kept of it."""
        return self.row.asked | {
            "verdict": str(self.measured.verdict),
            "because": self.measured.because,
            "numbers": [vars(number) for number in self.measured.numbers],
            "command": self.row.command,
            "records": list(self.recorded),
        }

    @classmethod
    def of(cls, row: Row, record: Record) -> Outcome:
        """The outcome of a record."""
        numbers = tuple(Number(**number) for number in record["numbers"])
        measured = Measurement(numbers, Verdict(record["verdict"]), record["because"])
        return cls(row, measured, tuple(record["records"]))


def _paper(path: Path) -> Paper:
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    rows = tuple(Row(**row) for row in table.pop("row"))
    shown = {each["name"]: (each["title"], each["remark"]) for each in table.pop("certificate")}
    pictures = tuple(table.pop("pictures"))
    return Paper(rows=rows, certificates=shown, pictures=pictures, **table)


PAPERS = tuple(map(_paper, sorted(FILES.glob("*.toml"))))


def rows_of(names: Sequence[str] = ()) -> tuple[Row, ...]:
    """The rows of these ids; all where none is given.

    Raises:
        InputError: if there is no such row.
    """
    known = {row.id: row for paper in PAPERS for row in paper.rows}
    for name in names:
        if name not in known:
            raise InputError(f"row is {name!r:.40}; it must be one of {', '.join(known)}.")
    return tuple(row for row in known.values() if not names or row.id in names)


def measuring(name: str) -> Callable[..., Measurement]:
    """The function of that name, such as ``local.panel``.

    Raises:
        InputError: if there is none.
    """
    module, _, function = name.partition(".")
    try:
        found: Any = getattr(import_module(f"{MEASURES}.{module}"), function)
    except (ImportError, AttributeError):
        raise InputError(
            f"measure is {name!r}; it must be module.function of {MEASURES}."
        ) from None
    return found  # type: ignore[no-any-return]


def measure(row: Row, folder: Path = FOLDER) -> Outcome:
    """Measure a row now, from records where it needs runs.

    Args:
        row: which.
        folder: of the records.
    """
    if row.impossible:
        return Outcome(row, Measurement((), Verdict.NOT_POSSIBLE, row.impossible))
    read: list[str] = []

    def records(name: str) -> Recording:
        found = Recording.read(name, folder)
        if found is None:
            raise _NotRunError(name)
        read.append(name)
        return found

    try:
        found = measuring(row.measure)(records, **row.arguments)
    except _NotRunError as missing:
        text = f"There is no record of {missing}."
        return Outcome(row, Measurement((), Verdict.NOT_RUN, text))
    except InputError as error:
        if VARIABLE not in str(error):
            raise
        return Outcome(row, Measurement((), Verdict.NOT_RUN, f"Its data are missing: {error}"))
    numbers = tuple(_plain(number) for number in found.numbers)
    measured = Measurement(numbers, Verdict(found.verdict), found.because)
    return Outcome(row, measured, tuple(dict.fromkeys(read)))


def _plain(number: Number) -> Number:
    """Python's own numbers, rounded to what is worth writing down."""
    paper = None if number.paper is None else float(number.paper)
    ours, error = (float(f"{value:.6g}") for value in (number.ours, number.error))
    return Number(number.what, ours, error, int(number.runs), paper)


def measure_all(rows: Iterable[Row], *, workers: int = 1, folder: Path = FOLDER) -> list[Outcome]:
    """Measure rows, in their order; the outcome does not depend on the workers."""
    listed = tuple(rows)
    tested = tuple(row for row in listed if row.measure == TESTS)
    groups = [group for group in (tested, *((r,) for r in listed if r not in tested)) if group]
    outcomes = in_order(partial(_measure_each, folder), groups, workers)
    found = {outcome.row.id: outcome for group in outcomes for outcome in group}
    return [found[row.id] for row in listed]


def _measure_each(folder: Path, rows: tuple[Row, ...]) -> list[Outcome]:
    code.prefetch(node for row in rows if row.measure == TESTS for node in row.arguments["nodes"])
    return [measure(row, folder) for row in rows]


def table_in(folder: Path) -> ResultTable:
    """All rows, with what was measured of them before."""
    return ResultTable(folder / "rows.json", {row.id: row for row in rows_of()}, lambda r: r.asked)


def changes(outcomes: Iterable[Outcome], folder: Path = FOLDER) -> Iterator[str]:
    """A sentence for each row that says something else than the results on disk.

    Args:
        outcomes: as they are now.
        folder: of the results; where there are none, nothing has changed.
    """
    before = table_in(folder).load()
    for outcome in outcomes:
        row, now, old = outcome.row, outcome.record, before.get(outcome.row.id)
        if old is None or old | row.asked != old:
            continue
        if outcome.measured.verdict is Verdict.NOT_RUN:  # its data are not at hand
            continue
        if old["verdict"] != now["verdict"]:
            yield f"{row.id}: was {old['verdict']}, is {now['verdict']}."
        elif row.measure not in TIMINGS:
            yield from _moved(row.id, old["numbers"], now["numbers"])


def _moved(row: str, old: list[dict[str, float]], new: list[dict[str, float]]) -> Iterator[str]:
    then = {number["what"]: number for number in old}
    for number in new:
        known = then.get(number["what"])
        if known is None:
            continue
        allowed = ERRORS * known["error"] + _ROUNDING * abs(known["ours"]) + 1e-12
        if abs(number["ours"] - known["ours"]) > allowed:
            yield f"{row}: {number['what']} was {known['ours']:g}, is {number['ours']:g}."
