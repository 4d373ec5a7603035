"""What the joint algorithms have in common: fields and data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from rehearsals import Gossip, rules
from subject_conformance import SubjectConformance

from dpaudit import InputError, Ledger
from private_bo.gp import Ball, EigenFeatures, SquaredExponential
from private_bo.joint import JointGPUCB, LocalJointGPUCB
from private_bo.joint.parties import RewardGate
from private_bo.joint.statistics import CentredStatistics
from private_bo.joint.subject import bump

SMALL = EigenFeatures(SquaredExponential(1.0), Ball(2.0, 2), 6)
ROUNDS = 8
PROBLEM = replace(
    bump(np.random.default_rng(0), ROUNDS), bernoulli=False, noise=np.full(ROUNDS, 2.0)
)


class JointConformance(SubjectConformance):
    def data(self):
        return PROBLEM

    def neighbour(self):
        """The third user's answers are below the range, where all others are above it."""
        noise = PROBLEM.noise.copy()
        noise[2] = -2.0
        return replace(PROBLEM, noise=noise)

    def bad_data(self):
        yield []
        yield bump(np.random.default_rng(0), ROUNDS + 1)
        arms = PROBLEM.arms.copy()
        arms[0, 0, 0] = np.nan
        yield replace(PROBLEM, arms=arms)


class TestJoint(JointConformance):
    subject = JointGPUCB(epsilon=10.0, steps=ROUNDS, feature_map=SMALL)


class TestLocalJoint(JointConformance):
    subject = LocalJointGPUCB(epsilon=50.0, steps=ROUNDS, feature_map=SMALL)


@pytest.mark.parametrize(
    "fields",
    [
        {"epsilon": 0.0},
        {"delta": 1.0},
        {"steps": 0},
        {"reward_range": (1.0, 1.0)},
        {"noise": "none"},
        {"continual_noise": "bush"},
        {"matrix_weight": -1.0},
        {"feature_map": "eigen"},
        {"doubling": 1},
    ],
)
def test_wrong_fields_are_refused(fields) -> None:
    with pytest.raises(InputError):
        JointGPUCB(**fields)


def test_a_longer_problem_than_declared_is_refused() -> None:
    algorithm = JointGPUCB(steps=2, feature_map=SMALL)
    with pytest.raises(InputError, match="declare more steps"):
        algorithm.run(
            bump(np.random.default_rng(0), 3), Ledger(algorithm.plan()), np.random.default_rng()
        )


KINDS = (JointGPUCB, LocalJointGPUCB)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("noise", ["tight", "paper"])
def test_a_rehearsal_finds_nothing(kind: type, noise: str) -> None:
    assert rules(kind(steps=24, feature_map=SMALL, noise=noise)) == set()


@pytest.mark.parametrize("kind", KINDS)
def test_a_rehearsal_finds_a_reward_that_is_not_clipped(
    kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither by the gate nor where it is encoded."""
    monkeypatch.setattr(CentredStatistics, "value", lambda _, reward: reward - 0.5)

    class Unclipped(kind):  # type: ignore[misc, valid-type]
        def gate(self) -> RewardGate:
            return RewardGate((-1e9, 1e9), self.out_of_range)

    assert rules(Unclipped(steps=24, feature_map=SMALL)) == {"sensitivity-understated"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_rehearsal_finds_a_regret_that_is_published(kind: type) -> None:
    mistaken = type("Mistaken", (Gossip, kind), {})
    assert rules(mistaken(steps=24, feature_map=SMALL)) == {"result-not-from-releases"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_refused_reward_tells_the_neighbours_apart(kind: type) -> None:
    refusing = kind(steps=24, feature_map=SMALL, out_of_range="refuse")
    assert rules(refusing) == {"refused-after-release", "refuses-values"}
    assert "refusal-depends-on-data" in [finding.rule for finding in refusing.findings()]
    assert "refusal-depends-on-data" not in [finding.rule for finding in kind().findings()]
