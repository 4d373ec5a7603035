"""Templates that escape everything and miss nothing in silence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpaudit.base.finding_table import explained_at
from dpaudit.base.numbers import confidence, down, percent, plain, up
from dpaudit.reporting.text import compact, escaped, visible

if TYPE_CHECKING:
    from jinja2 import BaseLoader, Environment

_FILTERS = (compact, confidence, down, percent, plain, up, visible)


def strict_environment(*loaders: BaseLoader) -> Environment:
    """Templates from the first of these loaders that has one, with filters for numbers and text."""
    from jinja2 import ChoiceLoader, Environment, StrictUndefined
    from markupsafe import escape

    made = Environment(
        loader=ChoiceLoader(loaders),
        finalize=lambda value: visible(value) if type(value) is str else value,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {each.__name__: each for each in _FILTERS}
    made.globals["explained_at"] = lambda rule: escape(explained_at(rule))  # no text: an address
    return made


def markdown_environment(*loaders: BaseLoader) -> Environment:
    """The same for Markdown: what a template shows is one line, and means nothing to Markdown."""
    from markupsafe import Markup

    def shown(value: Any) -> Markup:
        return value if isinstance(value, Markup) else Markup(escaped(value))

    made = strict_environment(*loaders)
    made.finalize = shown
    return made
