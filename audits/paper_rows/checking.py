"""Whether what was computed now is what the page says already."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from audits.paper_rows.measured import ERRORS, Verdict
from audits.paper_rows.recording import FOLDER
from audits.paper_rows.rows import Outcome

__all__ = ["RESULTS", "changes"]

RESULTS = "rows.json"
TIMINGS = frozenset({"local.cheaper"})
"""Measures of processor time, which differ from run to run; the verdict must not."""
_ROUNDING = 1e-4


def changes(outcomes: Iterable[Outcome], folder: Path = FOLDER) -> Iterator[str]:
    """A sentence for each row that says something else than the results on disk.

    Args:
        outcomes: as they are now.
        folder: of the results; where there are none, nothing has changed.
    """
    path = folder / RESULTS
    before = json.loads(path.read_text(encoding="utf-8"))["rows"] if path.exists() else {}
    for outcome in outcomes:
        row, now = outcome.row, outcome.to_dict()
        old = before.get(row.id)
        if old is None or (old["claim"], old["place"]) != (row.claim, row.place):
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
