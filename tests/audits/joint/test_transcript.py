"""The transcript attack on the joint algorithm: its score is exact, and it passes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from audits.joint import transcript
from dpaudit.accounting.closed_forms.gaussian import GaussianComposition
from dpaudit.auditing import audit_subject
from private_bo.joint import JointGPUCB, LocalJointGPUCB

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
