"""The code of a training on neighbours of its data: what holds, and what is found else.

Statistical tests have an error rate of 1e-6 and fixed seeds.
"""

import numpy as np
import pytest
import torch
from example_losses import cross_entropy_of, small_model

from dpaudit import FloatNoise, Plan, ZeroOut
from dpaudit.auditing.noise.conformance import conformance
from dpaudit.auditing.replaying.recording import Routine
from dpaudit.auditing.replaying.replay import replay
from dpaudit.training import Adaptive, fit

PLAN = Plan.dp_sgd(noise_multiplier=1.0, sample_rate=0.5, steps=4, relation=ZeroOut())
USERS = Plan.dp_sgd(noise_multiplier=1.0, sample_rate=0.5, steps=4, unit="user", relation=ZeroOut())


def weighed(model):
    """Rows have a weight of 0 where they are taken away."""
    inner = cross_entropy_of(model)

    def loss(parameters, example):
        x, y, weight = example
        return inner(parameters, (x, y)) * weight

    return loss


def training(change=lambda x: x, **settings):
    """A routine on rows of four numbers, a class and a weight."""

    def run(data, ledger, rng):
        rows = torch.tensor(np.array(data), dtype=torch.float32)
        model = small_model()
        given = change(rows[:, :4]), rows[:, 4].long(), rows[:, 5]
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        fit(weighed(model), model, given, ledger, optimizer=optimizer, **settings)

    return run


def neighbours(size=24):
    rows = np.random.default_rng(0).normal(size=(size, 6))
    rows[:, 4], rows[:, 5] = rows[:, 0] > 0, 1.0
    rows[0, :4] *= 100  # it decides what is made of all
    without = rows.copy()
    without[0] = 0.0
    return rows, without


def found(run, plan=PLAN):
    report = replay(Routine(plan, run), *neighbours(), 3)
    return {each.rule for each in report.findings}


@pytest.mark.parametrize(
    ("settings", "plan"),
    [
        ({}, PLAN),
        ({"chunk": 5}, PLAN),
        ({"users": [f"user {row // 2}" for row in range(24)], "most_rows": 2}, USERS),
        ({}, Plan.dp_sgd(noise_multiplier=1.0, batching="disjoint", steps=6, epochs=2)),
    ],
    ids=["rows", "small chunks", "users", "disjoint"],
)
def test_one_unit_moves_what_is_released_by_what_is_declared(settings, plan):
    assert found(training(**settings), plan) == set()


def test_inputs_that_are_normalised_by_all_rows_are_found():
    def normalised(x):
        return (x - x.mean(0)) / x.std(0)

    assert "sensitivity-understated" in found(training(normalised))


def test_sums_of_another_norm_are_found(monkeypatch):
    """What a fault of the clipping would look like."""
    monkeypatch.setattr("dpaudit.training.gradients.clipped.MARGIN", -2.0)
    assert found(training()) == {"sensitivity-understated"}


def test_the_noise_conforms():
    report = conformance(
        Routine(PLAN, training()), neighbours()[0], seed=1, runs=40, error_rate=1e-6
    )
    assert report.findings == ()


def test_noise_that_is_too_small_does_not_conform(monkeypatch):
    drawn = FloatNoise.release

    def smaller(self, entry, value):
        return value + 0.9 * (drawn(self, entry, value) - value)

    monkeypatch.setattr(FloatNoise, "release", smaller)
    report = conformance(
        Routine(PLAN, training()), neighbours()[0], seed=1, runs=40, error_rate=1e-6
    )
    assert [each.rule for each in report.findings] == ["not-the-declared-noise"]


def test_adaptive_clipping_too_moves_by_what_is_declared():
    plan = Plan.dp_sgd(noise_multiplier=1.0, sample_rate=0.5, steps=4)
    rows, _ = neighbours()
    run = training(adaptive=Adaptive(), clip_norm=0.3, divisor=12.0)
    report = replay(Routine(plan, run), rows, rows[:-1], 3)  # the last one is gone
    assert {each.rule for each in report.findings} == set()
