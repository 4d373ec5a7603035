"""Runs in one tool's own environment: audits arrive as lines of JSON, and are answered likewise.

``worker.py ADAPTER SOURCE``; it imports nothing of this project, because its environment has none.
What a tool prints goes to stderr. A failure of the tool is an answer as well.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
import traceback
from typing import Any
from unittest.mock import MagicMock

import numpy as np

WARM = 200
"""Runs of the audit before the first, which takes what is loaded and compiled once."""


class Tape:
    """A mechanism whose outputs were drawn beforehand: each is given once, in order."""

    def __init__(self, x: Any, x_prime: Any) -> None:
        self.sides, self.used = (x, x_prime), [0, 0]

    def draw(self, side: int, size: int) -> Any:
        """The next outputs of one side; an error if there are no more."""
        start = self.used[side]
        if start + size > len(self.sides[side]):
            raise RuntimeError(f"asked for more than {len(self.sides[side])} runs a side")
        self.used[side] = start + size
        return self.sides[side][start : start + size]


def stand_in(*names: str) -> None:
    """Let ``import`` find these modules where none is loaded: tools import, and never call them."""
    for name in names:
        for end in range(1, name.count(".") + 2):
            module = ".".join(name.split(".")[:end])
            sys.modules.setdefault(module, MagicMock(__path__=[], __all__=[], __spec__=None))


def seconds() -> float:
    """Processor time of this process and of its children."""
    return time.process_time() + sum(os.times()[2:4])


def answered(adapter: Any, task: dict[str, Any], sides: dict[str, Any]) -> dict[str, Any]:
    """One audit: its bound (None if the tool states none), its verdict and its processor time."""
    np.random.seed(task["seed"])  # noqa: NPY002  (the tools draw from it)
    before = seconds()
    try:
        tape = Tape(sides["x"], sides["x_prime"])
        bound, rejected = adapter.audit({**task, **sides, "tape": tape})
    except Exception as error:  # noqa: BLE001  (whatever a foreign tool raises)
        traceback.print_exc()
        return {"error": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
    used = seconds() - before
    bound = None if bound is None else str(float(bound))
    return {"bound": bound, "rejected": bool(rejected), "seconds": used}


def main() -> None:
    """Answer every line of stdin until it ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sys.path[:1] = [sys.argv[2], sys.path[0]]
    spec = importlib.util.spec_from_file_location("adapter", sys.argv[1])
    adapter = sys.modules["adapter"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(adapter)
    warm = False
    for line in sys.stdin:
        task = json.loads(line)
        with np.load(task["file"]) as arrays:
            sides = dict(arrays)
        if not warm:
            answered(adapter, task, {name: side[:WARM] for name, side in sides.items()})
            warm = True
        answers.write(json.dumps(answered(adapter, task, sides)) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
