"""What a declared release told, drawn: each number with the interval of its noise."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dpaudit.base.numbers import plain
from dpaudit.reporting.figures.plot import Dot, Figure, Ink, Key, Line, Mark, Plot

MOST_BARS = 50
"""Cells that a figure can tell apart; the table and the files have all."""


MOST_LABELS = 30
"""Rows that are labelled by their keys; more are numbered."""
_LONGEST = 20
_PLAIN = re.compile(r"[\w .,:;/+()%&°–=-]+")
"""Of labels that every font draws, and that cannot be mistaken for markup."""
_LAST = "\u052f"
"""Later letters, such as Chinese ones, are not in the font of a figure."""


def _labels(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The keys of each row; a row whose keys a figure cannot draw has its number."""
    if len(rows) > MOST_LABELS or not all(row["cell"] for row in rows):
        return ()
    return tuple(_label(", ".join(row["cell"]), place) for place, row in enumerate(rows, 1))


def _label(keys: str, place: int) -> str:
    if not _PLAIN.fullmatch(keys) or max(keys) > _LAST:
        return f"row {place}"
    return keys if len(keys) <= _LONGEST else f"{keys[: _LONGEST - 1]}…"


def result_figure(result: Mapping[str, Any], number: int) -> Figure | None:
    """The numbers of a query as points with error bars; None where there are none to compare.

    Args:
        result: of one query, as a certificate records it.
        number: of the query, from 1.
    """
    bars = [
        (place, row)
        for place, row in enumerate(result["rows"], start=1)
        if isinstance(row["value"], int | float) and {"low", "high"} <= row.keys()
    ]
    rows = len(result["rows"])
    if len(bars) < 2 or rows > MOST_BARS:
        return None
    labels = _labels(result["rows"])
    widest = max(row["high"] - row["low"] for _, row in bars)
    return Figure(
        f"result-{number}",
        f"{result['query']}: numbers and their noise",
        f"{rows} numbers, in the order of the table; the widest interval is "
        f"{plain(float(widest))} wide.",
        Plot(
            "released",
            "" if labels else "row of the table",
            tuple(
                Line(np.array([row["low"], row["high"]], float), np.full(2, float(at)), Ink.FIRST)
                for at, row in bars
            ),
            tuple(Dot(float(row["value"]), at, Ink.FIRST, Mark.CIRCLE) for at, row in bars),
            rows=rows,
            labels=labels,
        ),
        (
            Key(Mark.CIRCLE, Ink.FIRST, "released number"),
            Key(Mark.LINE, Ink.FIRST, "holds the number without noise, 95 % for each"),
        ),
    )
