"""The joint algorithms under attack, and the known mistakes of tree aggregation."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpaudit import Plan
from dpaudit.auditing import audit_subject
from dpaudit.mechanisms import ContinualGaussian
from private_bo.gp import Ball, EigenFeatures, SquaredExponential
from private_bo.joint import JointGPUCB, LocalJointGPUCB

# -- the algorithms pass ---------------------------------------------------------------------------


SMALL = EigenFeatures(SquaredExponential(1.0), Ball(2.0, 2), 3)


@pytest.mark.parametrize("subject", [JointGPUCB(steps=32), LocalJointGPUCB()])
def test_the_subjects_pass_their_own_audit(subject) -> None:
    record = audit_subject(subject, subject.audit_pairs()[0], runs=1500, seed=1)
    assert not record.refuted
    assert record.epsilon_lower > 0.2


def test_the_audited_statistic_keeps_the_whole_canary() -> None:
    """Weights over time lose nothing: the statistic's μ is that of the plan."""
    subject = JointGPUCB(steps=32, feature_map=SMALL)
    x, x_prime = (
        subject.audit_release(side, 4000, np.random.default_rng(seed))
        for seed, side in enumerate(
            ({"features": [1.0, 0.0], "reward": 1.0}, {"features": [1.0, 0.0], "reward": 0.0})
        )
    )
    entry = x[:, 0, 2], x_prime[:, 0, 2]
    measured = (entry[0].mean() - entry[1].mean()) / entry[0].std() * 1.0
    (invocation,) = subject.plan().invocations
    mu = invocation.mechanism.pair(invocation.sensitivity).mu
    # Deviation of the estimate is about √(2/4000) = 0.022; 5.4 of them.
    assert measured == pytest.approx(mu, abs=0.13)


# -- known mistakes of tree aggregation, built into this implementation, are found -----------------


@dataclass(frozen=True)
class ForgottenLevels(JointGPUCB):
    """Noise for one node where a user is in many: μ is √levels times the declared one."""

    def mechanism(self, steps: int) -> ContinualGaussian:
        """The right one for a user in a single node."""
        right = super().mechanism(steps)
        return replace(right, sigma=right.sigma / right.sensitivity_factor)

    def plan(self) -> Plan:
        """As declared by who made the mistake: the right noise."""
        return JointGPUCB(
            epsilon=self.epsilon,
            delta=self.delta,
            steps=self.steps,
            feature_map=self.feature_map,
            continual_noise=self.continual_noise,
        ).plan()


@dataclass(frozen=True)
class SharedNoise(JointGPUCB):
    """The same noise in every node: differences of parameters show a user without noise."""

    def audit_release(self, data: Any, size: int, rng: np.random.Generator) -> NDArray[Any]:
        """First two prefix sums, with the canary in the second round; their difference."""
        contribution = self.contribution(data)
        sigma = self.periods[0].mechanism.sigma * math.sqrt(2)
        noise = rng.normal(scale=sigma, size=(size, *contribution.shape))
        first, second = noise, contribution + noise
        return np.asarray(second - first)


@pytest.mark.parametrize("mistake", [ForgottenLevels, SharedNoise])
def test_known_mistakes_are_found(mistake) -> None:
    subject = mistake(steps=32, feature_map=SMALL, continual_noise="binary-tree")
    record = audit_subject(subject, subject.audit_pairs()[0], runs=2500, seed=1)
    assert record.refuted
