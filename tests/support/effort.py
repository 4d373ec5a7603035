"""How hard the randomised tests look: a few examples each time, many where there is time."""

from __future__ import annotations

import os

from hypothesis import Phase, settings

__all__ = ["examples", "few"]

_THOROUGH = os.environ.get("DPAUDIT_TESTS") == "thorough"


def examples(few: int, many: int) -> int:
    """The number of examples: ``many`` if the environment has ``DPAUDIT_TESTS=thorough``."""
    return many if _THOROUGH else few


few = settings(
    max_examples=10, deadline=None, derandomize=True, phases=[Phase.explicit, Phase.generate]
)
"""The same ten examples each time, of what takes long."""
