"""The joint algorithm: calibration and runs."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from audits.paper_rows.trials.joint import nonprivate_regret
from dpaudit import Ledger, certify, guarantee
from dpaudit.certificate import SubjectRecord
from private_bo.gp import Ball, EigenFeatures, SquaredExponential
from private_bo.joint import ContinualNoise, JointGPUCB
from private_bo.joint.statistics import lemma_2_sigma
from private_bo.joint.subject import bump

SMALL = EigenFeatures(SquaredExponential(1.0), Ball(2.0, 2), 6)


@pytest.mark.parametrize("kind", list(ContinualNoise))
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 0.1), (10.0, 0.1), (1.0, 1e-5)])
def test_tight_noise_is_certified_and_not_wasteful(kind, epsilon, delta) -> None:
    algorithm = JointGPUCB(epsilon, delta, steps=100, feature_map=SMALL, continual_noise=kind)
    certificate = certify(algorithm.plan(), subject=SubjectRecord("joint"), claim=algorithm.claim())
    assert certificate.verdict == "certified"
    assert certificate.guarantee.epsilon == pytest.approx(epsilon, rel=1e-6)


def test_doubling_costs_no_more() -> None:
    algorithm = JointGPUCB(steps=100, feature_map=SMALL, doubling=True)
    assert [period.steps for period in algorithm.periods] == [1, 1, 2, 4, 8, 16, 32, 36]
    assert guarantee(algorithm.plan(), 0.1).epsilon == pytest.approx(1.0, rel=1e-6)


def test_paper_noise_declares_the_lemma_and_is_reported() -> None:
    algorithm = JointGPUCB(epsilon=10.0, steps=64, feature_map=SMALL, noise="paper")
    (invocation,) = algorithm.plan().invocations
    public = {"steps": 64, "bound": 1.0}
    assert invocation.mechanism.sigma == lemma_2_sigma(10.0, 0.1, **public)
    for fields, reading in (
        ({"lemma_logarithm": True}, {"variance": 0.25}),
        ({"noise": "printed"}, {"printed": True}),
    ):
        other = replace(algorithm, **fields).mechanism(64)
        assert other.sigma == lemma_2_sigma(10.0, 0.1, **public, **reading)
    assert invocation.sensitivity == pytest.approx(math.sqrt(2) * 2)
    assert any(finding.rule == "noise-not-calibrated" for finding in algorithm.findings())


def test_it_learns_with_little_noise_and_beats_uniform_play() -> None:
    problem = bump(np.random.default_rng(1), 300)
    algorithm = JointGPUCB(epsilon=10.0, steps=300)
    with Ledger(algorithm.plan(), rng=np.random.default_rng(0)) as ledger:
        result = algorithm.run(problem, ledger, np.random.default_rng(0))
    assert result.for_owner.summary["final regret"] < 0.4 * problem.uniform_regret()
    assert nonprivate_regret(algorithm, problem)[-1] < 0.2 * problem.uniform_regret()


def test_shorter_runs_leave_no_stream_undeclared() -> None:
    algorithm = JointGPUCB(steps=40, feature_map=SMALL, doubling=True)
    problem = bump(np.random.default_rng(0), 5)
    with Ledger(algorithm.plan(), rng=np.random.default_rng(0)) as ledger:
        algorithm.run(problem, ledger, np.random.default_rng(0))
    assert len(ledger) == len(algorithm.periods)
