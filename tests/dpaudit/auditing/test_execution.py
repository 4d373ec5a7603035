"""Tasks give the same wherever they run, and no process outlives its audit.

A bar where somebody sees it.
"""

import importlib.util
import io
import os
import re
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from dpaudit import AuditPair, InputError, UnsupportedError
from dpaudit.auditing import audit_release, progress_bar
from dpaudit.auditing.execution import ONE_THREAD, Execution, workers
from dpaudit.training.membership.shadows import Role, random_masks, train_models

PAIR = AuditPair(0.0, 1.0)
SETTINGS = {"epsilon": 1.0, "runs": 2000, "seed": 11}

SCRIPT = """
import os, sys, time
from dpaudit.auditing.execution import Execution, workers

def slow(seconds):
    print(os.getpid(), file=sys.stderr, flush=True)
    time.sleep(seconds)

with workers(Execution(workers=2)) as mapped:
    print("begun", flush=True)
    list(mapped(slow, [1000, 1000]))
"""
LIMIT = 120
"""Seconds that a loaded machine may take; far less than the tasks sleep."""


def noisy(data, size, rng):
    return data + rng.laplace(size=size)


def shifted(mask, rng):
    return mask + rng.normal(size=mask.size)


def threads(_):
    return os.environ["OMP_NUM_THREADS"], os.environ["OPENBLAS_NUM_THREADS"], os.getpid()


def fails(item):
    if item == 3:
        raise InputError("item is 3; it must not be.")
    return item


@pytest.fixture(scope="module")
def started():
    """Two processes for the whole module, which take a second to start, and their threads."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("OMP_NUM_THREADS", "3")
        environment.delenv("OPENBLAS_NUM_THREADS", raising=False)
        with workers(Execution(workers=2)) as mapped:
            found = [*mapped(threads, range(20))]
            left = {name: os.environ.get(name) for name in ONE_THREAD}
            yield mapped, found, left


@pytest.fixture
def mapped(started):
    return started[0]


class TestProcesses:
    def test_results_come_in_the_order_of_the_items(self, mapped):
        sleeps = [0.2, 0.0, 0.1, 0.0]
        delayed = partial(lambda sleeps, item: time.sleep(sleeps[item]) or item, sleeps)
        assert [*mapped(delayed, range(4))] == [0, 1, 2, 3]

    def test_have_one_thread_each_and_leave_this_process_as_it_was(self, started):
        _, found, left = started
        assert {each[:2] for each in found} == {("1", "1")}
        assert os.getpid() not in {each[2] for each in found}
        assert left["OMP_NUM_THREADS"] == "3"
        assert left["OPENBLAS_NUM_THREADS"] is None

    def test_trainings_are_the_same(self, mapped):
        masks = random_masks(4, 10, 0, Role.TARGET_MASKS)
        alone, together = (
            train_models(shifted, masks, 3, Role.TARGETS, each) for each in (map, mapped)
        )
        np.testing.assert_array_equal(alone, together)

    def test_errors_of_the_code_come_back(self, mapped):
        with pytest.raises(InputError, match="item is 3; it must not be"):
            [*mapped(fails, range(6))]

    def test_code_that_ends_its_process_is_one_sentence(self):
        with (
            workers(Execution(workers=2)) as mapped,
            pytest.raises(InputError, match=r"a worker process gave up \(BrokenProcessPool\)"),
        ):
            [*mapped(os._exit, [1, 1])]

    def test_what_cannot_be_sent_is_one_sentence(self, mapped):
        lock = threading.Lock()
        with pytest.raises(InputError, match="cannot be sent to another process") as caught:
            [*mapped(lambda item: lock, [1])]
        assert "\n" not in str(caught.value)

    def test_what_nobody_waits_for_is_ended(self):
        start = time.perf_counter()
        with workers(Execution(workers=2)) as mapped:
            assert next(iter(mapped(time.sleep, [0, 60, 60, 60]))) is None
        assert time.perf_counter() - start < 20


class TestCode:
    @pytest.fixture
    def module(self, tmp_path):
        """A module that was loaded from a file, by a name that the standard library has too."""
        path = tmp_path / "statistics.py"
        path.write_text(
            "def helper(data):\n    return data\n"
            "def f(data, rng, size):\n    return helper(data) + rng.laplace(size=size)\n"
        )
        spec = importlib.util.spec_from_file_location("own_statistics", path)
        module = importlib.util.module_from_spec(spec)
        sys.modules["own_statistics"] = module
        spec.loader.exec_module(module)
        yield module
        del sys.modules["own_statistics"]

    def test_of_a_file_reaches_the_workers(self, module, mapped):
        draw = partial(module.f, 1.0, size=3)
        rngs = [np.random.default_rng(seed) for seed in range(2)]
        alone = [draw(np.random.default_rng(seed)) for seed in range(2)]
        np.testing.assert_array_equal([*mapped(draw, rngs)], alone)

    def test_of_a_script_is_not_started_again(self, tmp_path):
        """Functions of ``__main__`` travel, and the script needs no guard."""
        path = tmp_path / "script.py"
        path.write_text(
            "from dpaudit.auditing.execution import Execution, workers\n"
            "print('started')\n"
            "def square(item):\n    return item * item\n"
            "with workers(Execution(workers=2)) as mapped:\n"
            "    print(list(mapped(square, range(4))))\n"
        )
        done = subprocess.run(
            [sys.executable, str(path)], capture_output=True, text=True, check=True
        )
        assert done.stdout == "started\n[0, 1, 4, 9]\n"

    def test_that_prints_leaves_stdout_to_the_answer(self, mapped):
        assert [*mapped(lambda _: sys.stdout is sys.stderr, range(4))] == [True] * 4


@pytest.mark.usefixtures("interruptible")
class TestEnd:
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
    def test_workers_end_with_the_audit(self, number):
        with subprocess.Popen(
            [sys.executable, "-c", SCRIPT],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                assert process.stdout.readline() == "begun\n"
                children = [int(process.stderr.readline()) for _ in range(2)]
                process.send_signal(number)
                assert process.wait(LIMIT) == -number
            finally:
                process.kill()
        deadline = time.monotonic() + LIMIT
        while any(map(alive, children)):
            assert time.monotonic() < deadline
            time.sleep(0.05)


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A process whose parent was killed may stay as an entry until someone collects it.
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


class TestCluster:
    @pytest.mark.filterwarnings("ignore")
    def test_gives_the_same(self):
        distributed = pytest.importorskip("distributed", reason="the extra 'cluster' is missing")
        alone = audit_release(noisy, PAIR, **SETTINGS)
        with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster:
            address = cluster.scheduler_address
            assert audit_release(noisy, PAIR, dask=address, **SETTINGS) == alone
            with (
                workers(Execution(dask=address)) as mapped,
                pytest.raises(InputError, match="item is 3"),
            ):
                [*mapped(fails, range(6))]

    @pytest.mark.filterwarnings("ignore")
    def test_without_a_scheduler(self):
        pytest.importorskip("distributed", reason="the extra 'cluster' is missing")
        with pytest.raises(InputError, match="no scheduler answers there"):
            audit_release(noisy, PAIR, dask="nonsense://localhost:1", **SETTINGS)

    def test_without_dask(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "distributed", None)
        with pytest.raises(UnsupportedError, match=r"install 'dpaudit\[cluster\]'"):
            audit_release(noisy, PAIR, dask="tcp://localhost:1", **SETTINGS)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_no_bar_without_a_terminal(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress_bar("audit") as tell:
        assert tell is None


def terminal_of(monkeypatch, patience=-1.0):
    monkeypatch.setattr(sys, "stderr", shown := Terminal())
    monkeypatch.setattr("dpaudit.auditing.execution.PATIENCE", patience)
    monkeypatch.setenv("COLUMNS", "80")
    return shown


def test_a_bar_names_what_runs_with_rate_and_remaining_time(monkeypatch, capsys):
    terminal = terminal_of(monkeypatch)
    with progress_bar("noisy sum") as tell:
        for done in range(0, 1001, 100):
            tell(done, 2000)
            time.sleep(0.03)
        time.sleep(0.2)
    assert "noisy sum" in terminal.getvalue()
    assert re.search(r"1000 of 2000, [\d.e+]+/s, 0:00:\d\d left", terminal.getvalue())
    assert capsys.readouterr().out == ""


NAMES = "noisy sum", "attack on private_bo.outsourced:OutsourcedGPUCB[/] with printed noise"


@pytest.mark.parametrize("columns", [60, 80, 120])
@pytest.mark.parametrize("name", NAMES)
def test_name_total_rate_and_time_left_are_whole_at_any_width(monkeypatch, columns, name):
    """The name is all there; total, rate and time left stand on one line, without exponents."""
    terminal = terminal_of(monkeypatch)
    monkeypatch.setenv("COLUMNS", str(columns))
    with progress_bar("the whole of it"), progress_bar(name) as tell:
        for done in range(0, 1001, 100):
            tell(1000 * done, 4_000_000)
            time.sleep(0.01)
        time.sleep(0.2)
    shown = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", terminal.getvalue())
    assert name.replace(" ", "") in re.sub(r"\s", "", shown)
    assert re.search(r"━ 1000000 of 4000000, \d+/s, 0:00:\d\d left", shown)
    assert max(map(len, re.split(r"[\r\n]+", shown))) <= columns


@pytest.mark.parametrize(
    ("speed", "rate"),
    [(2290.4, "2290"), (238_412.0, "238000"), (1.5e9, "1500000000"), (0.25, "0.25")],
)
def test_a_rate_has_three_digits_and_no_exponent(monkeypatch, speed, rate):
    monkeypatch.setattr("rich.progress.Task.speed", speed)
    terminal = terminal_of(monkeypatch)
    with progress_bar("audit") as tell:
        tell(1, 2)
        time.sleep(0.2)
    assert f"1 of 2, {rate}/s" in terminal.getvalue()


def test_what_is_counted_elsewhere_is_asked_for(monkeypatch):
    terminal = terminal_of(monkeypatch)
    with progress_bar("the whole"), progress_bar("releases", lambda: (7, 9)) as tell:
        time.sleep(0.2)
        assert "7 of 9" in terminal.getvalue()
        assert "the whole" in terminal.getvalue()
        assert tell is not None


def test_what_is_quick_draws_nothing(monkeypatch):
    terminal = terminal_of(monkeypatch, patience=2.0)
    with progress_bar("quick") as tell:
        tell(1, 2)
    assert "quick" not in terminal.getvalue()
