"""The report as one self-contained page."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from dpaudit.reporting import figures, headline, tables
from dpaudit.reporting._text import compact, down, percent, plain, up, visible
from dpaudit.reporting.base import Renderer
from dpaudit.reporting.view import view

if TYPE_CHECKING:
    from jinja2 import Environment

    from dpaudit.certificate import Certificate

__all__ = ["HtmlRenderer", "environment"]


class HtmlRenderer(Renderer):
    """One HTML file: no scripts, nothing loaded from elsewhere, for screen and print."""

    name: ClassVar[str] = "html"
    suffix: ClassVar[str] = ".html"

    def render(self, certificate: Certificate) -> str:
        """The page."""
        curves = figures.figures(certificate)
        run = certificate.run or {}
        series = figures.series_figures(run.get("series", {}))
        template = environment().get_template("report.html.j2")
        return template.render(view(certificate), curves=curves, series=series)


@cache
def environment() -> Environment:
    """Templates with everything escaped and nothing missing in silence."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    made = Environment(
        loader=PackageLoader("dpaudit.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_shown,
    )
    made.filters |= {
        "compact": compact,
        "confidence": headline.confidence,
        "down": down,
        # The only text that is not escaped: drawn by figures, from numbers and fixed words.
        "drawn": lambda figure: Markup(figure.markup),
        "facts": tables.facts,
        "percent": percent,
        "plain": plain,
        "up": up,
    }
    made.globals["infinity"] = math.inf
    return made


def _shown(value: Any) -> Any:
    """Foreign text without hidden characters; markup of our own as it is."""
    return visible(value) if type(value) is str else value
