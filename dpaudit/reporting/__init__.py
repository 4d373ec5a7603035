"""Views of a certificate.

For people HTML, PDF and Markdown; for machines JSON, JUnit XML, SARIF, in-toto and the deployments
registry.

The renderer is chosen by the ending of the file::

    render_to(certificate, "report.html")
    write_report(audit, "report.html")

A new view is one subclass of :class:`Renderer`; its tests inherit the conformance suite.
"""

from dpaudit.reporting.base import (
    Renderer,
    render_to,
    renderer_for,
    require_shown,
    suffixes,
    write_report,
)
from dpaudit.reporting.card import Utility, model_card
from dpaudit.reporting.html.page import HtmlRenderer
from dpaudit.reporting.machine.json_text import InTotoRenderer, JsonRenderer
from dpaudit.reporting.machine.junit import JUnitRenderer
from dpaudit.reporting.machine.registry import RegistryRenderer
from dpaudit.reporting.machine.sarif import SarifRenderer
from dpaudit.reporting.markdown import MarkdownRenderer
from dpaudit.reporting.pdf.renderer import PdfRenderer
from dpaudit.reporting.plots import plot_curve, plot_rounds, plot_trade_off

__all__ = [
    "HtmlRenderer",
    "InTotoRenderer",
    "JUnitRenderer",
    "JsonRenderer",
    "MarkdownRenderer",
    "PdfRenderer",
    "RegistryRenderer",
    "Renderer",
    "SarifRenderer",
    "Utility",
    "model_card",
    "plot_curve",
    "plot_rounds",
    "plot_trade_off",
    "render_to",
    "renderer_for",
    "require_shown",
    "suffixes",
    "write_report",
]
