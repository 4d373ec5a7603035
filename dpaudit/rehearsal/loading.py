"""Whether what is loaded, imported or planned depends on data that it must not read.

*Loading*: what ``load`` makes of one line of a file must not depend on the other lines. Rows that
are scaled by their largest value, or coded by the categories that occur, have left the plan before
the run begins: neighbours of what was loaded do not show it, a file without one line does.

*Import and plan* must not need the data file, as plan and public facts might follow from it.
"""

from __future__ import annotations

import csv
import runpy
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import fields
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from dpaudit.base.finding_table import FindingTable
from dpaudit.certificate import Finding
from dpaudit.plan import Plan
from dpaudit.project import Subject
from dpaudit.rehearsal.columns import Columns
from dpaudit.rehearsal.frames import PLACE, entries, hashable
from dpaudit.rehearsal.watching import apart

FEWEST = 8
"""Rows, so that those of one unit are few."""
SECONDS = 2.0
"""After which no further line is left out."""
LARGEST = 10_000_000
"""Bytes of a file."""
_DELIMITED = {".csv": ",", ".tsv": "\t", ".txt": ","}


def loading_findings(
    subject: Subject, source: str, loaded: Any, seed: int
) -> tuple[list[Finding], int]:
    """Load the file without one line, for the lines of extreme or rare entries.

    One unit's lines may be joined in ``load``, so that some rows change; where many of them do, in
    most of the file, it is not for the unit's sake. A ``load`` that draws what it keeps cannot be
    judged so.

    Args:
        subject: whose :meth:`~dpaudit.project.Subject.load` is tested.
        source: name of the data; only that of a file of lines says anything.
        loaded: what was loaded of it.
        seed: that it was loaded with.

    Returns:
        One finding at most, and how often the file was loaded without one line.
    """
    path = Path(source)
    whole = _rows(loaded) if _readable(path) else None
    if whole is None or len(whole) < FEWEST:
        return [], 0
    lines = path.read_bytes().splitlines(keepends=True)
    if _most_change(whole, _loaded(subject, path, lines, seed + 1)):
        return [], 0
    start, made = time.monotonic(), 0
    for number in _telling(lines, _DELIMITED[path.suffix]):
        rest = lines[:number] + lines[number + 1 :]
        other = _loaded(subject, path, rest, seed)
        made += other is not None
        if _most_change(whole, other) and _changed(whole, other) >= max(3, len(whole) / 10):
            return [FindingTable(__name__)("load-mixes-rows", line=number + 1)], made
        if time.monotonic() - start > SECONDS:
            break
    return [], made


def _readable(path: Path) -> bool:
    with suppress(OSError):
        return path.suffix in _DELIMITED and path.is_file() and path.stat().st_size <= LARGEST
    return False


def _loaded(subject: Subject, path: Path, lines: list[bytes], seed: int) -> list[Any] | None:
    """The rows of a file of the same name with these lines; None if they cannot be loaded."""
    with TemporaryDirectory() as folder:
        copy = Path(folder, path.name)
        copy.write_bytes(b"".join(lines))
        with suppress(Exception):
            return _rows(subject.load(str(copy), np.random.default_rng([seed, 0])))
    return None


def _rows(data: Any) -> list[Any] | None:
    table = Columns.of(data)
    if table is None:
        return None
    columns = [entries(each) for name, each in table.arrays.items() if name != PLACE]
    rows = [tuple(map(hashable, row)) for row in zip(*columns, strict=True)]
    if table.key is None:
        return rows
    keys = table.arrays[table.key]  # a row is the same wherever it lies
    return [rows[place] for place in sorted(range(len(rows)), key=lambda n: str(keys[n]))]


def _most_change(whole: list[Any], other: list[Any] | None) -> bool:
    """Tell whether more than half of the rows are between what begins and what ends alike."""
    if other is None:
        return False
    begins = _alike(whole, other)
    ends = _alike(whole[begins:][::-1], other[begins:][::-1])
    return 2 * (len(whole) - begins - ends) > len(whole)


def _changed(whole: list[Any], other: list[Any] | None) -> int:
    """The least number of rows that changed, wherever those stood that are gone or new."""
    longer, shorter = sorted((whole, other or []), key=len, reverse=True)
    above, below = (
        np.cumsum([0, *(x != y for x, y in zip(part, shorter, strict=False))])
        for part in (longer, longer[len(longer) - len(shorter) :])
    )
    return int((above - below).min() + below[-1])


def _alike(one: list[Any], two: list[Any]) -> int:
    pairs = enumerate(zip(one, two, strict=False))
    return next((place for place, (x, y) in pairs if x != y), min(len(one), len(two)))


def _telling(lines: list[bytes], delimiter: str) -> Iterator[int]:
    """The last line, and those with the extremes and the rarest entry of each column; no header."""
    last = len(lines) - 1
    table = list(
        csv.reader((line.decode(errors="replace") for line in lines[1:]), delimiter=delimiter)
    )
    found = [last]
    for column in zip(*table, strict=False):
        try:
            numbers = [float(entry) for entry in column]
            places = [int(np.argmax(numbers)), int(np.argmin(numbers))]
        except ValueError:
            often = Counter(column)
            places = [min(range(len(column)), key=lambda row: (often[column[row]], column[row]))]
        found += [place + 1 for place in places]
    yield from dict.fromkeys(number for number in found if 0 < number <= last)


Planned = tuple[list[Path], dict[str, Any] | None]
"""What was to be opened, and the plan as a record; None where there is none without it."""


def public_findings(
    subject: Subject, plan: Plan, sources: Iterable[str]
) -> tuple[list[Finding], int]:
    """Import a subject again and ask for its plan, in a process that cannot open its data files.

    Returns:
        A finding at most, and how often the same plan came without a look at the data.
    """
    paths = {Path(each).resolve() for each in sources if Path(each).is_file()}
    if not paths or type(subject).__module__ == "__main__":
        return [], 0
    made: Planned | None = apart(partial(_planned, subject, paths))
    wanted, again = made or ([], None)
    found = FindingTable(__name__)
    if again is not None and again != plan.to_dict():
        return [found("plan-follows-data")], 0
    return ([found("public-reads-data")], 0) if wanted else ([], int(again is not None))


def _planned(subject: Any, paths: set[Path]) -> Planned:
    """The plan of the class anew, with the fields that are not as usual: defaults may be others."""
    wanted, usual = list[Path](), type(subject)()

    def heard(event: str, arguments: tuple[Any, ...]) -> None:
        if (
            event in ("open", "sqlite3.connect")
            and (path := Path(str(arguments[0])).resolve()) in paths
        ):
            wanted.append(path)
            raise FileNotFoundError(path)

    names = [each.name for each in fields(subject) if each.init]
    known = {name: getattr(subject, name) for name in names}
    given = {name: each for name, each in known.items() if repr(each) != repr(getattr(usual, name))}
    sys.addaudithook(heard)  # this process ends with the answer
    with suppress(Exception):
        return wanted, _imported(type(subject))(**given).plan().to_dict()
    return wanted, None


def _imported(kind: type) -> Any:
    """The class anew, with all that its module imports from its own folder."""
    path = Path(str(sys.modules[kind.__module__].__file__))
    for name, each in list(sys.modules.items()):
        beside = Path(getattr(each, "__file__", None) or "/").parent == path.parent
        if beside and name not in ("__main__", kind.__module__):
            del sys.modules[name]
    return runpy.run_path(str(path), run_name=kind.__module__)[kind.__name__]
