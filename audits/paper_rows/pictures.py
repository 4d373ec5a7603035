"""The papers' own panels as small SVG pictures, which take the colours of the page around them.

Which curves stand in one of them says ``pictures.toml``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

import numpy as np

from audits.paper_rows.measures.outsourced import TABLES
from audits.paper_rows.measures.outsourced import label as curator_label
from audits.paper_rows.recording import Cell, Recording, experiments
from audits.result_table import render
from dpaudit.base import files
from private_bo.gp.types import Array

WIDTH, HEIGHT = 350, 210
LEFT, RIGHT, TOP, BOTTOM = 52, 18, 22, 34
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9", "#7f7f7f")
"""Okabe and Ito's, which most colour-blind readers tell apart."""
_LEGEND = 14
_TRUST = Path(__file__).parents[2] / "docs" / "examples" / "regret.json"


@dataclass(frozen=True, eq=False)
class Line:
    """One curve.

    Attributes:
        label: for the legend.
        x: where.
        mean: of the trials.
        error: standard error; drawn as a band.
        dashed: whether it is what the paper prints.
    """

    label: str
    x: Array
    mean: Array
    error: Array = field(default_factory=lambda: np.zeros(1))
    dashed: bool = False

    @classmethod
    def of(cls, label: str, cell: Cell) -> Line:
        """The curve of a cell."""
        return cls(label, cell.rounds, cell.mean, cell.error)


def drawn(title: str, lines: Sequence[Line], x: str, y: str) -> str:
    """A picture of curves with bands of one standard error.

    Args:
        title: above it.
        lines: the curves.
        x: name of the horizontal axis.
        y: name of the vertical axis.
    """
    first, last = (
        float(end(np.concatenate([line.x for line in lines]))) for end in (np.min, np.max)
    )
    top = max(float((line.mean + line.error).max()) for line in lines) or 1.0
    floor, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    across, up = (right - LEFT) / max(last - first, 1e-12), (floor - TOP) / top

    def place(at: Array, value: Array) -> str:
        xs, ys = LEFT + (at - first) * across, floor - np.maximum(value, 0.0) * up
        return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(xs, ys, strict=True))

    def band(line: Line) -> str:
        around = np.concatenate([line.mean + line.error, (line.mean - line.error)[::-1]])
        return place(np.concatenate([line.x, line.x[::-1]]), around) if line.error.any() else ""

    return render(
        Path(__file__).parent / "templates" / "picture.svg.j2",
        *(escape, _tick),
        title=title,
        x=x,
        y=y,
        width=WIDTH,
        height=HEIGHT + _LEGEND * len(lines) + 4,
        below=HEIGHT,
        left=LEFT,
        right=right,
        top=TOP,
        floor=floor,
        legend=_LEGEND,
        upwards=[(value, floor - value * up) for value in _ticks(0.0, top, 4)],
        across=[(value, LEFT + (value - first) * across) for value in _ticks(first, last, 5)],
        lines=[
            (COLOURS[number % len(COLOURS)], line, place(line.x, line.mean), band(line))
            for number, line in enumerate(lines)
        ],
    )


def _ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers between these, at most so many and one."""
    step = (high - low) / most or 1.0
    scale = 10.0 ** math.floor(math.log10(step))
    step = next(each * scale for each in (1, 2, 5, 10) if each * scale >= step * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def _tick(value: float) -> str:
    if abs(value) >= 1e4:
        return f"{value / 1000:g}k"
    return f"{round(value, 6):g}"


# -- which curves stand in one picture, as in the papers -------------------------------------------


SHOWN: Mapping[str, Mapping[str, Sequence[str]]] = files.read_toml(
    Path(__file__).parent / "pictures.toml", what="pictures"
)
"""Cells by title, of each experiment."""
_RENAMED = {"S = 11": "S = 11, q = 0.25, z = 1", "S = 16": "S = 16, q = 0.25, z = 1"}


def pictures_of(records: Mapping[str, Recording], name: str) -> Iterator[str]:
    """The pictures of one experiment; none where there is no record of it."""
    record = records.get(name)
    if record is None:
        return
    known = experiments()[name]
    for title, cells in SHOWN[name].items():
        lines = [Line.of(_name(cell), record.cells[cell]) for cell in cells if cell in record.cells]
        if lines:
            yield drawn(title, lines, known.rounds, known.regret)
    for exponent, printed in TABLES.get(name.removeprefix("outsourced-"), {}).items():
        yield _table_of_r(record, exponent, printed)


def picture_of_trust() -> str:
    """Regret against ε by trust model, ours and published, on functions that are of no paper."""
    record = files.load_json(_TRUST, what="record")
    lines = []
    for name, cells in record.items():
        shares = 100 * np.array(list(cells.values()))
        error = shares.std(axis=1, ddof=1) / math.sqrt(shares.shape[1])
        x = np.array([float(epsilon) for epsilon in cells])
        lines.append(Line(name, x, shares.mean(axis=1), error, dashed="published" in name))
    return drawn("Regret by trust model", lines, "ε of one user", "% of random play")


def _name(cell: str) -> str:
    """Without the panel that all curves of a picture share."""
    return _RENAMED.get(cell, cell.split(": ", 1)[-1])


def _table_of_r(record: Recording, exponent: float, printed: Iterable[tuple[int, float]]) -> str:
    """Regret against r, with what the paper prints."""
    pairs = list(printed)
    r = np.array([float(each) for each, _ in pairs])
    found = [record.cell(curator_label(exponent, each)).regret for each, _ in pairs]
    ours = Line("ours", r, *np.array(found).T)
    paper = Line("printed", r, np.array([value for _, value in pairs]), dashed=True)
    number = [key for table in TABLES.values() for key in table].index(exponent) + 1
    return drawn(f"Table {number}: ε = e^{exponent:g}", [ours, paper], "r", "simple regret")
