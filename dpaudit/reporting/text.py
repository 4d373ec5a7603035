"""Foreign text in reports: escaped, and fit for print.

Templates escape everything and miss nothing in silence.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from dpaudit.base.finding_table import explained_at
from dpaudit.base.numbers import confidence, down, percent, plain, up

if TYPE_CHECKING:
    from jinja2 import BaseLoader, Environment


_KEPT = "\n\t"
_LOOKS_EMPTY = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
_JOINERS = "\u200c\u200d"
_SPECIAL = re.compile(r"[\\`*_\[\]|~$]|^(?:[#+=-]|\d+(?=[.)](?:\s|$)))")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"})


def visible(text: str) -> str:
    """The text with every invisible or direction-changing character written out.

    A certificate may come from anybody: a right-to-left override could make 0.1 read as 1.0.

    >>> visible("safe" + chr(0x202E) + "text")
    'safe⟨U+202E⟩text'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_visible_character, text))


def _visible_character(character: str) -> str:
    hidden = unicodedata.category(character) in _LOOKS_EMPTY
    if not hidden or character in _KEPT or character in _JOINERS:
        return character
    return f"⟨U+{ord(character):04X}⟩"


def compact(value: Any, limit: int = 4000) -> str:
    """A JSON value on one line; what is over the limit is left out and counted.

    >>> compact({"a": [1, 2]}), compact("x" * 10, limit=6)
    ('{"a": [1, 2]}', 'xxxxxx… (4 more characters)')
    """
    text = (
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    )
    if len(text) <= limit:
        return text
    return f"{text[:limit]}… ({len(text) - limit} more characters)"


def escaped(value: Any) -> str:
    r"""Foreign text on one line, in which no character means anything to Markdown or HTML.

    >>> print(escaped("a *b* <c>"), escaped("1. x"), escaped(""))
    a \*b\* &lt;c&gt; 1\. x –
    """
    text = visible(" ".join(str(value).split())) or "–"
    text = _SPECIAL.sub(_backslashed, text).translate(_ENTITIES)
    text = text.replace("://", "&#58;//")
    return re.sub(r"(www)\.", r"\1&#46;", text, flags=re.IGNORECASE)


def _backslashed(match: re.Match[str]) -> str:
    """A digit cannot be escaped, but the dot or bracket after it can."""
    found = match[0]
    return f"{found}\\" if found[0].isdigit() else f"\\{found}"


def markdown_table(heads: Sequence[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """The lines of a Markdown table and an empty one; cells stand as they are given."""
    yield f"| {' | '.join(heads)} |"
    yield f"|{' --- |' * len(heads)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""


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
