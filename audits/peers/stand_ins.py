"""Empty modules in place of libraries that a tool imports and an audit here never calls."""

from __future__ import annotations

import sys
from unittest.mock import MagicMock


def stand_in(*names: str) -> None:
    """Let ``import`` find these modules, and their packages, where none is loaded."""
    for name in names:
        for end in range(1, name.count(".") + 2):
            module = ".".join(name.split(".")[:end])
            sys.modules.setdefault(module, MagicMock(__path__=[], __all__=[], __spec__=None))
