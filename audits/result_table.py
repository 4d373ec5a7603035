"""Tables of measured results: cells that are asked for, what was found of each, and their page.

Other auditors, libraries, the catalogue of mechanisms, the papers' experiments and statements are
tables of this one kind. A cell is measured by a function of itself alone, in whatever process; what
is found is one line of JSON, which repeats what was asked and is written before the next. So a
table that was interrupted goes on, is the same from any number of workers, and takes no record of
another cell for its own. Tools of others run in an :class:`Environment` and answer in JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from jinja2 import Environment as Jinja
from jinja2 import FileSystemLoader, PackageLoader, StrictUndefined

from dpaudit.auditing.execution import Execution, workers
from dpaudit.base import files
from dpaudit.base.errors import DpAuditError, InputError
from dpaudit.reporting.text import escaped, strict_environment

_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False)
LONGEST = 600
"""Seconds that a command of a cell may take."""
Record = dict[str, Any]
Measure = Callable[[Any, Record], Record]
"""From a cell, and what is known of it already, to what is found."""


# -- commands --------------------------------------------------------------------------------------


def say(line: str) -> None:
    """Write a line of progress, and whatever else is no result."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def show(line: str) -> None:
    """Write a line of what was found, as soon as it is known."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def run(command: Callable[[], int]) -> int:
    """The exit code of a command; 3 for wrong input, which is said in a sentence."""
    try:
        return command()
    except DpAuditError as error:
        say(str(error))
        return 3


def processor_time() -> float:
    """Seconds of this process and of its children; others may use the machine too."""
    return sum(os.times()[:4])


# -- cells and records -----------------------------------------------------------------------------


def is_failed(record: Record) -> bool:
    """Whether a record says what stopped a cell; of another kind is ``error`` as a number."""
    return isinstance(record.get("error"), str)


def _nothing(_: Any) -> Record:
    return {}


@dataclass(frozen=True)
class ResultTable:
    """Cells, and the file of what was found of them.

    Attributes:
        path: of the records, an object of JSON with a line for each; None to keep none.
        cells: what is measured, by name, in the order of the file.
        asked: the facts of a cell that its record repeats. A record with others is of another cell.
    """

    path: Path | None
    cells: Mapping[str, Any]
    asked: Callable[[Any], Record] = _nothing

    def load(self) -> dict[str, Record]:
        """All records of the file, none if there is not a file.

        Raises:
            InputError: if it holds no table.
        """
        if self.path is None or not self.path.exists():
            return {}
        table = files.load_json(self.path, what="results")
        if not isinstance(table, dict) or not all(isinstance(x, dict) for x in table.values()):
            raise InputError(
                f"results {self.path} hold no table of cells; measure into another file."
            )
        return table

    def is_of(self, name: str, record: Record) -> bool:
        """Whether a record is of what the cell of that name asks for now."""
        return all(record.get(key) == fact for key, fact in self.asked(self.cells[name]).items())

    def found(self) -> dict[str, Record]:
        """The records of the cells that were measured, in the order of the cells.

        Raises:
            InputError: if one is of another cell.
        """
        table = self.load()
        known = {name: table[name] for name in self.cells if name in table}
        for name, record in known.items():
            if not self.is_of(name, record):
                raise InputError(
                    f"results of {name!r} are of another cell, which asked something else; "
                    "measure it anew."
                )
        return known

    def known(self, name: str) -> Record:
        """What was found of a cell already; nothing where there is no record, or another cell's."""
        record = self.load().get(name, {})
        return record if self.is_of(name, record) else {}

    def missing(self) -> list[str]:
        """The cells without a record of their own, or with one that says what stopped it."""
        table = self.load()
        return [
            name
            for name in self.cells
            if name not in table or is_failed(table[name]) or not self.is_of(name, table[name])
        ]

    def measure(
        self,
        measure: Measure,
        names: Iterable[str] | None = None,
        *,
        workers: int = 1,
        told: Callable[[str, Record], object] = lambda name, record: None,
    ) -> dict[str, Record]:
        """Measure cells, and keep each record as soon as it and those before it are there.

        Args:
            measure: a function of the cell and of what is known of it; its InputError is kept as
                what stopped it, under ``error``.
            names: of the cells; all where not given.
            workers: processes; the records do not depend on them.
            told: is given each record.
        """
        chosen, measured = list(self.cells if names is None else names), dict[str, Record]()
        known = [(name, self.known(name)) for name in chosen]
        task = partial(_measured, dict(self.cells), measure)
        for name, found in zip(chosen, in_order(task, known, workers), strict=True):
            measured[name] = self.asked(self.cells[name]) | found
            self.keep(name, measured[name])
            told(name, measured[name])
        return measured

    def keep(self, name: str, record: Record) -> None:
        """Write a record beside those that are there."""
        if self.path is not None:
            self.write(self.load() | {name: record})

    def write(self, table: Mapping[str, Record]) -> None:
        """Write records in place of all that are there; the file is whole at any time."""
        order = dict.fromkeys([*(cell for cell in self.cells if cell in table), *table])
        lines = (f"{_JSON.encode(each)}: {_JSON.encode(table[each])}" for each in order)
        assert self.path is not None
        files.write(self.path, "{\n" + ",\n".join(lines) + "\n}\n")


def _measured(cells: Mapping[str, Any], measure: Measure, asked: tuple[str, Record]) -> Record:
    name, known = asked
    try:
        found = measure(cells[name], known)
    except InputError as error:
        return {"error": str(error)}
    try:
        _JSON.encode(found)
    except ValueError:
        return {"error": "what was found holds a number that is not finite."}
    return found


def in_order(task: Callable[[Any], Any], items: Sequence[Any], processes: int) -> Iterator[Any]:
    """What a task gives for each item, in their order, whatever the number of processes."""
    execution = Execution(workers=processes)
    with workers(execution.updated({"workers": min(processes, max(1, len(items)))})) as mapped:
        yield from mapped(task, items)


# -- tools of others -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Environment:
    """An environment of its own, for what cannot stand beside the project's own packages.

    Attributes:
        home: its folder; none for this interpreter.
        packages: from PyPI, never a dependency of the project.
        bare: those of them that are installed without what they depend on, by name.
        project: whether this project is installed there too.
    """

    home: Path | None = None
    packages: tuple[str, ...] = ()
    bare: tuple[str, ...] = ()
    project: bool = False

    def python(self) -> Path:
        """Its interpreter, made if it is not there.

        Raises:
            InputError: if it cannot be made.
        """
        if self.home is None:
            return Path(sys.executable)
        python, made = self.home / "bin/python", self.home / "made.json"
        if made.exists() and files.load_json(made, what="packages") == list(self.packages):
            return python
        say(f"making {self.home} …")
        venv.create(self.home, with_pip=True, clear=True)
        bare = [each for each in self.packages if each.split("=")[0] in self.bare]
        whole = [*["-e", "."] * self.project, *(x for x in self.packages if x not in bare)]
        for options in (["--no-deps", *bare] if bare else [], whole):
            command = [str(python), "-m", "pip", "install", "-q", *options]
            if options and subprocess.run(command, stdout=sys.stderr, check=False).returncode:
                raise InputError(f"{' '.join(command)} failed; its output says why.")
        files.write(made, json.dumps(self.packages))
        return python

    def ask(self, module: str, task: Record, longest: float = LONGEST) -> Record:
        """What a module answers to a task on its stdin, both in JSON."""
        return answer([str(self.python()), "-m", module], json.dumps(task), longest)


def answer(command: Sequence[str], given: str = "", longest: float = LONGEST) -> Record:
    """The JSON that a command prints.

    Raises:
        InputError: if it prints none, or takes too long.
    """
    here = os.pathsep.join([str(Path.cwd()), str(Path.cwd() / "algorithms")])
    own = {**os.environ, "PYTHONPATH": here}
    try:
        done = subprocess.run(
            command, input=given, capture_output=True, text=True, timeout=longest, env=own
        )
        return json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        raise InputError(f"it took more than {longest:g} s.") from None
    except ValueError:
        said = (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[-1]
        raise InputError(f"it printed no answer: {said:.300}") from None


# -- pages -----------------------------------------------------------------------------------------


def render(template: Path, *filters: Callable[..., str], **values: Any) -> str:
    """A page from a template beside the code, which passes over no missing value.

    HTML extends the pages of any project and escapes what it shows; Markdown shows what it is
    given, and passes foreign text through the filter ``escaped``. Filters go by their names.
    """
    if template.suffixes[-2] == ".html":
        here, pages = FileSystemLoader(template.parent), PackageLoader("dpaudit.workflow")
        own = strict_environment(here, pages)
    else:
        own = Jinja(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    own.filters |= {each.__name__.lstrip("_"): each for each in (escaped, *filters)}
    return own.from_string(template.read_text(encoding="utf-8")).render(**values)
