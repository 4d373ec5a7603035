"""Pages from templates: everything is escaped, and nothing is missing in silence.

Pages, errors and the compliance report are made here.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from dpaudit.book.limits import PERIODS, used_note
from dpaudit.book.records import RELEASED_NOTHING, Status
from dpaudit.reporting.text import strict_environment

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def _environment() -> Environment:
    from jinja2 import PackageLoader

    made = strict_environment(PackageLoader("dpaudit.book.server"))
    made.filters["counted"], made.globals["periods"] = counted, PERIODS
    made.globals["used_note"] = used_note
    return made


def counted(releases: Mapping[str, int]) -> str:
    """Count releases by words for their states: "3 releases: 2 completed, 1 abandoned"."""
    total = sum(releases.values())
    known = (*(status.word for status in Status), RELEASED_NOTHING)
    each = (f"{releases[word]} {word}" for word in known if releases.get(word))
    return f"{total} release{'s' * (total != 1)}: {', '.join(each)}" if total else "No releases"


def render_page(name: str, **facts: Any) -> str:
    """Return a page of that template."""
    return _environment().get_template(f"{name}.html.j2").render(**facts)


@cache
def style() -> str:
    """Return the style sheet: that of reports, and what only these pages have."""
    report = resources.files("dpaudit.reporting.html").joinpath("templates/report.css")
    own = resources.files("dpaudit.book.server").joinpath("templates/web.css")
    return report.read_text("utf-8") + own.read_text("utf-8")
