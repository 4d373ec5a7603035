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
from audits.paper_rows.recording import FOLDER, VARIABLE, Recording
from audits.result_table import Record, ResultTable, is_failed
from dpaudit.base.errors import InputError

FILES = Path(__file__).parent / "claims"
MEASURES = "audits.paper_rows.measures"
TIMINGS = frozenset({"local.cheaper"})
"""Measures of processor time, which differ from run to run; the verdict must not."""
_ROUNDING = 1e-4


class _NotRunError(InputError):
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


def measure(row: Row, _: Record | None = None, *, folder: Path = FOLDER) -> Record:
    """What comes out for a row now: numbers, a verdict and why, and what it was read from.

    Args:
        row: which.
        folder: of the records, which are read where the row needs runs.
    """
    read: list[str] = []

    def records(name: str) -> Recording:
        found = Recording.read(name, folder)
        if found is None:
            raise _NotRunError(name)
        read.append(name)
        return found

    try:
        found = Measurement((), Verdict.NO_DATA, row.impossible)
        if not row.impossible:
            found = measuring(row.measure)(records, **row.arguments)
    except _NotRunError as missing:
        found = Measurement((), Verdict.NOT_RUN, f"There is no record of {missing}.")
    except InputError as error:
        if VARIABLE not in str(error):
            raise
        found = Measurement((), Verdict.NOT_RUN, f"Its data are missing: {error}")
    return {
        "verdict": str(found.verdict),
        "because": found.because,
        "numbers": [_plain(number) for number in found.numbers],
        "command": row.command,
        "records": [] if found.verdict is Verdict.NOT_RUN else list(dict.fromkeys(read)),
    }


def _plain(number: Number) -> Record:
    """Python's own numbers, rounded to what is worth writing down."""
    paper = None if number.paper is None else float(number.paper)
    ours, error = (float(f"{value:.6g}") for value in (number.ours, number.error))
    return vars(Number(number.what, ours, error, int(number.runs), paper))


def table_of(path: Path | None, rows: Iterable[Row]) -> ResultTable:
    """Rows, with what was measured of them."""
    return ResultTable(path, {row.id: row for row in rows}, lambda row: row.asked)


def table_in(folder: Path) -> ResultTable:
    """All rows, with what was measured of them before."""
    return table_of(folder / "rows.json", rows_of())


def measure_all(
    rows: Iterable[Row], *, workers: int = 1, folder: Path = FOLDER
) -> dict[str, Record]:
    """What comes out for each row, in their order; it does not depend on the workers.

    Raises:
        InputError: if something stopped a row.
    """
    found = table_of(None, rows).measure(partial(measure, folder=folder), workers=workers)
    for record in found.values():
        if is_failed(record):
            raise InputError(record["error"])
    return found


def changes(outcomes: Mapping[str, Record], folder: Path = FOLDER) -> Iterator[str]:
    """A sentence for each row that says something else than the results on disk.

    Args:
        outcomes: as they are now.
        folder: of the results; where there are none, nothing has changed.
    """
    table = table_in(folder)
    before = table.load()
    for name, now in outcomes.items():
        old = before.get(name)
        if old is None or not table.is_of(name, old):
            continue
        if now["verdict"] == Verdict.NOT_RUN:  # its data are not at hand
            continue
        if old["verdict"] != now["verdict"]:
            yield f"{name}: was {old['verdict']}, is {now['verdict']}."
        elif table.cells[name].measure not in TIMINGS:
            yield from _moved(name, old["numbers"], now["numbers"])


def _moved(row: str, old: list[dict[str, float]], new: list[dict[str, float]]) -> Iterator[str]:
    then = {number["what"]: number for number in old}
    for number in new:
        known = then.get(number["what"])
        if known is None:
            continue
        allowed = ERRORS * known["error"] + _ROUNDING * abs(known["ours"]) + 1e-12
        if abs(number["ours"] - known["ours"]) > allowed:
            yield f"{row}: {number['what']} was {known['ours']:g}, is {number['ours']:g}."
