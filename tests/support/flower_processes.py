"""Counting the processes of a federation."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

needs_proc = pytest.mark.skipif(
    not Path("/proc/self/stat").is_file(), reason="processes are counted in /proc"
)


def alive(groups: Iterable[int]) -> list[str]:
    """Processes of these groups that have not ended."""
    wanted, found = set(groups), []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = path.read_text().rpartition(")")
        except OSError:
            continue
        state, _, group = rest.split()[:3]
        if int(group) in wanted and state != "Z":
            found.append(f"{name}) in group {group}")
    return found
