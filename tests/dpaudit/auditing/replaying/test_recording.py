"""Ledgers that remember values and noise, and replay them."""

import numpy as np
import pytest
from examples import gaussian_invocation

from dpaudit import (
    Gaussian,
    Laplace,
    Ledger,
    Plan,
    PlanMismatchError,
    PoissonSampling,
    ReplaceOne,
    UnsupportedError,
)
from dpaudit.auditing.replaying.recording import (
    DivergedError,
    RecordingNoise,
    ReplayingNoise,
    Routine,
    prepared,
)

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


def test_a_routine_is_a_plan_and_a_function():
    routine = Routine(PLAN, lambda data, ledger, rng: data + 1)
    assert routine.plan() is PLAN
    assert routine.run(1, None, None) == 2


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
