"""A whole adaptive algorithm, attacked through its ledger."""

import numpy as np
import pytest
from examples import gaussian_invocation
from score_conformance import ScoreConformance

from dpaudit import AuditPair, Claim, Laplace, Plan
from dpaudit.auditing.replaying.recording import Routine
from dpaudit.auditing.replaying.replay import own_generator
from dpaudit.auditing.subjects.transcripts import ReplayScore, Transcripts, audit_transcript

ROUNDS = 3
NOISE = Laplace(3.0)
PLAN = Plan.of(
    *(gaussian_invocation(mechanism=NOISE, at=f"round {t}") for t in range(1, ROUNDS + 1))
)
PAIR = AuditPair(0.0, 1.0)


def adaptive(factor):
    def run(data, ledger, rng):
        released, offset = 0.0, rng.normal()
        for t in range(1, ROUNDS + 1):
            released = ledger.release(
                NOISE, factor * data + np.sin(released) + offset, at=f"round {t}"
            )

    return Routine(PLAN, run)


def test_the_score_is_the_log_ratio_of_the_transcript():
    algorithm = adaptive(1.0)
    outputs = Transcripts(algorithm, seed=4)(0.0, 5, np.random.default_rng(0))
    assert outputs.shape == (5, 1 + ROUNDS)
    assert (outputs[:, 0] == ROUNDS).all()
    released = outputs[:, 1:]
    offset = own_generator(4).normal()
    previous = np.sin(np.column_stack([np.zeros(5), released[:, :-1]])) + offset
    expected = (np.abs(released - previous - 1) - np.abs(released - previous)).sum(axis=1) / 3.0
    scores = ReplayScore(algorithm, 0.0, 1.0, seed=4)(outputs)
    assert scores == pytest.approx(expected, abs=1e-12)
    assert np.abs(scores).max() <= 1 + 1e-12


def test_other_control_flow_is_told_apart_with_certainty():
    def run(data, ledger, rng):
        for t in range(1, ROUNDS + 1) if data < 1 else (1, 2):
            ledger.release(NOISE, 0.0, at=f"round {t}")

    score = ReplayScore(Routine(PLAN, run), 0.0, 1.0)
    expected = {ROUNDS: np.inf, 2: -np.inf, 1: 0.0}
    rows = [[length] + [0.0] * ROUNDS for length in expected]
    assert score(np.array(rows)).tolist() == list(expected.values())


def test_sensitivity_that_is_understated_twofold_is_refuted_and_the_sound_one_is_not():
    options = {"epsilon": 1.0, "seed": 1}
    wrong = audit_transcript(adaptive(2.0), PAIR, runs=600, **options)
    assert wrong.refuted
    record = audit_transcript(adaptive(1.0), PAIR, runs=300, **options)
    assert not record.refuted
    assert record.epsilon_lower > 0.2
    assert record.method == "white-box transcript likelihood ratio, by replay"


class TestReplayConforms(ScoreConformance):
    score = ReplayScore(adaptive(1.0), 2.0, 0.0)
    release = Transcripts(adaptive(1.0))
    pair = AuditPair(2.0, 0.0)
    holds = Claim(2.0)
    broken = Claim(0.3)
    runs = 300
