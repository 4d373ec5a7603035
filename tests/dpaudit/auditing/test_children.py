"""A child answers, and whatever it does to itself, its parent goes on and nobody is left.

Foreign code that hangs is stopped, and timers of others are left as they were.
"""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from functools import partial

import numpy as np
import pytest

from dpaudit.auditing import children
from dpaudit.auditing.children import (
    Child,
    EndedError,
    HangsError,
    TrialTimeoutError,
    generators,
    watched,
    within_time,
)
from dpaudit.base import processes


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def square(item):
    return item * item


class Test:
    def test_answers_one_question_after_the_other(self):
        with Child(square) as child:
            assert [child.ask(item) for item in (2, 3)] == [4, 9]
        assert not alive(child._process._pid)

    def test_errors_of_the_task_come_back(self):
        with Child(lambda item: {}[item]) as child, pytest.raises(KeyError):
            child.ask("no such key")

    @pytest.mark.parametrize(
        ("task", "how"),
        [
            (lambda _: os._exit(0), "exit status 0"),
            (lambda _: os._exit(9), "exit status 9"),
            (lambda _: signal.raise_signal(signal.SIGKILL), "SIGKILL"),
            (lambda _: os.kill(os.getpid(), signal.SIGTERM), "SIGTERM"),
            (lambda _: os.closerange(3, 500), "closed the files"),
            (lambda _: [os.closerange(3, 500), [os.pipe() for _ in range(20)]], "closed the files"),
            (lambda _: threading.Lock(), "TypeError when it should have answered"),
        ],
    )
    def test_a_death_says_how(self, task, how):
        with Child(task) as child, pytest.raises(EndedError, match=how):
            child.ask(None)

    def test_a_death_after_an_answer_is_that_of_the_next_question(self):
        def dies(_):
            threading.Timer(0.05, lambda: os._exit(0)).start()

        with Child(dies) as child:
            child.ask(None)
            time.sleep(0.3)
            with pytest.raises(EndedError, match="exit status 0"):
                child.ask(None)

    def test_prints_and_closed_streams_leave_the_answer_alone(self, capfd):
        def noisy(item):
            print("printed")  # noqa: T201
            os.write(1, b"written\n")
            for number in range(3):
                os.close(number)
            return item

        with Child(noisy) as child:
            assert child.ask(1) == 1
        out, err = capfd.readouterr()
        assert (out, sorted(err.split())) == ("", ["printed", "written"])

    def test_copies_that_the_code_makes_do_not_answer(self):
        def forks(item):
            with watched(None):
                os.fork()
            return item

        with Child(forks) as child:
            assert [child.ask(item) for item in range(5)] == list(range(5))

    def test_what_swallows_every_exception_is_killed_with_what_it_started(self, tmp_path):
        def stubborn(_):
            started = subprocess.Popen(["sleep", "60"])
            (tmp_path / "pid").write_text(str(started.pid))
            with watched(0.05):
                while True:
                    try:
                        time.sleep(0.01)
                    except BaseException:  # noqa: BLE001
                        continue

        begin = time.perf_counter()
        with Child(stubborn) as child, pytest.raises(HangsError):
            child.ask(None)
        assert time.perf_counter() - begin < 20
        deadline = time.monotonic() + 10
        while state(int((tmp_path / "pid").read_text())) not in ("Z", ""):
            assert time.monotonic() < deadline
            time.sleep(0.01)

    @pytest.mark.skipif(not sys.platform.startswith("linux"), reason="RLIMIT_AS")
    def test_memory_is_limited(self):
        with Child(lambda mb: len(bytearray(mb << 20)) >> 20, memory=200) as child:
            assert child.ask(50) == 50
            with pytest.raises(MemoryError):
                child.ask(400)

    def test_states_are_their_own(self):
        kept = np.random.default_rng(1)
        assert any(each is kept for each in generators())

        def draws(_):
            return kept.random(), np.random.random(), random.random()  # noqa: NPY002

        seen = []
        for _ in range(3):
            with Child(draws, reseeded=[kept]) as child:
                seen += child.ask(None)
        assert len(set(seen)) == 9

    def test_without_fork(self, monkeypatch):
        monkeypatch.setattr(processes, "CAN_FORK", False)
        with Child(lambda item: item + 1 if item else os._exit(0)) as child:
            assert child.ask(1) == 2
            with pytest.raises(EndedError, match="status 0"):
                child.ask(0)

    def test_ends_with_its_parent(self, tmp_path):
        script = tmp_path / "script.py"
        script.write_text(
            "import os, time\nfrom dpaudit.auditing.children import Child\n"
            "def sleeps(_):\n    open('child', 'w').write(str(os.getpid()))\n    time.sleep(60)\n"
            "with Child(sleeps) as child:\n    child.ask(1)\n"
        )
        parent = subprocess.Popen([sys.executable, script], cwd=tmp_path)
        deadline = time.monotonic() + 30
        while not (tmp_path / "child").exists() or not (tmp_path / "child").read_text():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        parent.kill()
        parent.wait()
        pid = int((tmp_path / "child").read_text())
        while state(pid) not in ("Z", ""):
            assert time.monotonic() < deadline
            time.sleep(0.02)


def state(pid):
    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
    return shown.stdout.strip()[:1]


def test_there_is_no_limit_outside_of_a_child():
    assert children._deadline is None
    with watched(1e-9):
        pass


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
