"""The processes of a federation: none outlives its starter, and a failure says why."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from flower_processes import alive, needs_proc

from private_bo.federated.flower import run
from private_bo.federated.flower.run import FederationError, loopback

STARTER = """
import sys
from pathlib import Path
from private_bo.federated.flower.run import loopback

with loopback(Path(sys.argv[1]), [{"agent": 0}]) as federation:
    print(*(each.pid for each in federation._running.values()), flush=True)
    sys.stdin.read()
"""


@needs_proc
@pytest.mark.slow
@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_no_process_outlives_its_starter(tmp_path: Path, how: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STARTER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as starter:
        assert starter.stdout is not None
        groups = [int(word) for word in starter.stdout.readline().split()]
        assert len(groups) == 3
        assert len(alive(groups)) >= 3
        starter.send_signal(how)
        try:
            starter.wait(timeout=120)
        finally:
            starter.kill()
    deadline = time.monotonic() + 120
    while (left := alive(groups)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left == []


@pytest.mark.slow
def test_a_superlink_that_cannot_start_is_told(
    tmp_path: Path, started: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "_LOOPBACK", "127.0.0.300")
    monkeypatch.setattr(run, "_free_ports", lambda count: [1, 2])
    monkeypatch.setattr(run, "_GRACE", 1.0)
    with (
        pytest.raises(FederationError, match="superlink ended: "),
        loopback(tmp_path, [{"agent": 0}]),
    ):
        pass
    assert alive(started) == []
