"""Server and privatiser: the law of the noise, order, and wrong input."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpaudit import InputError, Ledger
from private_bo.gp import Ball, EigenFeatures, SquaredExponential
from private_bo.joint import JointGPUCB, Noise, OutOfRange
from private_bo.joint.parties import RewardGate

SMALL = EigenFeatures(SquaredExponential(1.0), Ball(2.0, 2), 6)


def test_the_declared_noise_of_the_sums_is_their_noise() -> None:
    algorithm = JointGPUCB(steps=6, feature_map=SMALL)
    sums = []
    for seed in range(400):
        with Ledger(algorithm.plan(), rng=np.random.default_rng(seed)) as ledger:
            _, privatiser = algorithm.parties(ledger)
            for _ in range(6):
                privatiser.update(np.zeros(6), 0.5)
        sums.append(privatiser.sums())
    off = np.array([s.matrix[np.triu_indices(6, 1)] for s in sums]) / sums[0].matrix_noise
    diagonal = np.array([np.diag(s.matrix) for s in sums]) / sums[0].matrix_noise / math.sqrt(2)
    vector = np.array([s.vector for s in sums]) / sums[0].vector_noise
    for sample in (off, diagonal, vector):
        # Mean square of n normals: deviation √(2/n); false alarm 1e-8 at 5.7 deviations.
        assert abs(np.square(sample).mean() - 1) < 5.7 * math.sqrt(2 / sample.size)


def parties(**fields):
    algorithm = JointGPUCB(**({"steps": 3, "feature_map": SMALL} | fields))
    return algorithm.parties(Ledger(algorithm.plan(), rng=np.random.default_rng(0)))


@pytest.mark.parametrize("doubling", [False, True])
def test_no_noise_is_drawn_after_the_last_round(doubling: bool) -> None:
    _, privatiser = parties(doubling=doubling)
    for _ in range(3):
        privatiser.update(np.zeros(6), 0.0)
    before = privatiser.sums()
    with pytest.raises(InputError, match="steps is 3"):
        privatiser.update(np.zeros(6), 0.0)
    np.testing.assert_array_equal(before.vector, privatiser.sums().vector)
    assert privatiser.rounds == 3


def test_wrong_features_and_rewards_are_refused_before_noise() -> None:
    _, privatiser = parties()
    with pytest.raises(InputError, match=r"norm 1\.41"):
        privatiser.update(np.array([1.0, 1.0, 0, 0, 0, 0]), 0.0)
    with pytest.raises(InputError, match="shape"):
        privatiser.update(np.zeros(5), 0.0)
    with pytest.raises(InputError, match="reward is not a finite number"):
        privatiser.update(np.zeros(6), math.nan)
    assert privatiser.rounds == 0
    assert privatiser.sums() is None


def test_rewards_outside_are_clipped_and_counted_or_refused() -> None:
    gate = RewardGate((0.0, 1.0), OutOfRange.CLIP)
    assert [gate(y) for y in (-3.0, 0.4, 7.0)] == [0.0, 0.4, 1.0]
    assert gate.clipped == 2
    with pytest.raises(InputError, match="declared range") as error:
        RewardGate((0.0, 1.0), OutOfRange.REFUSE)(7.125)
    assert "7.125" not in str(error.value)  # the reward is private


@pytest.mark.parametrize("arms", [np.empty((0, 2)), np.zeros((3, 4)), np.zeros(2)])
def test_wrong_decision_sets_are_refused(arms: np.ndarray) -> None:
    server, _ = parties()
    with pytest.raises(InputError):
        server.choose(arms)


def test_memory_of_the_trees_is_logarithmic() -> None:
    algorithm = JointGPUCB(
        steps=1000, feature_map=SMALL, continual_noise="binary-tree", noise=Noise.TIGHT
    )
    with Ledger(algorithm.plan(), rng=np.random.default_rng(0)) as ledger:
        _, privatiser = algorithm.parties(ledger)
        most = 0
        for _ in range(1000):
            privatiser.update(np.zeros(6), 0.0)
            most = max(most, privatiser._stream.state_arrays)
    assert most <= 10
