"""A Flower command ends with whoever started it."""

from __future__ import annotations

import subprocess
import sys


def test_the_end_of_the_pipe_is_the_signal_to_stop() -> None:
    """The installed command runs until its standard input is closed."""
    child = [sys.executable, "-m", "private_bo.federated.flower.child"]
    with subprocess.Popen(
        [*child, "dpaudit", "--help"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert "certify" in process.stdout.read()
        assert process.wait(timeout=60) == 0
