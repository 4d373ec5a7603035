"""The report as one self-contained page."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, ClassVar

from dpaudit.base.errors import UnsupportedError
from dpaudit.certificate import Certificate
from dpaudit.reporting.base import Renderer
from dpaudit.reporting.html import svg
from dpaudit.reporting.text import strict_environment, visible
from dpaudit.reporting.view import comparison, tally, views
from dpaudit.reporting.wording import tables, words
from dpaudit.reporting.wording.headline import PROTECTION, checked, rests_on

if TYPE_CHECKING:
    from jinja2 import Environment


class HtmlRenderer(Renderer):
    """One HTML file: no scripts, nothing loaded from elsewhere, for screen and print."""

    name: ClassVar[str] = "html"
    suffix: ClassVar[str] = ".html"
    shows_opinions: ClassVar[bool] = True

    def render(self, *certificates: Certificate) -> str:
        """The page: one report, or a table of verdicts and the reports below it."""
        shown = views(certificates, self.opinions)
        template = environment().get_template("report.html.j2")
        owned = any(each.owner is not None for each in certificates)
        rows, said = comparison(shown), tally(shown)
        return template.render(views=shown, rows=rows, tally=said, owned=owned)


class LabelRenderer(Renderer):
    """One page in plain words for the people whose data it is: HTML, for screen and print."""

    name: ClassVar[str] = "label"
    suffix: ClassVar[str] = ".label.html"

    def render(self, *certificates: Certificate) -> str:
        """The label of one certificate.

        Raises:
            UnsupportedError: of several.
        """
        if len(certificates) != 1:
            raise UnsupportedError(
                f"{len(certificates)} certificates are given; a label shows one."
            )
        (shown,) = views(certificates)
        return environment().get_template("label.html.j2").render(shown=shown)


@cache
def environment() -> Environment:
    """Templates with everything escaped and nothing missing in silence."""
    from jinja2 import PackageLoader
    from markupsafe import Markup, escape

    made = strict_environment(PackageLoader("dpaudit.reporting.html"))
    made.filters |= {
        # The only text that is not escaped: drawn by figures, from numbers and fixed words.
        "drawn": lambda figure, prefix: Markup(svg.markup(figure.plot, prefix + figure.name)),
        "powers": lambda text: escape(visible(text)).replace("e^ε", Markup("e<sup>ε</sup>")),
        "spaced": tables.spaced,
        "tied": lambda text: text.replace(" %", "\u00a0%"),
    }
    made.globals |= {
        "infinity": math.inf,
        "tables": tables,
        "words": words,
        "rests_on": rests_on,
        "checked": checked,
        "protection": PROTECTION,
    }
    return made
