"""A progress bar on stderr, where stderr is a terminal."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from dpaudit.auditing.execution import Progress


@contextlib.contextmanager
def progress_bar(label: str) -> Iterator[Progress | None]:
    """A callback that draws a bar; None where nobody would see it.

    Args:
        label: what runs, for people.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None)

        def tell(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield tell
