"""Known mistakes of tree aggregation, built into this implementation, are found."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from audits.joint import transcript
from dpaudit import Plan
from dpaudit.auditing import audit_subject
from dpaudit.mechanisms import ContinualGaussian
from private_bo.joint import JointGPUCB

SMALL = transcript.small().feature_map


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
