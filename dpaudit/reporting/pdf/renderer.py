"""The report as a PDF, for signing and filing: the HTML page, typeset on paper."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib import resources
from typing import Any, ClassVar

from dpaudit.base.optional_import import require
from dpaudit.certificate import Certificate
from dpaudit.reporting.base import Renderer
from dpaudit.reporting.html.page import HtmlRenderer


class PdfRenderer(Renderer):
    """A4 pages with bookmarks, vector figures and nothing loaded from elsewhere.

    The file is tagged for screen readers (PDF/UA-1), its text can be selected, and all fonts are
    embedded. A font of the system is used for letters alone that no installed package has, such as
    Chinese ones; what no font at all can show is written as its code point
    (:func:`dpaudit.reporting.pdf.fonts.fonts_for`). Without such letters the same packages give
    the same bytes on every machine.
    """

    name: ClassVar[str] = "pdf"
    suffix: ClassVar[str] = ".pdf"
    shows_opinions: ClassVar[bool] = True

    def __init__(self) -> None:
        """A renderer of PDF files.

        Raises:
            UnsupportedError: if the extra ``dpaudit[pdf]`` is not installed.
        """
        _require()

    def render(self, *certificates: Certificate) -> bytes:
        """The file: one report, or a table of verdicts and the reports after it."""
        html = HtmlRenderer()
        html.opinions = self.opinions
        return typeset(html.render(*certificates))


def typeset(page: str) -> bytes:
    """A page of a report, which is well-formed and made of what such pages are made of, as a PDF.

    Raises:
        UnsupportedError: if the extra ``dpaudit[pdf]`` is not installed.
    """
    _require()
    import typst

    from dpaudit.reporting.pdf.fonts import MONO, fonts_for, spelled_out

    page, drawings = _without_drawings(page)
    families = fonts_for(page + json.dumps(drawings, ensure_ascii=False))
    given = {
        "colours": _palette(),
        "drawings": drawings,
        "fonts": [font.family for font in families],
        "mono": MONO,
    }
    template = resources.files("dpaudit.reporting.pdf").joinpath("report.typ")
    folders = sorted({str(font.folder) for font in families})
    written: bytes = typst.compile(
        template.read_bytes(),
        font_paths=typst.Fonts(False, False, folders),  # none of the system, none of typst
        pdf_standards="ua-1",
        sys_inputs={"page": spelled_out(page, families), "given": json.dumps(given)},
    )
    return written


def _require() -> None:
    for package in ("typst", "fontpkg"):
        require("pdf", package, what="a .pdf report")


def _without_drawings(page: str) -> tuple[str, list[dict[str, Any]]]:
    """The page with a place for each drawing, and the drawings in light colours."""
    drawings: list[dict[str, Any]] = []

    def taken(found: re.Match[str]) -> str:
        drawn = re.sub(r"var\(--([\w-]+)\)", lambda name: _palette()[name[1]], found[0])
        namespaced = '<svg xmlns="http://www.w3.org/2000/svg" font-family="DejaVu Sans"'
        hidden, stretched = "aria-hidden" in drawn, "preserveAspectRatio" in drawn
        svg = drawn.replace("<svg", namespaced, 1)
        drawings.append({"svg": svg, "hidden": hidden, "stretched": stretched})
        return f'<drawing n="{len(drawings) - 1}"/>'

    return re.sub(r"<svg.*?</svg>", taken, page, flags=re.DOTALL), drawings


@cache
def _palette() -> dict[str, str]:
    """The light colours of the page: the first rule of its style sheet."""
    folder = resources.files("dpaudit.reporting.html")
    css = folder.joinpath("templates/report.css").read_text("utf-8")
    found = dict(re.findall(r"--([\w-]+): ([^;]+);", css[: css.index("}")]))
    return {
        name: found[value[6:-1]] if value.startswith("var(") else value
        for name, value in found.items()
    }
