"""Views of a certificate: for people HTML and Markdown, for machines JSON.

The renderer is chosen by the ending of the file::

    render_to(certificate, "report.html")

A new view is one subclass of :class:`Renderer`; its tests inherit the conformance suite.
"""

from dpaudit.reporting.base import Renderer, render_to, renderer_for, suffixes
from dpaudit.reporting.html import HtmlRenderer
from dpaudit.reporting.json_text import JsonRenderer
from dpaudit.reporting.markdown import MarkdownRenderer

__all__ = [
    "HtmlRenderer",
    "JsonRenderer",
    "MarkdownRenderer",
    "Renderer",
    "render_to",
    "renderer_for",
    "suffixes",
]
