"""A Flower command that ends with whoever started it: ``python -m ….child COMMAND ARGUMENTS``.

Flower's SuperLink and SuperNode outlive a starter that is killed. Here they read a pipe from it,
and the pipe's end is the signal to stop.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from importlib.metadata import entry_points
from typing import Any

_GRACE = 8.0  # seconds between asking the process group to stop and ending it


def _follow_starter() -> None:
    """Wait for the end of standard input, then take the whole process group down."""
    while os.read(0, 1):  # not sys.stdin, whose lock would be held when the interpreter ends
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE)
    os.killpg(os.getpgrp(), signal.SIGKILL)


def main() -> Any:
    """Run the installed console command named first among the arguments; its exit code."""
    threading.Thread(target=_follow_starter, daemon=True).start()
    sys.argv = sys.argv[1:]
    (command,) = entry_points(group="console_scripts", name=sys.argv[0])
    return command.load()()


if __name__ == "__main__":
    sys.exit(main())
