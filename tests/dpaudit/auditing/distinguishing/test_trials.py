"""Trials are the same wherever they run, and survive a kill."""

import importlib.util
import json
import signal
import subprocess
import sys
import threading
import time
from functools import partial

import numpy as np
import pytest

from dpaudit import AuditPair, InputError, TamperedError
from dpaudit.auditing import BlackBox, audit_release
from dpaudit.auditing.distinguishing.experiment import Chunk, Experiment, Side, Stage, chunks
from dpaudit.auditing.distinguishing.limits import TrialTimeoutError, within_time
from dpaudit.auditing.distinguishing.progress import progress_bar

PAIR = AuditPair(0.0, 1.0)
SETTINGS = {"epsilon": 1.0, "runs": 2000, "seed": 11}


def noisy(data, size, rng):
    return data + rng.laplace(size=size)


def counted(path, data, size, rng):
    with path.open("a") as file:
        file.write(f"{size}\n")
    return noisy(data, size, rng)


class TestChunks:
    def test_cover_every_run_once(self):
        for runs in (1, 63, 64, 65, 1000, 10**6):
            parts = list(chunks(Stage.TEST, runs))
            assert sum(part.size for part in parts) == runs
            assert [part.number for part in parts] == list(range(len(parts)))
            assert len(parts) <= 64 or parts[0].size == 16_384

    def test_have_streams_of_their_own(self):
        experiment = Experiment(noisy, PAIR, seed=1)
        first = [
            experiment.generator(stage, side, number).random()
            for stage in Stage
            for side in Side
            for number in range(3)
        ]
        assert len(set(first)) == len(first)

    def test_follow_numpy_spawning(self):
        seeds = np.random.SeedSequence(5).spawn(3)[2].spawn(2)[1].spawn(8)[7]
        drawn = Experiment(noisy, PAIR, seed=5).generator(Stage.TEST, Side.X_PRIME, 7)
        assert drawn.random() == np.random.default_rng(seeds).random()


class TestJournal:
    def test_finished_runs_are_not_repeated(self, tmp_path):
        log, journal = tmp_path / "log", tmp_path / "trials.jsonl"
        release = partial(counted, log)
        first = audit_release(release, PAIR, journal=journal, **SETTINGS)
        calls = len(log.read_text().splitlines())
        again = audit_release(release, PAIR, journal=journal, **SETTINGS)
        assert again == first == audit_release(noisy, PAIR, **SETTINGS)
        # The second time only the few runs of the checks were made.
        assert len(log.read_text().splitlines()) - calls == 6

    def test_a_cut_journal_goes_on_from_the_last_whole_line(self, tmp_path):
        log, journal = tmp_path / "log", tmp_path / "trials.jsonl"
        release = partial(counted, log)
        first = audit_release(release, PAIR, journal=journal, **SETTINGS)
        whole = journal.read_bytes()
        for keep in (10, len(whole) // 3, len(whole) - 5):
            journal.write_bytes(whole[:keep])
            assert audit_release(release, PAIR, journal=journal, **SETTINGS) == first
            assert journal.read_bytes() == whole

    def test_a_killed_process_loses_and_reuses_nothing(self, tmp_path):
        journal = tmp_path / "trials.jsonl"
        code = (
            "import time; from dpaudit import AuditPair\n"
            "from dpaudit.auditing import audit_release\n"
            "def slow(data, size, rng):\n"
            "    time.sleep(0.02); return data + rng.laplace(size=size)\n"
            f"audit_release(slow, AuditPair(0.0, 1.0), epsilon=1.0, runs=2000, seed=11, "
            f"journal={str(journal)!r})\n"
        )
        process = subprocess.Popen([sys.executable, "-c", code])
        while not journal.exists() or journal.read_bytes().count(b"\n") < 10:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        finished = journal.read_bytes().count(b"\n") - 1
        assert 0 < finished < 127
        record = audit_release(slow_of(noisy), PAIR, journal=journal, **SETTINGS)
        assert record == audit_release(noisy, PAIR, **SETTINGS)
        lines = [json.loads(line) for line in journal.read_text().splitlines()[1:]]
        places = [(line["stage"], line["number"]) for line in lines]
        assert len(set(places)) == len(places)

    def test_of_another_experiment(self, tmp_path):
        journal = tmp_path / "trials.jsonl"
        audit_release(noisy, PAIR, journal=journal, **SETTINGS)
        with pytest.raises(InputError, match="another experiment"):
            audit_release(noisy, PAIR, journal=journal, **{**SETTINGS, "seed": 12})

    def test_edited(self, tmp_path):
        journal = tmp_path / "trials.jsonl"
        audit_release(noisy, PAIR, journal=journal, **SETTINGS)
        lines = journal.read_bytes().splitlines(keepends=True)
        journal.write_bytes(b"".join([*lines[:3], *lines[4:]]))
        with pytest.raises(TamperedError, match="does not follow"):
            audit_release(noisy, PAIR, journal=journal, **SETTINGS)
        journal.write_bytes(lines[0] + b"{}\n")
        with pytest.raises(TamperedError, match="not a chunk"):
            audit_release(noisy, PAIR, journal=journal, **SETTINGS)

    def test_needs_a_seed_and_a_writable_place(self, tmp_path):
        with pytest.raises(InputError, match="seed"):
            audit_release(noisy, PAIR, journal=tmp_path / "j", epsilon=1.0)
        with pytest.raises(InputError, match="cannot be used"):
            audit_release(noisy, PAIR, journal=tmp_path / "no" / "j", **SETTINGS)


def slow_of(release):
    """The same release under the name that the killed process gave it."""

    def slow(data, size, rng):
        return release(data, size, rng)

    slow.__qualname__ = "slow"
    return slow


class TestWorkers:
    def test_functions_of_files_reach_the_workers(self, tmp_path):
        path = tmp_path / "own_code.py"
        path.write_text("def f(data, rng, size):\n    return data + rng.laplace(size=size)\n")
        spec = importlib.util.spec_from_file_location("own_code", path)
        module = importlib.util.module_from_spec(spec)
        sys.modules["own_code"] = module
        spec.loader.exec_module(module)
        try:
            box = BlackBox(module.f)
            alone = audit_release(box, PAIR, **SETTINGS)
            assert audit_release(box, PAIR, workers=2, **SETTINGS) == alone
        finally:
            del sys.modules["own_code"]

    def test_errors_of_workers_are_one_sentence(self):
        with pytest.raises(InputError, match="raised RuntimeError in runs"):
            audit_release(BlackBox(rarely_fails), PAIR, workers=2, **SETTINGS)

    @pytest.mark.skipif(
        importlib.util.find_spec("distributed") is None,
        reason="dask.distributed is not installed (extra 'cluster')",
    )
    @pytest.mark.filterwarnings("ignore")
    def test_two_dask_workers_give_the_same(self):
        from distributed import LocalCluster

        alone = audit_release(noisy, PAIR, **SETTINGS)
        with LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster:
            address = cluster.scheduler_address
            assert audit_release(noisy, PAIR, dask=address, **SETTINGS) == alone

    @pytest.mark.skipif(
        importlib.util.find_spec("distributed") is not None,
        reason="dask.distributed is installed",
    )
    def test_without_dask(self):
        with pytest.raises(InputError, match=r"install dpaudit\[cluster\]"):
            audit_release(noisy, PAIR, dask="tcp://localhost:1", **SETTINGS)


def rarely_fails(data, rng):
    if rng.random() < 0.002:
        raise RuntimeError("by chance")
    return data + rng.laplace()


class TestLimits:
    def test_threads_are_given_up(self):
        caught = []

        def work():
            try:
                within_time(0.05, partial(time.sleep, 5))
            except TrialTimeoutError as error:
                caught.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join(3)
        assert len(caught) == 1

    def test_results_and_errors_pass(self):
        for call in (lambda: 3, lambda: 1 / 0):
            outcomes = []
            for run in (partial(within_time, 5.0), partial(in_a_thread, 5.0)):
                try:
                    outcomes.append(run(call))
                except ZeroDivisionError as error:
                    outcomes.append(type(error))
            assert outcomes[0] == outcomes[1]

    def test_an_outer_timer_is_put_back(self):
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


def in_a_thread(limit, call):
    outcome = []

    def work():
        try:
            outcome.append(within_time(limit, call))
        except ZeroDivisionError as error:
            outcome.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if isinstance(outcome[0], Exception):
        raise outcome[0]
    return outcome[0]


class TestProgress:
    def test_counts_up_to_the_runs(self):
        told = []
        audit_release(noisy, PAIR, progress=lambda *now: told.append(now), **SETTINGS)
        assert told[-1] == (2000, 2000)
        assert told == sorted(told)

    def test_no_bar_without_a_terminal(self):
        with progress_bar("audit") as tell:
            assert tell is None


def test_outputs_name_the_runs_of_the_stage():
    experiment = Experiment(lambda data, size, rng: [np.nan] * size, PAIR, seed=1)
    with pytest.raises(InputError, match="NaN in runs 101 to 105 on x'"):
        experiment.outputs(Side.X_PRIME, Chunk(Stage.TEST, 20, 100, 5))
