"""Foreign text in SARIF messages."""

from __future__ import annotations

import re

_MEANS_SOMETHING = re.compile(r"[\[\]\\]|[{}]")


def message(text: str) -> dict[str, str]:
    r"""A message object in which no character makes a link or a placeholder.

    SARIF 2.1.0 doubles braces (section 3.11.5) and puts a backslash before brackets and backslashes
    (section 3.11.6). An empty message, which viewers refuse, becomes a dash.

    >>> message("see [a](http://b) and {0}")["text"]
    'see \\[a\\](http://b) and {{0}}'
    """
    return {"text": _MEANS_SOMETHING.sub(_escaped, text) or "–"}


def _escaped(found: re.Match[str]) -> str:
    character = found[0]
    return character * 2 if character in "{}" else f"\\{character}"
