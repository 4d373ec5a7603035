"""Pages of a PDF: size, colours, styles, footers and bookmarks."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from reportlab.lib.colors import HexColor
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import (
    BaseDocTemplate,
    Frame,
    NextPageTemplate,
    PageBreak,
    PageTemplate,
    Paragraph,
)

from dpaudit.reporting.figures.plot import Ink
from dpaudit.reporting.pdf.text import BOLD, MONO, SANS, line, marked, register_fonts, shortened

__all__ = ["WIDTH", "Heading", "Part", "build", "colour", "ink", "paragraph", "style"]

_MARGIN = 51.0
_FOOT = 54.0
WIDTH = A4[0] - 2 * _MARGIN
"""Of the text on an A4 page, in points."""


@cache
def _palette() -> dict[str, str]:
    """The light colours of the page: the first rule of its style sheet."""
    css = (
        resources.files("dpaudit.reporting.html")
        .joinpath("templates/report.css")
        .read_text("utf-8")
    )
    found = dict(re.findall(r"--([\w-]+): ([^;]+);", css[: css.index("}")]))
    return {
        name: found[value[6:-1]] if value.startswith("var(") else value
        for name, value in found.items()
    }


def colour(name: str) -> Any:
    """A colour of the style sheet, such as ``muted`` or ``certified-soft``."""
    return HexColor(_palette()[name])


def ink(role: Ink) -> Any:
    """The colour of a role in a figure."""
    return colour(f"ink-{role.name.lower()}")


_TEXT: dict[str, Any] = {
    "fontName": SANS,
    "fontSize": 9,
    "leading": 12.5,
    "textColor": "text",
    "spaceAfter": 3,
    "bulletFontName": SANS,
    "splitLongWords": 1,
    "allowWidows": 0,
    "allowOrphans": 0,
}
_TIGHT = {"fontSize": 7.5, "leading": 9.5, "spaceAfter": 0}
_STYLES: dict[str, dict[str, Any]] = {
    "text": {},
    "source": {"textColor": "muted", "fontSize": 8, "leading": 11, "keepWithNext": 1},
    "small": {"fontSize": 7.5, "leading": 10},
    "muted": {"textColor": "muted", "fontSize": 8, "leading": 11},
    "cell": _TIGHT,
    "strong": _TIGHT | {"fontName": BOLD},
    "head": _TIGHT | {"textColor": "muted"},
    "code": {"fontName": MONO, "fontSize": 7.5, "leading": 10.5, "spaceAfter": 0},
    "title": {"fontSize": 10, "leading": 13, "textColor": "muted", "spaceAfter": 8},
    "section": {"fontName": BOLD, "fontSize": 13, "leading": 16, "spaceBefore": 16},
    "part": {
        "fontName": BOLD,
        "fontSize": 9.5,
        "leading": 12,
        "spaceBefore": 8,
        "spaceAfter": 2,
        "keepWithNext": 1,
    },
    "label": {"fontName": BOLD, "fontSize": 10, "leading": 14, "spaceAfter": 0},
    "sentence": {"fontSize": 14, "leading": 19, "spaceAfter": 4},
    "detail": {"fontSize": 9, "leading": 12.5, "spaceAfter": 2},
    "big": {"fontName": BOLD, "fontSize": 12.5, "leading": 16, "spaceAfter": 0},
    "foot": {"fontSize": 7, "leading": 9, "textColor": "muted"},
    "bullet": {"leftIndent": 10, "bulletIndent": 1},
}


@cache
def style(name: str, shade: str = "") -> Any:
    """A paragraph style by name, in its own colour or in another."""
    register_fonts()
    given = _TEXT | _STYLES[name] | ({"textColor": shade} if shade else {})
    return ParagraphStyle(name, **given | {"textColor": colour(given["textColor"])})


def paragraph(text: object, name: str = "text", shade: str = "", *, bullet: bool = False) -> Any:
    """Any text as a paragraph; no character of it means anything to the layout."""
    shown = style(name, shade)
    return Paragraph(marked(text, shown.fontName), shown, bulletText="•" if bullet else None)


class Heading(Paragraph):  # type: ignore[misc]
    """A heading that is also a bookmark; it stays with what follows."""

    def __init__(self, text: object, level: int, name: str) -> None:
        shown = style(name)
        super().__init__(marked(text, shown.fontName), shown)
        self.keepWithNext = 1
        self._entry = line(shortened(str(text), 80)), level

    def draw(self) -> None:
        """Draw it, and enter it among the bookmarks."""
        text, level = self._entry
        key = f"heading-{self.canv.next_bookmark()}"
        self.canv.bookmarkHorizontal(key, 0, self.height + 4)
        self.canv.addOutlineEntry(text, key, level, closed=level > 0)
        super().draw()


class _Pages(Canvas):  # type: ignore[misc]
    """Pages that say how many there are, which is known at the end."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **(options | {"initialFontName": SANS}))
        self._held: list[dict[str, Any]] = []
        self._bookmarks = 0

    def next_bookmark(self) -> int:
        """A number for each bookmark."""
        self._bookmarks += 1
        return self._bookmarks

    def showPage(self) -> None:  # noqa: N802
        """Hold the page back."""
        self._held.append(dict(self.__dict__))
        self._startPage()

    def save(self) -> None:
        """Number the pages and write them."""
        held = self._held
        for number, page in enumerate(held, 1):
            self.__dict__.update(page)
            self.setFont(SANS, 7)
            self.setFillColor(colour("muted"))
            self.drawRightString(_MARGIN + WIDTH, _FOOT - 20, f"page {number} of {len(held)}")
            super().showPage()
        super().save()


@dataclass(frozen=True)
class Part:
    """Pages under one footer.

    Attributes:
        footer: text at the foot of each.
        story: what stands on them.
    """

    footer: str
    story: Sequence[Any]


def build(title: str, parts: Sequence[Part]) -> bytes:
    """The file; the same bytes for the same content."""
    buffer = io.BytesIO()
    document = BaseDocTemplate(
        buffer,
        pagesize=A4,
        title=line(title),
        author="dpaudit",
        creator="dpaudit",
        lang="en",
        invariant=1,
        pageCompression=1,
        displayDocTitle=True,
    )
    frame = (_MARGIN, _FOOT, WIDTH, A4[1] - _FOOT - _MARGIN)
    document.addPageTemplates(
        [
            PageTemplate(
                id=str(number),
                frames=[
                    Frame(*frame, leftPadding=0, rightPadding=0, topPadding=0, bottomPadding=0)
                ],
                onPage=_footer(part.footer),
            )
            for number, part in enumerate(parts)
        ]
    )
    story: list[Any] = []
    for number, part in enumerate(parts):
        story += [NextPageTemplate(str(number)), *([PageBreak()] if number else []), *part.story]
    document.build(story, canvasmaker=_Pages)
    return buffer.getvalue()


def _footer(text: str) -> Callable[[Any, Any], None]:
    def draw(canvas: Any, document: Any) -> None:
        canvas.setStrokeColor(colour("line"))
        canvas.setLineWidth(0.5)
        canvas.line(_MARGIN, _FOOT - 8, _MARGIN + WIDTH, _FOOT - 8)
        shown = paragraph(text, "foot")
        shown.wrap(WIDTH - 60, 30)
        shown.drawOn(canvas, _MARGIN, _FOOT - 12 - shown.height)

    return draw
