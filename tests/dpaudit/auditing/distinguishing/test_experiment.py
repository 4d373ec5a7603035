"""Runs have streams of their own, are counted once, and are the same however they are drawn.

Stages are cut into chunks that hold every run once.
A killed audit goes on where it was; a journal of another audit or a damaged one is refused.
"""

import json
import os
import random
import re
import resource
import secrets
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

from dpaudit import AuditPair, InconclusiveError, InputError, TamperedError
from dpaudit.auditing import BlackBox, audit_release
from dpaudit.auditing.distinguishing import experiment as experiments
from dpaudit.auditing.distinguishing.experiment import (
    Chunk,
    Experiment,
    Side,
    Stage,
    TrialJournal,
    chunks,
)
from dpaudit.auditing.distinguishing.scores import FixedScore
from dpaudit.auditing.execution import Execution
from dpaudit.base.errors import JournalError

PAIR = AuditPair(0.0, 1.0)


def noisy(data, size, rng):
    return data + rng.laplace(size=size)


class TestChunks:
    def test_cover_every_run_once(self):
        for runs in (1, 63, 64, 65, 10_000, 3_000_001):
            parts = list(chunks(Stage.TEST, runs))
            assert sum(part.size for part in parts) == runs
            assert [part.number for part in parts] == list(range(len(parts)))
            assert [part.start for part in parts] == [
                sum(part.size for part in parts[:number]) for number in range(len(parts))
            ]
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


class TestOutputs:
    def test_are_those_of_the_side(self):
        experiment = Experiment(lambda data, size, rng: np.full(size, data), PAIR, seed=1)
        chunk = Chunk(Stage.TEST, 0, 0, 3)
        assert experiment.outputs(Side.X, chunk).tolist() == [0.0] * 3
        assert experiment.outputs(Side.X_PRIME, chunk).tolist() == [1.0] * 3

    def test_that_are_wrong_name_the_runs_of_the_stage(self):
        experiment = Experiment(lambda data, size, rng: [np.nan] * size, PAIR, seed=1)
        with pytest.raises(InputError, match="NaN in runs 101 to 105 on x'"):
            experiment.outputs(Side.X_PRIME, Chunk(Stage.TEST, 20, 100, 5))

    def test_can_be_asked_for_one_by_one(self):
        sizes = []

        def batch(data, size, rng):
            sizes.append(size)
            data.append(size)
            return data[0] + rng.laplace(size=size)

        experiment = Experiment(batch, AuditPair([0.0], [1.0]), seed=1, one_by_one=True)
        assert experiment.outputs(Side.X, Chunk(Stage.TEST, 0, 0, 5)).shape == (5,)
        assert sizes == [1] * 5
        assert experiment.pair.x == [0.0]

    def test_are_given_scores_side_by_side(self):
        chunk = Chunk(Stage.TEST, 0, 0, 50)
        experiment = Experiment(noisy, PAIR, seed=1)
        outputs = experiment.both(chunk)
        scores = experiment.both(chunk, [FixedScore(np.negative)])
        np.testing.assert_array_equal(np.negative(outputs), [side[:, 0] for side in scores])
        with pytest.raises(InputError, match="one number for each of 50 outputs"):
            experiment.both(chunk, [FixedScore(lambda outputs: outputs[:1])])


class TestTrials:
    def test_are_the_chunks_of_a_stage_in_order(self):
        experiment = Experiment(noisy, PAIR, seed=1)
        with experiment.trials(Execution(), {}) as trials:
            whole = trials.whole(Stage.PILOT, 130)
        parts = [experiment.both(chunk) for chunk in chunks(Stage.PILOT, 130)]
        np.testing.assert_array_equal(whole, np.hstack(parts))

    def test_end_where_nobody_asks_for_more(self):
        done = []

        def counted(data, size, rng):
            done.append(size)
            return noisy(data, size, rng)

        experiment = Experiment(counted, PAIR, seed=1)
        with experiment.trials(Execution(), {}) as trials:
            next(trials.stage(Stage.TEST, 6400))
        assert done == [100, 100]

    def test_are_counted_up_to_the_runs(self):
        told = []
        settings = {"epsilon": 1.0, "runs": 2000, "seed": 11}
        audit_release(noisy, PAIR, progress=lambda *now: told.append(now), **settings)
        assert told[-1] == (2000, 2000)
        assert told == sorted(told)


SETTINGS = {"epsilon": 2.0, "runs": 640, "seed": 1}
KEPT = np.random.default_rng(1)
OLD, OTHER = np.random.RandomState(1), random.Random(1)


def stubborn():
    while True:
        try:
            time.sleep(0.01)
        except BaseException:  # noqa: BLE001
            continue


@pytest.mark.processes
class TestProcesses:
    def audited(self, function, **settings):
        return audit_release(BlackBox(function), PAIR, **{**SETTINGS, **settings})

    def test_give_the_same_however_many(self, monkeypatch):
        record = audit_release(noisy, PAIR, **SETTINGS)
        for number in (0, 1, 3):
            monkeypatch.setattr(experiments, "CHILDREN", number)
            assert audit_release(noisy, PAIR, **SETTINGS) == record

    @pytest.mark.parametrize(
        ("ends", "how"),
        [
            (lambda: os._exit(0), "ended its process .*: exit status 0"),
            (lambda: signal.raise_signal(signal.SIGKILL), "ended its process .*: SIGKILL"),
            (lambda: os.closerange(3, 300), "closed the files"),
            (stubborn, r"took more than 0\.05 s a run"),
            (lambda: bytearray(2**30), "memory of 200 MB"),
        ],
    )
    def test_an_end_on_one_side_is_told_with_the_side(self, ends, how):
        def one_sided(data, rng):
            if data == 1.0 and rng.random() < 0.1:
                ends()
            return data + rng.laplace()

        settings = {"timeout": 0.05} if ends is stubborn else {"memory": 200}
        with pytest.raises(InconclusiveError, match=how) as caught:
            self.audited(one_sided, **settings)
        assert re.search(r" in runs \d+ to \d+ on x'", str(caught.value))
        assert "may distinguish the neighbours" in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_an_end_on_both_sides_is_inconclusive_in_workers_too(self):
        with pytest.raises(InconclusiveError, match="ended its process in runs 1 to 4 on x: exit"):
            self.audited(lambda data, rng: os._exit(0), workers=2)

        def rare(data, rng):
            if rng.random() < 0.01:
                os._exit(0)
            return data + rng.laplace()

        with pytest.raises(InconclusiveError, match=r"ended its process .* exit status 0"):
            self.audited(rare, workers=2)

    def test_own_randomness_is_as_good_as_any(self, monkeypatch):
        """Where one source is the same in two processes, its column of the pilot repeats."""
        torch = pytest.importorskip("torch")

        def drawn(data):
            return [
                np.random.laplace(),  # noqa: NPY002
                random.gauss(0, 2),
                np.log((secrets.randbelow(10**9) + 1) / (secrets.randbelow(10**9) + 1)),
                KEPT.laplace(),
                OLD.laplace(),
                OTHER.gauss(0, 2),
                float(torch.randn(1)) * 2,
            ]

        first = FixedScore(lambda outputs: outputs[:, 0])
        record = self.audited(drawn, score=first)
        assert not record.refuted
        assert "cannot be replayed" in record.details["own_randomness"]
        monkeypatch.setattr(experiments, "CHILDREN", 0)
        assert self.audited(lambda data: data + 0.1 * KEPT.laplace()).refuted


JOURNALLED = {"epsilon": 1.0, "runs": 600, "seed": 11}


def counted(path, data, size, rng):
    with path.open("a") as file:
        file.write(f"{size}\n")
    return noisy(data, size, rng)


@pytest.fixture
def journal(tmp_path):
    return tmp_path / "trials.jsonl"


class TestAudits:
    def test_finished_runs_are_not_repeated(self, tmp_path, journal):
        log = tmp_path / "log"
        release = partial(counted, log)
        first = audit_release(release, PAIR, journal=journal, **JOURNALLED)
        calls = len(log.read_text().splitlines())
        again = audit_release(release, PAIR, journal=journal, **JOURNALLED)
        assert again == first == audit_release(noisy, PAIR, **JOURNALLED)
        # The second time only the few runs of the checks were made.
        assert len(log.read_text().splitlines()) - calls == 6

    def test_lines_that_are_cut_or_missing_are_made_again(self, journal):
        first = audit_release(noisy, PAIR, journal=journal, **JOURNALLED)
        whole = journal.read_bytes()
        lines = whole.splitlines(keepends=True)
        for kept in (whole[:10], whole[: len(whole) // 3], whole[:-5], b""):
            journal.write_bytes(kept)
            assert audit_release(noisy, PAIR, journal=journal, **JOURNALLED) == first
            assert journal.read_bytes() == whole
        journal.write_bytes(b"".join([*lines[:3], *lines[4:]]))
        assert audit_release(noisy, PAIR, journal=journal, **JOURNALLED) == first
        assert sorted(journal.read_bytes().splitlines()) == sorted(whole.splitlines())

    def test_a_killed_process_loses_and_reuses_nothing(self, journal):
        code = (
            "import time; from dpaudit import AuditPair\n"
            "from dpaudit.auditing import audit_release\n"
            "def slow(data, size, rng):\n"
            "    time.sleep(0.02); return data + rng.laplace(size=size)\n"
            f"audit_release(slow, AuditPair(0.0, 1.0), epsilon=1.0, runs=600, seed=11, "
            f"journal={str(journal)!r})\n"
        )
        process = subprocess.Popen([sys.executable, "-c", code])
        while not journal.exists() or journal.read_bytes().count(b"\n") < 10:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        finished = journal.read_bytes().count(b"\n") - 1
        assert 0 < finished < 110
        record = audit_release(slow_of(noisy), PAIR, journal=journal, **JOURNALLED)
        assert record == audit_release(noisy, PAIR, **JOURNALLED)
        lines = [json.loads(line) for line in journal.read_text().splitlines()[1:]]
        places = [(line["stage"], line["number"]) for line in lines]
        assert len(set(places)) == len(places)

    def test_several_processes_keep_one_journal(self, journal):
        settings = {**JOURNALLED, "runs": 64}  # each of which is a chunk
        alone = audit_release(noisy, PAIR, **settings)
        assert audit_release(noisy, PAIR, journal=journal, workers=2, **settings) == alone
        assert audit_release(noisy, PAIR, journal=journal, **settings) == alone


def slow_of(release):
    """The same release under the name that the killed process gave it."""

    def slow(data, size, rng):
        return release(data, size, rng)

    slow.__qualname__ = "slow"
    return slow


@dataclass(frozen=True)
class Scaled:
    scale: float

    def release(self, data, size, rng):
        return data + rng.laplace(scale=self.scale, size=size)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The journal of an audit."""
    path = tmp_path_factory.mktemp("audit") / "trials.jsonl"
    audit_release(Scaled(1.0).release, PAIR, journal=path, **JOURNALLED)
    return path.read_bytes()


class TestRefusals:
    @pytest.mark.parametrize(
        ("release", "pair", "settings"),
        [
            (Scaled(1.0).release, PAIR, {"seed": 12}),
            (Scaled(1.0).release, PAIR, {"runs": 700}),
            (Scaled(1.0).release, PAIR, {"epsilon": 0.9}),
            (Scaled(1.0).release, AuditPair(0.0, 0.5), {}),
            (Scaled(2.0).release, PAIR, {}),
            (noisy, PAIR, {}),
        ],
    )
    def test_of_another_audit(self, journal, written, release, pair, settings):
        journal.write_bytes(written)
        with pytest.raises(InputError, match="belongs to another experiment"):
            audit_release(release, pair, journal=journal, **{**JOURNALLED, **settings})

    def test_of_damage(self, journal):
        audit_release(noisy, PAIR, journal=journal, **JOURNALLED)
        lines = journal.read_bytes().splitlines(keepends=True)
        edited = lines[3].replace(b'"number":2', b'"number":1')
        assert edited != lines[3]
        for wrong in (edited, b"{}\n", b"[]\n", b"\xff\n", lines[3][:-20] + b"\n"):
            journal.write_bytes(b"".join([*lines[:3], wrong, *lines[4:]]))
            with pytest.raises(TamperedError, match=r"line 4 of journal .* is damaged") as caught:
                audit_release(noisy, PAIR, journal=journal, **JOURNALLED)
            assert "\n" not in str(caught.value)

    def test_of_a_chunk_of_another_experiment(self, tmp_path):
        one, two = (TrialJournal(tmp_path / name, {"name": name}) for name in ("one", "two"))
        with one, two:
            one.append(1, 0, (np.zeros(2), np.ones(2)))
        moved = (tmp_path / "one").read_bytes().splitlines(keepends=True)[1]
        whole = (tmp_path / "two").read_bytes()
        (tmp_path / "two").write_bytes(whole + moved)
        with pytest.raises(TamperedError, match="line 2"):
            TrialJournal(tmp_path / "two", {"name": "two"})

    def test_of_an_unwritable_place_and_a_missing_seed(self, tmp_path):
        with pytest.raises(InputError, match="seed"):
            audit_release(noisy, PAIR, journal=tmp_path / "j", epsilon=1.0)
        with pytest.raises(InputError, match="cannot be used"):
            audit_release(noisy, PAIR, journal=tmp_path / "no" / "j", **JOURNALLED)


def test_arrays_come_back_as_they_were(journal):
    both = np.array([[1.0, -np.inf], [0.1, 2.0**-1074]]), np.empty((0, 2))
    with TrialJournal(journal, {}) as written:
        written.append(2, 7, both)
    with TrialJournal(journal, {}) as read:
        for was, found in zip(both, read.finished(2)[7], strict=True):
            np.testing.assert_array_equal(was, found)
        assert read.finished(1) == {}


@pytest.mark.parametrize("content", ["notes", "notes\nof mine", "{}\n", "\n\n"])
def test_a_file_of_somebody_else_stays_as_it_is(journal, content):
    journal.write_text(content)
    with pytest.raises(InputError, match="belongs to another experiment"):
        TrialJournal(journal, {"seed": 1})
    assert journal.read_text() == content


def test_a_chunk_without_room_leaves_no_half(journal):
    some = np.zeros(100)
    with TrialJournal(journal, {"seed": 1}) as trials:
        trials.append(0, 0, (some, some))
        before = journal.read_bytes()
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 99, limits[1]))
        try:
            with pytest.raises(JournalError, match=r"cannot be written: .*; the runs"):
                trials.append(0, 1, (some, some))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert journal.read_bytes() == before
    with TrialJournal(journal, {"seed": 1}) as trials:
        assert list(trials.finished(0)) == [0]
