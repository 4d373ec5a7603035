"""The report as Markdown, for pull requests and terminals."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, ClassVar

from dpaudit.certificate import Certificate
from dpaudit.reporting.base import Renderer
from dpaudit.reporting.text import markdown_environment, visible
from dpaudit.reporting.view import comparison, tally, views
from dpaudit.reporting.wording import tables, words
from dpaudit.reporting.wording.headline import checked

if TYPE_CHECKING:
    from jinja2 import Template


class MarkdownRenderer(Renderer):
    """The facts of the report without its figures."""

    name: ClassVar[str] = "markdown"
    suffix: ClassVar[str] = ".md"
    shows_opinions: ClassVar[bool] = True

    def render(self, *certificates: Certificate) -> str:
        """Headings, lists and tables, one line break at the end."""
        from markupsafe import Markup

        shown = views(certificates, self.opinions)
        deeper = Markup("#" if len(shown) > 1 else "")
        given = {"rows": comparison(shown), "tally": tally(shown), "deeper": deeper}
        owned = any(each.owner is not None for each in certificates)
        made = template("reports").render(views=shown, owned=owned, **given)
        return f"{made.rstrip()}\n"


@cache
def template(name: str) -> Template:
    """A template of this package in Markdown, which knows the tables and the words of reports."""
    from jinja2 import PackageLoader

    made = markdown_environment(PackageLoader("dpaudit.reporting"))
    made.filters["command"] = _command
    made.globals |= {"tables": tables, "words": words, "checked": checked}
    return made.get_template(f"{name}.md.j2")


def _command(line: str) -> str:
    """A line of code to copy; one that could end the code, or looks like HTML, is escaped."""
    from markupsafe import Markup

    shown = visible(line)
    return line if re.search(r"[`<>&\n]", shown) else Markup(f"`{shown}`")
