"""The strongest attack on the joint algorithms."""

from __future__ import annotations

import math

import numpy as np
import pytest

from audits.papers.attacks import CONFIDENCE
from audits.papers.joint import _move, farthest, likelihood_ratio_audit
from dpaudit import guarantee
from private_bo.joint import JointGPUCB, LocalJointGPUCB

LARGE = JointGPUCB(steps=64, noise="paper", norm_bound=100.0, reward_range=(-100.0, 100.0))


def test_large_rewards_move_the_square_that_the_lemma_forgets():
    """[φ; y] = (1, 0, y) against (0, 1, 0): squared distance 2 + 2y² + y⁴."""
    move = _move(LARGE, farthest(LARGE))
    assert np.linalg.norm(move) == pytest.approx(math.sqrt(2 + 2e4 + 1e8))


@pytest.mark.parametrize("subject", [JointGPUCB(), LocalJointGPUCB()])
def test_the_declared_sensitivity_is_reached(subject):
    """So the attack has the guarantee's own distance, and the gap is that of the runs."""
    (invocation,) = subject.plan().invocations
    distance = np.linalg.norm(_move(subject, farthest(subject)))
    assert distance == pytest.approx(invocation.sensitivity, rel=1e-9)


def test_lemma_5():
    subject = LocalJointGPUCB(epsilon=10.0, noise="paper")
    (invocation,) = subject.plan().invocations
    distance = np.linalg.norm(_move(subject, farthest(subject)))
    assert distance == pytest.approx(invocation.sensitivity, rel=1e-6)


def test_large_rewards_refute_lemma_2():
    record = likelihood_ratio_audit(LARGE, runs=3_000, confidence=CONFIDENCE)
    assert record.refuted
    truth = guarantee(LARGE.plan(), LARGE.delta).epsilon
    assert 1.0 < record.epsilon_lower < truth


def test_the_bound_on_lemma_5_is_near_the_truth_and_below_it():
    subject = LocalJointGPUCB(epsilon=10.0, noise="paper")
    record = likelihood_ratio_audit(subject, runs=1_500_000, confidence=0.9)
    assert 9.5 < record.epsilon_lower < guarantee(subject.plan(), subject.delta).epsilon


@pytest.mark.parametrize("subject", [JointGPUCB(steps=32), LocalJointGPUCB()])
def test_right_noise_is_not_refuted(subject):
    """False-alarm rate 1e-6."""
    record = likelihood_ratio_audit(subject, runs=5_000, confidence=CONFIDENCE)
    assert not record.refuted
    assert record.epsilon_lower > 0.5


def test_it_replays():
    runs = {"runs": 1_000, "confidence": 0.99, "seed": 5}
    subject = LocalJointGPUCB()
    first, second = (likelihood_ratio_audit(subject, **runs) for _ in range(2))
    assert first == second
