"""Transcripts of the joint algorithm under attack, and the known mistakes of tree aggregation."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import joint_transcript as transcript
import numpy as np
import pytest
from numpy.typing import NDArray

from dpaudit import Plan
from dpaudit.accounting.closed_forms.additive import GaussianComposition
from dpaudit.auditing import audit_subject
from dpaudit.mechanisms import ContinualGaussian
from private_bo.joint import JointGPUCB, LocalJointGPUCB

# -- the transcript attack on the joint algorithm: its score is exact, and it passes ---------------


SMALL = transcript.small().feature_map


@pytest.mark.parametrize("kind", ["buffered", "binary-tree", "honaker-tree"])
@pytest.mark.parametrize("leaf", [0, 2])
def test_the_transcript_score_is_the_exact_likelihood_ratio(kind: str, leaf: int) -> None:
    algorithm = transcript.small(steps=4, epsilon=2.0, continual_noise=kind)
    runs = transcript.JointTranscripts(algorithm, leaf)
    x, y = ({"arm": [0.0, 0.0], "reward": r} for r in (1.0, 0.0))
    score = transcript.TranscriptLikelihoodRatio(runs, x, y)
    scores = score(runs(x, 300, np.random.default_rng(1)))
    phi = SMALL(np.zeros((1, 2)))[0]
    mechanism = algorithm.periods[0].mechanism
    column = np.linalg.solve(mechanism.factorization.noise_root(), np.arange(4) >= leaf)
    mu = np.linalg.norm(phi) * np.linalg.norm(column) / mechanism.sigma / math.sqrt(2)
    # The log-likelihood ratio is N(μ²/2, μ²) under x; 5.4 deviations are an alarm in 1e7.
    assert abs(scores.mean() - mu**2 / 2) < 5.4 * mu / math.sqrt(300)
    assert abs(scores.var() / mu**2 - 1) < 5.4 * math.sqrt(2 / 300)
    # No canary does worse than the plan's μ.
    whole = GaussianComposition(mu).epsilon(0.1).upper
    assert whole <= 2.0
    if leaf == 0 and kind == "binary-tree":
        assert mu == pytest.approx(
            mechanism.pair(algorithm.statistics.sensitivity).mu * np.linalg.norm(phi), rel=1e-6
        )


def test_the_audit_of_the_whole_algorithm_refutes_nothing() -> None:
    record = transcript.audit(transcript.small(steps=3), leaf=0, runs=100)
    assert not record.refuted
    assert "likelihood ratio" in record.method


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
