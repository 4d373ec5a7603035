"""Pages from templates: everything is escaped, and nothing is missing in silence.

Pages, errors and the compliance report are made here.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from dpaudit.reporting.text import strict_environment

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def _environment() -> Environment:
    from jinja2 import PackageLoader

    return strict_environment(PackageLoader("dpaudit.book.server"))


def render_page(name: str, **facts: Any) -> str:
    """Return a page of that template."""
    return _environment().get_template(f"{name}.html.j2").render(**facts)


@cache
def style() -> str:
    """Return the style sheet: that of reports, and what only these pages have."""
    report = resources.files("dpaudit.reporting.html").joinpath("templates/report.css")
    own = resources.files("dpaudit.book.server").joinpath("templates/web.css")
    return report.read_text("utf-8") + own.read_text("utf-8")
