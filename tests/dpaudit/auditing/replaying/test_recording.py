"""Ledgers that remember values and noise, and replay them.

What is seen of one run beside its releases.
"""

import itertools
import math
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import pytest
from examples import gaussian_invocation
from rehearsals import rules

from dpaudit import (
    AddRemove,
    AuditPair,
    Contribution,
    DiscreteLaplace,
    Gaussian,
    Invocation,
    Laplace,
    Ledger,
    Plan,
    PlanMismatchError,
    PoissonSampling,
    PrivacyUnit,
    ReplaceOne,
    RunResult,
    Subject,
    TrustModel,
    UnsupportedError,
)
from dpaudit.auditing.noise.conformance import conformance, judged
from dpaudit.auditing.replaying.recording import (
    DivergedError,
    Ended,
    RecordingNoise,
    ReplayingNoise,
    Routine,
    equal,
    prepared,
    ran,
    shown,
)
from dpaudit.auditing.replaying.replay import record
from dpaudit.auditing.subjects.transcripts import audit_transcript
from dpaudit.mechanisms import StableHistogram

NOISE = Laplace(2.0, clip=(-1.0, 1.0))
PLAN = Plan.of(gaussian_invocation(mechanism=NOISE, count=3, at="round"))


def recorded(values, seed=0):
    noise = RecordingNoise(np.random.default_rng(seed))
    ledger = Ledger(PLAN, noise=noise)
    return noise, [ledger.release(NOISE, value, at="round") for value in values]


def test_recording_keeps_what_a_ledger_forgets():
    noise, released = recorded([0.5, 7.0])
    assert [step.released for step in noise.steps] == released
    assert [float(step.value) for step in noise.steps] == [0.5, 1.0]
    step = noise.steps[0]
    assert step.source.split(":")[0].endswith("test_recording")
    assert step.place == f"'round' ({step.source})"


def test_what_the_plan_does_not_hold_is_not_recorded():
    noise = RecordingNoise(np.random.default_rng(0))
    with pytest.raises(PlanMismatchError):
        Ledger(PLAN, noise=noise).release(Laplace(3.0), 0.0, at="round")
    assert noise.steps == []


def test_it_draws_as_any_ledger_does():
    plain = Ledger(PLAN, rng=np.random.default_rng(3))
    assert recorded([0.5], seed=3)[1] == [plain.release(NOISE, 0.5, at="round")]


def test_a_replay_gives_out_what_was_released():
    first, released = recorded([0.5, -0.5])
    again = ReplayingNoise(np.random.default_rng(9), first.steps)
    ledger = Ledger(PLAN, noise=again)
    assert [ledger.release(NOISE, value, at="round") for value in (0.9, 0.8)] == released
    assert [float(step.value) for step in again.steps] == [0.9, 0.8]


def test_a_replay_ends_where_the_control_flow_differs():
    first, _ = recorded([0.5])
    again = ReplayingNoise(np.random.default_rng(9), first.steps)
    ledger = Ledger(PLAN, noise=again)
    ledger.release(NOISE, 0.9, at="round")
    with pytest.raises(DivergedError):
        ledger.release(NOISE, 0.9, at="round")
    assert len(again.steps) == 2


def test_code_cannot_swallow_a_divergence():
    assert not issubclass(DivergedError, Exception)


class Foreign:
    """Noise of another library that says nothing of itself."""

    sampler = "elsewhere"

    def draw(self):
        raise AssertionError


def test_noise_that_cannot_be_recorded_is_refused():
    ledger = Ledger(PLAN, noise=RecordingNoise(np.random.default_rng(0)))
    with pytest.raises(UnsupportedError, match="elsewhere, which cannot be recorded"):
        ledger.observe(NOISE, Foreign(), at="round")


def test_values_are_prepared_as_the_mechanism_does():
    assert prepared(NOISE, 7.0).tolist() == 1.0
    assert prepared(Gaussian(1.0), [1, 2]).tolist() == [1.0, 2.0]


def sampled(units, noise):
    use = gaussian_invocation(
        mechanism=NOISE, relation=ReplaceOne(), sampling=PoissonSampling(0.5), count=20, at="round"
    )
    ledger, seen = Ledger(Plan.of(use), noise=noise), []
    for _ in range(20):
        seen.append([units[place] for place in ledger.sample(units)])
        ledger.release(NOISE, 0.0, at="round")
    return seen


def test_samples_are_kept_and_replayed_by_the_names_of_units():
    first = RecordingNoise(np.random.default_rng(0))
    seen = sampled("abcde", first)
    kept = [[unit for unit, inside in step.sample.items() if inside] for step in first.steps]
    assert kept == seen
    assert [] not in seen[:1]
    again = sampled("dac", ReplayingNoise(np.random.default_rng(1), first.steps))
    assert [set(each) for each in again] == [set(each) & set("dac") for each in seen]
    other = sampled("abcdz", ReplayingNoise(np.random.default_rng(1), first.steps))
    assert [set(each) for each in other] == [
        {"z" if unit == "e" else unit for unit in each} for each in seen
    ]
    added = sampled("abcdef", ReplayingNoise(np.random.default_rng(1), first.steps))
    assert [[unit for unit in each if unit != "f"] for each in added] == seen
    assert 0 < sum("f" in each for each in added) < 20


def test_whoever_chooses_is_asked_in_place_of_a_draw():
    first = RecordingNoise(np.random.default_rng(0), lambda use, units: [1])
    assert sampled("abc", first) == [["b"]] * 20
    again = ReplayingNoise(np.random.default_rng(0), first.steps, lambda use, units: [0, 2])
    assert sampled("abc", again) == [["a", "c"]] * 20


def test_a_sample_that_the_first_run_did_not_draw_ends_the_replay():
    with pytest.raises(DivergedError):
        sampled("abc", ReplayingNoise(np.random.default_rng(0), recorded([0.0] * 3)[0].steps))


COUNTED = StableHistogram.calibrated(epsilon=1.0, delta=1e-3, key_sensitivity=2)


def towns_plan(mechanism=COUNTED, contribution=Contribution(1.0, rows=2)):  # noqa: B008
    about = (1.0, PrivacyUnit("user"), AddRemove(), TrustModel.CENTRAL)
    return Plan.of(Invocation(mechanism, *about, at="towns", contribution=contribution))


def counted(noise, keys, units=None):
    ledger = Ledger(towns_plan(), noise=noise)
    return ledger.stable_histogram(keys, units=units, at="towns")


def test_counts_of_unknown_keys_are_compared_by_key_and_told_as_in_the_first_run():
    first = RecordingNoise(np.random.default_rng(1))
    told = counted(first, ["Ulm"] * 40 + ["Aix"] * 3 + ["Bonn"] * 50)
    assert list(told) == ["Bonn", "Ulm"]
    assert first.steps[0].handed == told
    assert first.steps[0].keys == ("Aix", "Bonn", "Ulm")
    for keys, apart in [
        (["Ulm"] * 40 + ["Aix"] * 3 + ["Bonn"] * 50, 0.0),
        (["Ulm"] * 40 + ["Aix"] * 3 + ["Bonn"] * 50 + ["Zell"], 0.5),
        (["Ulm"] * 41 + ["Aix"] * 3 + ["Bonn"] * 50 + ["Zell"], 1.0),
        (["Ulm"] * 40 + ["Aix"] * 3, 50.0),
        ([7] * 40, 50.0),
        ([], 50.0),
    ]:
        again = ReplayingNoise(np.random.default_rng(2), first.steps)
        assert counted(again, keys) == told, "of keys that nobody has here, too"
        assert first.steps[0].distance(again.steps[0]) == apart
        assert again.steps[0].distance(first.steps[0]) == apart


@dataclass(frozen=True)
class Towns(Subject):
    """How many users have each town; some have one twice, or more than two."""

    def plan(self):
        return towns_plan()

    def load(self, source, rng):
        towns = [f"town {n}" for n in np.minimum(rng.geometric(0.4, 400), 30)]
        return {"user": [f"user {n}" for n in rng.integers(0, 90, 400)], "town": towns}

    def run(self, data, ledger, rng):
        told = ledger.stable_histogram(data["town"], units=data["user"], at="towns")
        return RunResult({"towns": told})


def distinct(data):
    """Each town of each user once."""
    return Counter(town for _, town in sorted(set(zip(data["user"], data["town"], strict=True))))


class WithoutThreshold(Towns):
    """Noise alone, on the towns that occur."""

    def plan(self):
        return towns_plan(DiscreteLaplace(2.0), None)

    def run(self, data, ledger, rng):
        counts = distinct(data)
        noisy = ledger.release(DiscreteLaplace(2.0), list(counts.values()), at="towns")
        return RunResult({"towns": dict(zip(counts, noisy.tolist(), strict=True))})


class ThresholdOfTrueCounts(Towns):
    """What is told is decided before there is noise."""

    def run(self, data, ledger, rng):
        often = {town for town, count in distinct(data).items() if count >= 4}
        told = ledger.stable_histogram(data["town"], units=data["user"], at="towns")
        return RunResult({"towns": {town: n for town, n in told.items() if town in often}})


class _Alone(Towns):
    """Counts of public towns, by code of its own."""

    def plan(self):
        return towns_plan(contribution=None)

    def run(self, data, ledger, rng):
        counts = self.counts(data)
        public = [f"town {n}" for n in range(1, 31)]
        told = ledger.release(COUNTED, [counts[town] for town in public], at="towns")
        return RunResult({"towns": told.tolist()})


class MoreKeys(_Alone):
    """Nobody sees to it that a user has two towns at most."""

    def counts(self, data):
        return distinct(data)


class RowsOfOneUnit(_Alone):
    """A town that a user has twice is counted twice."""

    def counts(self, data):
        first = {}
        for user, town in zip(data["user"], data["town"], strict=True):
            if len(first.setdefault(user, [])) < 2:
                first[user].append(town)
        return Counter(town for towns in first.values() for town in towns)


class TwoOfEach(RowsOfOneUnit):
    """The same with each town of a user once."""

    def counts(self, data):
        pairs = dict.fromkeys(zip(data["user"], data["town"], strict=True))
        rows = {"user": [user for user, _ in pairs], "town": [town for _, town in pairs]}
        return super().counts(rows)


class WithoutUnits(Towns):
    """Every row counts as a user."""

    def run(self, data, ledger, rng):
        return RunResult({"towns": ledger.stable_histogram(data["town"], at="towns")})


RAISED = ("not-a-number", "refused-after-release")
"""What a release of other keys than before leads to."""


@pytest.mark.parametrize(
    ("subject", "found"),
    [
        (Towns(), set()),
        (TwoOfEach(), set()),
        (WithoutThreshold(), {"sensitivity-understated", "result-not-from-releases", *RAISED}),
        (ThresholdOfTrueCounts(), {"result-not-from-releases"}),
        (MoreKeys(), {"sensitivity-understated"}),
        (RowsOfOneUnit(), {"sensitivity-understated"}),
        (WithoutUnits(), {"sensitivity-understated"}),
    ],
    ids=lambda each: type(each).__name__,
)
def test_a_rehearsal_finds_stable_histograms_that_are_none(subject, found):
    assert rules(subject) == found


@pytest.mark.parametrize(("towns", "tested"), [([], False), (["Ulm"] * 40 + ["Aix"] * 9, True)])
def test_the_noise_behind_a_threshold_can_be_tested(towns, tested):
    counting = Routine(
        towns_plan(), lambda data, ledger, rng: ledger.stable_histogram(data, at="towns")
    )
    report = conformance(counting, towns, runs=50)
    assert report.untested == (() if tested else ("towns",))
    assert not report.findings
    spread = replace(COUNTED, scale=3 * COUNTED.scale)
    steps = record(counting, towns).run.steps
    drawn = spread.release_many([each.value for each in steps] * 50, 20, np.random.default_rng(0))
    found = judged([[replace(steps[0], released=one) for one in drawn[:, n]] for n in range(50)])
    assert {each.rule for each in found.findings} == (
        {"not-the-declared-noise"} if tested else set()
    )


def test_private_keys_have_no_transcript():
    counting = Routine(
        towns_plan(), lambda data, ledger, rng: ledger.stable_histogram(data, at="towns")
    )
    with pytest.raises(UnsupportedError, match="a transcript cannot hold private keys"):
        audit_transcript(counting, AuditPair(["Ulm"], ["Ulm", "Aix"]), epsilon=1.0, delta=1e-3)


def test_keys_that_are_others_in_each_run_are_hidden_randomness():
    numbers = itertools.count()
    naming = Routine(
        towns_plan(),
        lambda data, ledger, rng: ledger.stable_histogram([next(numbers)] * 40, at="towns"),
    )
    assert record(naming, [1]).unstable([1]).rule == "hidden-randomness"


SMALL_NOISE = Gaussian(4.0)
SMALL_PLAN = Plan.of(gaussian_invocation(mechanism=SMALL_NOISE, at="mean"))


def run(function, data=1.0):
    noise = RecordingNoise(np.random.default_rng(0))
    return ran(Routine(SMALL_PLAN, function), data, noise, np.random.default_rng(1))


def test_a_run_is_what_is_published_and_printed():
    def function(data, ledger, rng):
        print("hello")  # noqa: T201
        released = ledger.release(SMALL_NOISE, data, at="mean")
        return RunResult({"mean": released}, owner=RunResult({"true": data}))

    made = run(function)
    assert made.finished
    assert made.printed == "hello\n"
    assert list(made.shown["summary"]) == ["mean"]
    assert "true" not in str(made.shown)
    assert len(made.steps) == 1


@pytest.mark.parametrize(
    ("data", "ended", "at_the_door"),
    [(math.nan, Ended.RAISED, True), (1.0, Ended.REFUSED, True), (-1.0, Ended.RAISED, False)],
)
def test_every_end_is_told_apart(data, ended, at_the_door):
    def function(value, ledger, rng):
        if value < 0:
            raise KeyError("secret")
        ledger.release(SMALL_NOISE, value, at="mean")
        ledger.release(SMALL_NOISE, value, at="mean")

    made = run(function, data)
    assert made.ended is ended
    assert made.at_the_door == at_the_door


@pytest.mark.parametrize(
    ("one", "two", "where"),
    [
        ({"a": 1.0}, {"a": 1.0}, ""),
        ({"a": math.nan}, {"a": math.nan}, ""),
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 3]}}, "a, b"),
        ({"a": 1}, {"b": 1}, "the names"),
        ([1], [1, 2], "the result"),
        ({"a": np.zeros(2)}, {"a": np.zeros(3)}, "a"),
    ],
)
def test_a_difference_is_named_without_its_value(one, two, where):
    assert shown(one, two) == where
    assert equal(one, two) == (not where)


def test_what_cannot_be_compared_by_numpy_is_compared_as_it_is():
    assert equal("a", "a")
    assert not equal("a", None)
    assert equal(None, None)
