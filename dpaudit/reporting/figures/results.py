"""What a declared release told, drawn: each number with the interval of its noise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dpaudit.base.numbers import plain
from dpaudit.reporting.figures.plot import Dot, Figure, Ink, Key, Line, Mark, Plot

MOST_BARS = 50
"""Cells that a figure can tell apart; the table and the files have all."""


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
    widest = max(row["high"] - row["low"] for _, row in bars)
    return Figure(
        f"result-{number}",
        f"{result['query']}: numbers and their noise",
        f"{rows} numbers, in the order of the table; the widest interval is "
        f"{plain(float(widest))} wide.",
        Plot(
            "released",
            "row of the table",
            tuple(
                Line(np.array([row["low"], row["high"]], float), np.full(2, float(at)), Ink.FIRST)
                for at, row in bars
            ),
            tuple(Dot(float(row["value"]), at, Ink.FIRST, Mark.CIRCLE) for at, row in bars),
            rows=rows,
        ),
        (
            Key(Mark.CIRCLE, Ink.FIRST, "released number"),
            Key(Mark.LINE, Ink.FIRST, "holds the number without noise, 95 % for each"),
        ),
    )
