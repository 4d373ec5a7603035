"""Processes that the custodian starts: fresh, with one socket to it, and nothing of its own."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Sequence

from dpaudit.sealed.channel import Channel

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""By which no rounding depends on how many processors are free."""
_ENVIRONMENT = ONE_THREAD | {
    "LC_ALL": "C.UTF-8",
    "TORCHINDUCTOR_CACHE_DIR": "/",  # an optimizer of torch wants one, and writes nothing
    "GLIBC_TUNABLES": "glibc.pthread.rseq=0",  # by which the kernel writes which processor it is on
}
"""All that they know of the environment."""


def start(words: Sequence[str], folder: str) -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """Start a process, and return the socket to it.

    Args:
        words: its command line, but for the descriptor of the other socket, which is the last word.
        folder: in which it begins.
    """
    own, other = socket.socketpair()
    with other:
        child = subprocess.Popen(
            [*words, str(other.fileno())],
            pass_fds=(other.fileno(),),
            cwd=folder,
            env=_ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    return own, child


def end(child: subprocess.Popen[bytes], channel: Channel) -> None:
    """Close the channel, upon which a process ends; or else kill it."""
    channel.close()
    try:
        child.wait(timeout=5)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
