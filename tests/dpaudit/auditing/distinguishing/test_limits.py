"""Foreign code that hangs is stopped, and timers of others are left as they were."""

import signal
import threading
import time
from functools import partial

import pytest

from dpaudit.auditing.children import Child, TrialTimeoutError, within_time


def in_a_thread(limit, call):
    outcome = []

    def work():
        try:
            outcome.append(within_time(limit, call))
        except (ZeroDivisionError, TrialTimeoutError) as error:
            outcome.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(10)
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]


@pytest.mark.parametrize("run", [within_time, in_a_thread])
def test_a_hang_is_stopped(run):
    started = time.monotonic()
    with pytest.raises(TrialTimeoutError):
        run(0.05, partial(time.sleep, 30))
    assert time.monotonic() - started < 10


@pytest.mark.parametrize("run", [within_time, in_a_thread])
@pytest.mark.parametrize("limit", [None, 5.0])
def test_results_and_errors_pass(run, limit):
    assert run(limit, lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        run(limit, lambda: 1 / 0)


def test_an_outer_timer_is_put_back():
    def never(*_):
        raise AssertionError

    before = signal.signal(signal.SIGALRM, never)
    try:
        signal.setitimer(signal.ITIMER_REAL, 60)
        assert within_time(5.0, lambda: within_time(3.0, lambda: 4)) == 4
        assert 50 < signal.getitimer(signal.ITIMER_REAL)[0] <= 60
        assert signal.getsignal(signal.SIGALRM) is never
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_child_keeps_a_limit_that_its_parent_has_too():
    """The handler of a timer is no child's, which has to set its own."""

    def slow(_):
        return within_time(0.2, lambda: time.sleep(30))

    def asked():
        with Child(slow) as child:
            return child.ask(0)

    with pytest.raises(TrialTimeoutError):
        within_time(20.0, asked)
