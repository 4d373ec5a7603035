"""Templates that escape everything and miss nothing in silence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpaudit.reporting.text import visible

if TYPE_CHECKING:
    from jinja2 import BaseLoader, Environment

__all__ = ["strict_environment"]


def strict_environment(*loaders: BaseLoader) -> Environment:
    """Templates from the first of these loaders that has one, with ``visible`` as a filter."""
    from jinja2 import ChoiceLoader, Environment, StrictUndefined

    made = Environment(
        loader=ChoiceLoader(loaders),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters["visible"] = visible
    return made
