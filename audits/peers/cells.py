"""The cells: which tool is given which row of the catalogue, how often, and what comes out.

All tools are given the same outputs, drawn beforehand. What a tool is, what it is told and where it
runs stands in ``tools.toml``. Each cell has as many audits as a few processor seconds allow.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from audits.catalogue import ENTRIES
from audits.catalogue.entry import Entry
from audits.catalogue.measuring import CONFIDENCE, audit_entry
from audits.peers import rows
from audits.result_table import Environment, Record, ResultTable, processor_time
from dpaudit.auditing.distinguishing.scores import Identity, score_outputs
from dpaudit.base import files
from dpaudit.base.errors import DpAuditError, InputError

HERE = Path(__file__).parent
PLACE = Path("out/peers")
RUNS = (1_000, 10_000, 100_000)
TAKES = ("all", "pure", "gaussian", "curve")


@dataclass(frozen=True)
class Row:
    """A row of the catalogue.

    Attributes:
        name: of the catalogue's entry.
        label: what the page calls it.
        true_epsilon: at the claim's δ, of this pair; by default what the catalogue says.
        sign: of the score that the tools are told, so that x has the larger ones.
        gaussian: whether a Gaussian mechanism is claimed, for tools that ask for the family.
    """

    name: str
    label: str
    true_epsilon: float | None = None
    sign: float = 1.0
    gaussian: bool = False

    @cached_property
    def entry(self) -> Entry:
        """The entry of that name; InputError if there is none, or it is audited without samples."""
        known = (*ENTRIES, *rows.ENTRIES)
        found = [each for each in known if each.name == self.name and each.release is not None]
        if not found:
            raise InputError(f"row {self.name!r} is no sampled entry of the catalogue; name one.")
        return found[0]

    @property
    def truth(self) -> float:
        """The true ε of this pair at the claim's δ."""
        return self.entry.true_epsilon if self.true_epsilon is None else self.true_epsilon

    def draw(self, runs: int, seed: int, file: Path) -> None:
        """Write outputs and scores of one audit, which depend on row, runs and seed alone."""
        if runs < 100 or seed < 0:
            raise InputError(f"runs = {runs}, seed = {seed}; give runs >= 100 and seed >= 0.")
        release, score = self.entry.release, self.entry.score or Identity()
        rng = np.random.default_rng([seed, runs, *self.name.encode()])
        drawn = {
            name: np.asarray(release(data, runs, rng), dtype=np.float64)
            for name, data in (("x", self.entry.x), ("x_prime", self.entry.x_prime))
        }
        scores = {f"score_{n}": self.sign * score_outputs(score, side) for n, side in drawn.items()}
        np.savez(file, **scores, **{name: side.reshape(runs, -1) for name, side in drawn.items()})


_TABLES = files.read_toml(HERE / "tools.toml", what="tools")
ROWS = tuple(Row(**fields) for fields in _TABLES["row"])


@dataclass(frozen=True)
class Tool:
    """A tool with one of its settings: a table of ``tools.toml``, which says what is what."""

    name: str
    version: str
    settings: str
    knows: str
    setting: str = ""
    rows: str = "all"
    adapter: str = ""
    environment: str = ""
    packages: tuple[str, ...] = ()
    bare: tuple[str, ...] = ()
    url: str = ""
    commit: str = ""
    path: str = ""

    def __post_init__(self) -> None:
        if self.rows not in TAKES:
            raise InputError(f"rows = {self.rows!r} of {self.name!r}; give one of {TAKES}.")
        if self.adapter and not (HERE / "adapters" / f"{self.adapter}.py").exists():
            raise InputError(f"adapter {self.adapter!r} of {self.name!r} is no file in adapters.")

    @property
    def taken(self) -> list[Row]:
        """The rows that can be given to it."""
        if self.rows == "pure":
            return [row for row in ROWS if row.entry.claim.delta == 0]
        if self.rows == "gaussian":
            return [row for row in ROWS if row.gaussian]
        return [row for row in ROWS if self.rows == "all" or row.entry.curve]

    @property
    def source(self) -> Path:
        """Where its checkout is to be, or the part of it that is imported."""
        return PLACE / self.environment / "source" / self.path

    def python(self) -> Path:
        """The interpreter of its environment, made if it is not there; InputError if it fails."""
        if self.commit and not self.source.is_dir():
            raise InputError(f"{self.source} is missing; check {self.url} out at {self.commit}.")
        return Environment(PLACE / self.environment / "venv", self.packages, self.bare).python()


def read(tables: list[dict[str, Any]]) -> tuple[Tool, ...]:
    """Tools from tables; InputError if a table is wrong, or a name comes twice."""
    try:
        lists = [{k: tuple(v) if isinstance(v, list) else v for k, v in t.items()} for t in tables]
        tools = tuple(Tool(**table) for table in lists)
    except TypeError as error:
        raise InputError(f"a tool has a wrong or missing key: {error}.") from None
    if len({tool.name for tool in tools}) < len(tools):
        raise InputError("two tools have one name; give each its own.")
    return tools


TOOLS = read(_TABLES["tool"])


@dataclass(frozen=True)
class Cell:
    """One tool on one row.

    Attributes:
        tool: which.
        row: which.
        runs: on each side.
    """

    tool: Tool
    row: Row
    runs: int

    @property
    def name(self) -> str:
        """Of its record."""
        return f"{self.tool.name} | {self.row.name} | {self.runs}"

    @property
    def asked(self) -> Record:
        """What a record of it repeats."""
        return {"version": self.tool.version, "claim": str(self.row.entry.claim)}


CELLS = {
    cell.name: cell
    for runs in RUNS  # the quick ones of all tools first
    for tool in TOOLS
    for cell in (Cell(tool, row, runs) for row in tool.taken)
}


def table_of(results: Path) -> ResultTable:
    """All cells, with what was measured of them."""
    return ResultTable(results, CELLS, lambda cell: cell.asked)


SEEDS, SEEDS_RIGHT = 10, 60
"""Audits of a wrong row and of a right one, at most."""
LEAST, ENOUGH = 3, 8.0
"""Audits of a slow tool at least, and the processor seconds after which there is no further one;
a cell that was stopped earlier is gone on with."""
FAILED = "not measured"
"""Key of the tools that could not be run, and why."""
Audit = Callable[[Row, int, int], Record]


class ToolEndedError(DpAuditError):
    """A tool is gone, and cannot be asked for further cells."""


def own(tool: Tool, row: Row, runs: int, seed: int) -> Record:
    """One audit by dpaudit: bound, verdict and processor time, in which the runs are drawn too."""
    score = None if tool.setting == "learned" else row.entry.score
    curve = row.entry.curve if tool.setting == "curve" else None
    entry, before = replace(row.entry, score=score, curve=curve, runs=runs), processor_time()
    record = audit_entry(entry, seed, confidence=CONFIDENCE, whole=True)
    seconds = processor_time() - before
    return {"bound": record.epsilon_lower or 0.0, "rejected": record.refuted, "seconds": seconds}


@contextlib.contextmanager
def auditor(tool: Tool) -> Iterator[Audit]:
    """What makes one audit: of a row, with so many runs a side, by a seed."""
    if not tool.adapter:
        own(tool, ROWS[0], RUNS[0], 0)  # takes what is loaded once
        yield partial(own, tool)
        return
    adapter, tape = HERE / "adapters" / f"{tool.adapter}.py", PLACE / f"{os.getpid()}.npz"
    command = [tool.python(), HERE / "worker.py", adapter, tool.source]
    with (PLACE / "tools.log").open("a") as log:
        worker = subprocess.Popen(command, stdin=-1, stdout=-1, stderr=log, text=True)

    def audit(row: Row, runs: int, seed: int) -> Record:
        row.draw(runs, seed, tape)
        claim = row.entry.claim
        task = {"file": str(tape), "seed": seed, "epsilon": claim.epsilon, "delta": claim.delta}
        task |= {"confidence": CONFIDENCE, "setting": tool.setting, "gaussian": row.gaussian}
        with contextlib.suppress(BrokenPipeError):
            worker.stdin.write(json.dumps(task) + "\n")
            worker.stdin.flush()
        answer = worker.stdout.readline()
        if not answer:
            raise ToolEndedError(f"{tool.name} ended by itself; {PLACE / 'tools.log'} says why.")
        return json.loads(answer)

    try:
        yield audit
    finally:
        worker.communicate()
        tape.unlink(missing_ok=True)


def measure(table: ResultTable, *, runs: Sequence[int] = RUNS, only: str = "") -> None:
    """Audit what is missing.

    Args:
        table: of the cells.
        runs: numbers of runs on each side.
        only: tools whose name contains this text.
    """
    for tool in (each for each in TOOLS if only in each.name):
        cells = [each for each in CELLS.values() if each.tool is tool and each.runs in runs]
        missing = [each.name for each in cells if needs_audit(table.known(each.name), each.row)]
        if not missing:
            continue
        failed = table.load().get(FAILED, {})
        try:
            with auditor(tool) as audit:
                if failed.pop(tool.name, None) is not None:
                    table.keep(FAILED, failed)
                table.measure(partial(audit_cell, audit), missing)
        except DpAuditError as error:
            table.keep(FAILED, failed | {tool.name: str(error)})


def forget(table: ResultTable, *, runs: Sequence[int], only: str, row: str) -> None:
    """Leave out what was measured of some cells, which are then missing.

    Args:
        table: of the cells.
        runs: numbers of runs on each side.
        only: tools whose name contains this text.
        row: rows whose label contains this text.

    Raises:
        InputError: if there is no such cell.
    """
    gone = {
        name
        for name, cell in CELLS.items()
        if cell.runs in runs and only in cell.tool.name and row in cell.row.label
    }
    if not gone:
        raise InputError(f"no tool {only!r} has a row {row!r}; give parts of their names.")
    table.write({name: found for name, found in table.load().items() if name not in gone})


def needs_audit(cell: Record, row: Row) -> bool:
    """Whether a cell is to have a further audit."""
    done, used = len(cell.get("seconds", ())), sum(cell.get("seconds", ()))
    most = SEEDS_RIGHT if row.entry.right else SEEDS
    return "error" not in cell and (done < LEAST or (done < most and used < ENOUGH))


def audit_cell(audit: Audit, cell: Cell, known: Record) -> Record:
    """All audits of one cell, by seeds from 0 on, beginning where the known ones end."""
    found = {"bounds": [], "refuted": 0, "seconds": []} | known
    while needs_audit(found, cell.row):
        answer = audit(cell.row, cell.runs, len(found["seconds"]))
        if "error" in answer:
            return answer
        found["bounds"] = [*found["bounds"], round_down(answer["bound"])]
        found["refuted"] += answer["rejected"]
        found["seconds"] = [*found["seconds"], float(f"{answer['seconds']:.3g}")]
    return found


def round_down(bound: float | str | None) -> float | str | None:
    """A bound to four decimals, never above it; an infinite one as a word, for JSON."""
    if bound is None or math.isinf(float(bound)):
        return None if bound is None else "infinity"
    return math.floor(float(bound) * 1e4) / 1e4
