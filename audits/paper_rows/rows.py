"""The rows: what each paper states, and the function that measures it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from audits.paper_rows.measured import Measured, Number, Verdict
from audits.paper_rows.measures import code, measuring
from audits.paper_rows.recording import FOLDER, VARIABLE, Recording
from dpaudit.base.errors import InputError
from private_bo.experiments import in_parallel

__all__ = ["PAPERS", "Outcome", "Paper", "Row", "measure", "measure_all", "rows_of"]

FILES = Path(__file__).parent / "claims"
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


@dataclass(frozen=True)
class Paper:
    """One paper.

    Attributes:
        reference: authors, title, place.
        folder: of its algorithms.
        pictures: experiments whose curves are shown.
        rows: its statements.
    """

    reference: str
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
    measured: Measured
    recorded: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """How it was decided."""
        if not self.measured.verdict.decided:
            return "–"
        return "recorded runs" if self.recorded else "computed now"

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        return {
            "place": self.row.place,
            "claim": self.row.claim,
            "verdict": str(self.measured.verdict),
            "because": self.measured.because,
            "numbers": [vars(number) for number in self.measured.numbers],
            "command": self.row.command,
            "records": list(self.recorded),
        }


def _paper(path: Path) -> Paper:
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    rows = tuple(Row(**row) for row in table.pop("row"))
    return Paper(rows=rows, pictures=tuple(table.pop("pictures")), **table)


@cache
def _papers() -> tuple[Paper, ...]:
    return tuple(map(_paper, sorted(FILES.glob("*.toml"))))


PAPERS = _papers()


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


def measure(row: Row, folder: Path = FOLDER) -> Outcome:
    """Measure a row now, from records where it needs runs.

    Args:
        row: which.
        folder: of the records.
    """
    if row.impossible:
        return Outcome(row, Measured((), Verdict.NOT_POSSIBLE, row.impossible))
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
        return Outcome(row, Measured((), Verdict.NOT_RUN, text))
    except InputError as error:
        if VARIABLE not in str(error):
            raise
        return Outcome(row, Measured((), Verdict.NOT_RUN, f"Its data are missing: {error}"))
    numbers = tuple(_plain(number) for number in found.numbers)
    measured = Measured(numbers, Verdict(found.verdict), found.because)
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
    jobs = [tested, *((row,) for row in listed if row.measure != TESTS)]
    groups = in_parallel(_measure_each, ((job, folder) for job in jobs if job), workers)
    found = {outcome.row.id: outcome for group in groups for outcome in group}
    return [found[row.id] for row in listed]


def _measure_each(rows: tuple[Row, ...], folder: Path) -> list[Outcome]:
    code.prefetch(node for row in rows if row.measure == TESTS for node in row.arguments["nodes"])
    return [measure(row, folder) for row in rows]
