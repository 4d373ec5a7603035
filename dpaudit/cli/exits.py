"""Exit codes.

The guard of a command that runs foreign code: an exit that nobody asked for is no success.

Code under audit may end its process (``os._exit(0)``), also while it is imported. The command
therefore runs in a copy of the process, which reports its exit code when it is done; where no
report comes, the command is inconclusive. Both share terminal and process group. Signals to the
guard alone are handed on, and Ctrl-C, which then arrives twice, counts once.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from enum import IntEnum
from types import FrameType
from typing import TYPE_CHECKING

from dpaudit.base.processes import CAN_FORK, ending, fork

if TYPE_CHECKING:
    from dpaudit.certificate import Certificate, SecondOpinion


class Exit(IntEnum):
    """The answer of a command to pipelines."""

    CERTIFIED = 0
    REFUTED = 1
    UNPROVEN = 2
    INPUT = 3
    INTERRUPTED = 130


class InterruptedRunError(Exception):
    """Ctrl-C, with what it leaves."""


def exit_of(certificate: Certificate) -> Exit:
    """The exit code of a certificate: the worst that it says."""
    from dpaudit.certificate import Verdict  # takes half a second, which --help need not wait for

    if certificate.verdict is Verdict.REFUTED or certificate.claim_exceeded:
        return Exit.REFUTED
    if certificate.verdict is Verdict.UNPROVEN:
        return Exit.UNPROVEN
    return Exit.CERTIFIED


def exit_of_opinion(opinion: SecondOpinion | None) -> Exit:
    """The exit code of a verified certificate: what another library contradicts is open."""
    return Exit.UNPROVEN if opinion is not None and opinion.contradicts else Exit.CERTIFIED


_ONE_PRESS = 1.0
"""Seconds within which a second SIGINT is the same press of Ctrl-C."""
_HANDED_ON = [
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
    if hasattr(signal, name)
]


def guarded(command: Callable[[], int]) -> int:
    """The exit code of a command; 2 and one sentence if it ends without saying it is done.

    It returns in both processes, so that the copy, too, ends as Python does.
    """
    if not CAN_FORK:
        return command()
    reads, writes = os.pipe()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _HANDED_ON)
    child = fork()
    if child:
        os.close(writes)
        _hand_on(child)
    else:
        os.close(reads)
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, _pressed_once())
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return _watch(child, reads) if child else _report(command, writes)


def _report(command: Callable[[], int], writes: int) -> int:
    """In the copy: run the command and say how it ended."""
    process, code = os.getpid(), int(Exit.REFUTED)
    try:
        code = command()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):
                stream.flush()
    except SystemExit:
        os._exit(Exit.UNPROVEN)  # of foreign code: dpaudit's own commands return
    except Exception:  # shown by Python itself, where DPAUDIT_DEBUG asks for it
        os.write(writes, b"%d" % code)
        raise
    if os.getpid() != process:  # foreign code made a copy, which has nothing to say
        os._exit(Exit.UNPROVEN)
    with suppress(OSError):  # foreign code may have closed it: then the guard knows of no end
        os.write(writes, b"%d" % code)
    return code


def _watch(child: int, reads: int) -> int:
    """In the guard: wait, and tell the exit code of the copy."""
    _, status = os.waitpid(child, 0)
    ended = os.waitstatus_to_exitcode(status)
    os.set_blocking(reads, False)  # a copy of the copy may still hold the other end
    try:
        report = os.read(reads, 8)
    except BlockingIOError:
        report = b""
    if report:
        return int(report) or max(ended, 0)
    if -ended in _HANDED_ON:
        signal.signal(-ended, signal.SIG_DFL)
        os.kill(os.getpid(), -ended)
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(
            f"dpaudit: the audited code ended the process ({ending(ended)}) before the command "
            "was done, so there is no verdict; code under audit must return.\n"
        )
    return Exit.UNPROVEN


def _hand_on(child: int) -> None:
    def hand_on(number: int, _: FrameType | None) -> None:
        with suppress(ProcessLookupError):
            os.kill(child, number)

    for each in _HANDED_ON:
        if signal.getsignal(each) is not signal.SIG_IGN:
            signal.signal(each, hand_on)


def _pressed_once() -> Callable[[int, FrameType | None], None]:
    last = -_ONE_PRESS

    def pressed(_: int, __: FrameType | None) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= _ONE_PRESS:
            last = now
            raise KeyboardInterrupt

    return pressed
