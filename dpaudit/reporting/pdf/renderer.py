"""The report as a PDF, for signing and filing."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from dpaudit.reporting.base import Renderer
from dpaudit.reporting.view import view

if TYPE_CHECKING:
    from dpaudit.certificate import Certificate

__all__ = ["PdfRenderer"]


class PdfRenderer(Renderer):
    """A4 pages with bookmarks, vector figures and nothing loaded from elsewhere.

    Latin, Greek, Cyrillic, Hebrew and Arabic letters are embedded. Chinese, Japanese and Korean
    ones are named from Adobe's character collections: a PDF reader needs its East Asian fonts (for
    poppler, poppler-data and any such font). What no font has is written as its code point.
    Right-to-left text is put in visual order by paragraph: where it takes more than one line, the
    lines follow each other upside down. The file is not tagged for screen readers; the HTML page
    is the accessible form.
    """

    name: ClassVar[str] = "pdf"
    suffix: ClassVar[str] = ".pdf"

    def render(self, *certificates: Certificate) -> bytes:
        """The file: one report, or a page of verdicts and the reports after it."""
        from dpaudit.reporting.pdf.report import pages

        return pages([view(certificate) for certificate in certificates])
