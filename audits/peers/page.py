"""The page: what was measured, in tables; its sentences stand in ``page.md.j2``.

Counts become rates with intervals at the moment of printing, and ratios of runs their median.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from statistics import median

from audits.catalogue.measuring import CONFIDENCE, Rate
from audits.peers.cells import HERE, ROWS, RUNS, TOOLS, Cell, Row, Tool
from audits.result_table import Record, render
from dpaudit.base.errors import InputError

OURS = TOOLS[0]
RIGHT = tuple(row for row in ROWS if row.entry.right)
WRONG = tuple(row for row in ROWS if not row.entry.right)
NOTHING = {"bounds": (), "refuted": 0, "seconds": ()}


@dataclass(frozen=True)
class PeerResults:
    """The cells of one file of results; counts are of hits and of trials."""

    table: dict[str, Record]

    def cell(self, tool: Tool, row: Row, runs: int) -> Record:
        """What was measured; nothing if it was not, or failed, and an InputError if it is wrong."""
        name = Cell(tool, row, runs).name
        found = self.table.get(name, {"error": "missing"})
        if "error" in found:
            return NOTHING
        try:
            if found["bounds"] and 0 <= found["refuted"] <= len(found["seconds"]):
                return {**found, "bounds": [float(b) for b in found["bounds"] if b is not None]}
        except (TypeError, KeyError, ValueError):
            pass
        raise InputError(f"results of {name!r} need bounds, refuted and seconds; measure it anew.")

    def rate(self, tool: Tool, rows: Iterable[Row], sizes: Iterable[int] = RUNS) -> Rate:
        """Refutations among audits."""
        cells = [self.cell(tool, row, size) for row in rows for size in sizes]
        return Rate(sum(c["refuted"] for c in cells), sum(len(c["seconds"]) for c in cells))

    def above(self, tool: Tool, rows: Iterable[Row] = ROWS) -> Rate:
        """Bounds above the true ε among bounds, where the true ε is finite."""
        pairs = [(row.truth, self.cell(tool, row, n)["bounds"]) for row in rows for n in RUNS]
        over = [bound > truth for truth, bounds in pairs if truth < math.inf for bound in bounds]
        return Rate(sum(over), len(over))

    def ratios(self, tool: Tool, rows: Iterable[Row], sizes: Iterable[int] = RUNS) -> list[float]:
        """Median processor times over dpaudit's, of cells where both are known."""
        cells = [(row, size) for row in rows for size in sizes]
        times = [[self.cell(each, *cell)["seconds"] for each in (tool, OURS)] for cell in cells]
        return [median(mine) / median(ours) for mine, ours in times if mine and ours]

    def bound(self, tool: Tool, row: Row, runs: int) -> float:
        """The median lower bound; −1 if there is none."""
        return median(self.cell(tool, row, runs)["bounds"] or [-1.0])

    def holds(self, tool: Tool) -> bool:
        """Whether what was seen of its errors agrees with the stated confidence."""
        counts = (self.rate(tool, RIGHT), self.above(tool))
        return all(count.interval[0] <= 1 - CONFIDENCE for count in counts)

    def better(self) -> Iterator[tuple[Row, int, Tool]]:
        """Where another tool, whose errors are as stated, refutes more or has the higher bound."""
        others = [tool for tool in TOOLS if tool.adapter and self.holds(tool)]
        for row, size in ((row, size) for row in WRONG for size in RUNS):
            standings = [(self._standing(tool, row, size), tool) for tool in others]
            best, tool = max(standings, key=lambda pair: pair[0])
            if best > self._standing(OURS, row, size):
                yield row, size, tool

    def _standing(self, tool: Tool, row: Row, runs: int) -> tuple[float, float]:
        rate = self.rate(tool, (row,), (runs,))
        share = round(rate.hits / rate.trials, 1) if rate.trials else -1.0
        return share, self.bound(tool, row, runs)


def _count(rate: Rate) -> str:
    return f"{rate.hits}/{rate.trials}" if rate.trials else "–"


def _portion(rate: Rate) -> str:
    return f"{100 * rate.hits / rate.trials:.0f} %" if rate.trials else "–"


def _share(rate: Rate) -> str:
    low, high = (100 * end for end in rate.interval)
    return f"{rate.hits} of {rate.trials} ({low:.1f}–{high:.1f} %)" if rate.trials else "–"


def _number(value: float) -> str:
    if value < 0:
        return "–"
    return "∞" if math.isinf(value) else f"{math.floor(value * 1000) / 1000:g}"


def _times(ratios: list[float]) -> str:
    ratio = median(ratios or [-1.0])
    return "–" if ratio < 0 else f"×{ratio:.0f}" if ratio >= 100 else f"×{ratio:.2g}"


def page(table: dict[str, Record], failed: Record) -> str:
    """The page of cells, and of what failed and why, as Markdown; InputError for a wrong cell."""
    failures = {name: found["error"] for name, found in table.items() if "error" in found}
    measured = PeerResults(table)
    return render(
        HERE / "page.md.j2",
        *(_count, _number, _portion, _share, _times),
        tools=TOOLS,
        rows=ROWS,
        right=RIGHT,
        wrong=WRONG,
        sizes=list(zip(RUNS, ("10³", "10⁴", "10⁵"), strict=True)),
        measured=measured,
        broken=[tool for tool in TOOLS if not measured.holds(tool)],
        ours=OURS,
        failures={**failures, **failed},
    )
