"""What is seen of one run beside its releases."""

import math

import numpy as np
import pytest
from examples import gaussian_invocation

from dpaudit import Gaussian, Plan, RunResult
from dpaudit.auditing.replaying.recording import RecordingNoise, Routine
from dpaudit.auditing.replaying.runs import Ended, equal, ran, shown

NOISE = Gaussian(4.0)
PLAN = Plan.of(gaussian_invocation(mechanism=NOISE, at="mean"))


def run(function, data=1.0):
    noise = RecordingNoise(np.random.default_rng(0))
    return ran(Routine(PLAN, function), data, noise, np.random.default_rng(1))


def test_a_run_is_what_is_published_and_printed():
    def function(data, ledger, rng):
        print("hello")  # noqa: T201
        released = ledger.release(NOISE, data, at="mean")
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
        ledger.release(NOISE, value, at="mean")
        ledger.release(NOISE, value, at="mean")

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
