"""Runs have streams of their own, are counted once, and are the same however they are drawn."""

import os
import random
import re
import secrets
import signal
import time

import numpy as np
import pytest

from dpaudit import AuditPair, InconclusiveError, InputError
from dpaudit.auditing import BlackBox, audit_release
from dpaudit.auditing.distinguishing import experiment as experiments
from dpaudit.auditing.distinguishing.experiment import Chunk, Experiment, Side, Stage, chunks
from dpaudit.auditing.distinguishing.scores import FixedScore
from dpaudit.auditing.execution import Execution

PAIR = AuditPair(0.0, 1.0)


def noisy(data, size, rng):
    return data + rng.laplace(size=size)


class TestChunks:
    def test_cover_every_run_once(self):
        for runs in (1, 63, 64, 65, 1000, 10**6):
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
        assert "may tell the neighbours apart" in str(caught.value)
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
