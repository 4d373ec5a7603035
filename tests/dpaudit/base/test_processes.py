"""Processes are started out of reach of Ctrl-C, and say how they ended."""

import os
import signal

import pytest

from dpaudit.base.processes import ending, fork, uninterrupted


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_waits_for_the_end():
    done = []
    with pytest.raises(KeyboardInterrupt), uninterrupted():  # noqa: PT012
        signal.raise_signal(signal.SIGINT)
        done.append(True)
    assert done == [True]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("status", [0, 7])
def test_a_copy_ends_with_its_status(status):
    child = fork()
    if child == 0:
        os._exit(status)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert ending(code) == f"exit status {status}"


def test_signals_have_their_names():
    assert [ending(-9), ending(-63), ending(None)] == ["SIGKILL", "signal 63", "in an unknown way"]
