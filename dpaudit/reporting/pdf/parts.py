"""Pieces of a PDF: tables, lists of terms, cards, figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from reportlab.graphics.shapes import Drawing, Rect
from reportlab.platypus import LongTable, Spacer, Table

from dpaudit.reporting.figures.plot import Figure
from dpaudit.reporting.pdf.charts import drawing, swatch
from dpaudit.reporting.pdf.page import WIDTH, colour, ink, paragraph
from dpaudit.reporting.pdf.text import SANS, drawn, shortened, width
from dpaudit.reporting.wording.headline import Odds

__all__ = ["HALF", "bar", "boxed", "code", "figure", "figures", "side_by_side", "table", "terms"]

_PAD = 4.0
_CELL = 7.5
_FONT = ("FONT", (0, 0), (-1, -1), SANS, _CELL, _CELL + 2)
_GAP = 14.0
HALF = (WIDTH - _GAP) / 2
"""Width of one of two columns, in points."""


def table(
    heads: Sequence[str],
    rows: Iterable[Sequence[object]],
    shares: Sequence[float],
    over: float = WIDTH,
) -> Any:
    """A table with its head on every page; a row may run over a page's end.

    Args:
        heads: names of the columns.
        rows: texts, or flowables.
        shares: of the width, one for each column; scaled to fill it.
        over: its width in points.
    """
    widths = [over * share / sum(shares) for share in shares]
    head = [paragraph(name, "head") for name in heads]
    body = [[_cell(value, w) for value, w in zip(row, widths, strict=True)] for row in rows]
    return LongTable(
        [head, *body],
        colWidths=widths,
        repeatRows=1,
        splitInRow=1,
        style=[
            _FONT,
            ("TEXTCOLOR", (0, 0), (-1, -1), colour("text")),
            ("VALIGN", (0, 0), (-1, -1), "TOP"),
            ("LEFTPADDING", (0, 0), (-1, -1), 0),
            ("RIGHTPADDING", (0, 0), (-1, -1), _PAD),
            ("TOPPADDING", (0, 0), (-1, -1), 2.5),
            ("BOTTOMPADDING", (0, 0), (-1, -1), 2.5),
            ("LINEBELOW", (0, 0), (-1, -1), 0.4, colour("line")),
        ],
        spaceBefore=4,
        spaceAfter=8,
        hAlign="LEFT",
    )


def _cell(value: object, available: float) -> Any:
    """Short text as it is, which is quick; all else as a paragraph."""
    if not isinstance(value, str):
        return value
    shown = drawn(value)
    if len(shown) <= 80:
        needed = width(shown, SANS, _CELL)
        if needed is not None and needed <= available - _PAD:
            return shown
    return paragraph(value, "cell")


def terms(entries: Iterable[tuple[object, object]], share: float = 0.26) -> Any:
    """Names and what they stand for, side by side; nothing where there is none."""
    rows = [
        [paragraph(name, "muted"), value if _is_flowable(value) else paragraph(value)]
        for name, value in entries
    ]
    if not rows:
        return Spacer(0, 0)
    return Table(
        rows,
        colWidths=[WIDTH * share, WIDTH * (1 - share)],
        splitInRow=1,
        style=[
            _FONT,
            ("VALIGN", (0, 0), (-1, -1), "TOP"),
            ("LEFTPADDING", (0, 0), (-1, -1), 0),
            ("RIGHTPADDING", (0, 0), (0, -1), 8),
            ("RIGHTPADDING", (1, 0), (1, -1), 0),
            ("TOPPADDING", (0, 0), (-1, -1), 1),
            ("BOTTOMPADDING", (0, 0), (-1, -1), 1),
        ],
        hAlign="LEFT",
    )


def _is_flowable(value: object) -> bool:
    return isinstance(value, list) or hasattr(value, "wrapOn")


def boxed(content: Sequence[Any], accent: str, ground: str | None = None, w: float = WIDTH) -> Any:
    """Pieces in a box with a coloured edge, as for a verdict, an audit or a finding."""
    return Table(
        [[piece] for piece in content],
        colWidths=[w],
        splitInRow=1,
        style=[
            _FONT,
            ("LINEBEFORE", (0, 0), (0, -1), 3, colour(accent)),
            ("BACKGROUND", (0, 0), (-1, -1), colour(ground or "panel")),
            ("LEFTPADDING", (0, 0), (-1, -1), 12),
            ("RIGHTPADDING", (0, 0), (-1, -1), 10),
            ("TOPPADDING", (0, 0), (-1, -1), 1),
            ("BOTTOMPADDING", (0, 0), (-1, -1), 1),
            ("TOPPADDING", (0, 0), (-1, 0), 8),
            ("BOTTOMPADDING", (0, -1), (-1, -1), 8),
        ],
        spaceBefore=4,
        spaceAfter=6,
        hAlign="LEFT",
    )


def bar(shown: Odds, w: float) -> Any:
    """The scale from coin toss to certainty: what is proved as a bar, the claim as a mark."""
    made = Drawing(w, 10)
    made.add(Rect(0, 4, w, 2, fillColor=colour("line"), strokeColor=None))
    if shown.proved is not None:
        length = max(2 * (shown.proved - 0.5) * w, 0.5)
        made.add(Rect(0, 2.5, length, 5, fillColor=colour("ink-proved"), strokeColor=None))
    if shown.claimed is not None:
        at = min(2 * (shown.claimed - 0.5) * w, w - 2)
        made.add(Rect(at, 0, 2, 10, fillColor=colour("ink-claim"), strokeColor=None))
    return made


def code(text: str) -> Any:
    """A line to copy."""
    return paragraph(text, "code")


def figure(shown: Figure, w: float = HALF) -> list[Any]:
    """Title, drawing, legend and description; long names are shortened, the tables have them."""
    keys = [[swatch(key, ink), paragraph(shortened(key.label), "small")] for key in shown.legend]
    legend = Table(
        keys,
        colWidths=[30, w - 30],
        style=[
            _FONT,
            ("VALIGN", (0, 0), (-1, -1), "TOP"),
            ("LEFTPADDING", (0, 0), (-1, -1), 0),
            ("RIGHTPADDING", (0, 0), (-1, -1), 0),
            ("TOPPADDING", (0, 0), (-1, -1), 1),
            ("BOTTOMPADDING", (0, 0), (-1, -1), 0),
        ],
        hAlign="LEFT",
        spaceBefore=2,
        spaceAfter=3,
    )
    return [
        paragraph(shortened(shown.title), "part"),
        drawing(shown.plot, w, ink),
        legend,
        paragraph(shortened(shown.description, 600), "small", "muted"),
    ]


def figures(shown: Sequence[Figure]) -> Iterator[Any]:
    """Two in a row."""
    for at in range(0, len(shown), 2):
        pair = [figure(each) for each in shown[at : at + 2]]
        yield side_by_side(*pair)


def side_by_side(*columns: list[Any], whole: bool = True) -> Any:
    """Two columns of half the width, on one page where they are to stay whole."""
    cells = [*columns, *([[]] * (2 - len(columns)))]
    return Table(
        [cells],
        colWidths=[HALF + _GAP, HALF],
        splitInRow=0 if whole else 1,
        style=[
            _FONT,
            ("VALIGN", (0, 0), (-1, -1), "TOP"),
            ("LEFTPADDING", (0, 0), (-1, -1), 0),
            ("RIGHTPADDING", (0, 0), (0, 0), _GAP),
            ("RIGHTPADDING", (1, 0), (1, 0), 0),
            ("TOPPADDING", (0, 0), (-1, -1), 4),
            ("BOTTOMPADDING", (0, 0), (-1, -1), 6),
        ],
        hAlign="LEFT",
    )
