"""The cells: which tool is given which row of the catalogue, with how many runs a side.

All tools are given the same outputs, drawn beforehand. What a tool is, what it is told and where it
runs stands in ``tools.toml``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from audits.catalogue import ENTRIES
from audits.catalogue.entry import Entry
from audits.result_table import Environment, Record, ResultTable
from dpaudit.auditing.distinguishing.scores import Identity, score_outputs
from dpaudit.base import files
from dpaudit.base.errors import InputError

HERE = Path(__file__).parent
PLACE = Path("out/peers")
RUNS = (1_000, 10_000, 100_000)
TAKES = ("all", "pure", "gaussian", "curve")
LEE, CHEN, LYU = 7.0175, 7.3477, 0.6349
"""The sparse vectors' ε of these very pairs: the largest absolute log ratio of all patterns of
answers, each integrated over the threshold's noise; rounded up. The test integrates them again."""


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
        found = [each for each in ENTRIES if each.name == self.name and each.release is not None]
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


ROWS = (
    Row("Laplace, half the scale", "Laplace, half the scale", sign=-1.0),
    Row("Laplace, 0.9 of the scale", "Laplace, 0.9 of the scale", sign=-1.0),
    Row("histogram, scale ε for 1/ε", "histogram, scale ε for 1/ε"),
    Row("Gaussian, half of σ", "Gaussian, half of σ", sign=-1.0, gaussian=True),
    Row("subsampled Gaussian that never samples", "subsampled Gaussian, never sampling"),
    Row("noisy max that returns the value", "noisy max, returns the value", sign=-1.0),
    Row("sparse vector, Lee and Clifton, c = 5", "sparse vector, Lee and Clifton", LEE),
    Row("sparse vector, Stoddard: no query noise", "sparse vector, Stoddard", math.inf),
    Row("sparse vector, Chen: no cutoff", "sparse vector, Chen", CHEN),
    Row("sparse vector, Roth's notes: releases the noisy query", "sparse vector, Roth (rare leak)"),
    Row("Laplace", "Laplace (right)", sign=-1.0),
    Row("analytic Gaussian", "Gaussian (right)", sign=-1.0, gaussian=True),
    Row("sparse vector, Lyu's Algorithm 1", "sparse vector, Lyu (right)", LYU),
)


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


TOOLS = read(files.read_toml(HERE / "tools.toml", what="tools")["tool"])


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
