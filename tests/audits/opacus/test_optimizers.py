"""Optimizers with one mistake each."""

import numpy as np
import pytest
import torch
from opacus.optimizers import DPOptimizer

from audits.opacus.optimizers import NEIGHBOURS, NORM, ClipAfterAveraging, routine
from dpaudit import Ledger
from dpaudit.auditing.replaying.recording import RecordingNoise
from dpaudit.auditing.replaying.replay import replay


@pytest.fixture(autouse=True)
def _one_thread():
    torch.set_num_threads(1)


def test_replay_sees_the_clipped_gradient_of_opacus():
    report = replay(routine(DPOptimizer), NEIGHBOURS.x, NEIGHBOURS.x_prime, 0)
    moved = {round(each.observed, 6) for each in report.comparisons}
    assert moved <= {0.0, NORM}
    assert NORM in moved
    wrong = replay(routine(ClipAfterAveraging), NEIGHBOURS.x, NEIGHBOURS.x_prime, 0)
    assert wrong.findings[0].rule == "sensitivity-understated"


def test_recorded_noise_is_what_the_step_used():
    subject = routine(DPOptimizer)
    noise = RecordingNoise(np.random.default_rng(0))
    ledger = Ledger(subject.plan(), noise=noise)
    weights = subject.run(NEIGHBOURS.x, ledger, np.random.default_rng(5))
    total = np.sum([step.released for step in noise.steps], axis=0)
    assert weights == pytest.approx(-0.1 * total / 8)  # learning rate, expected batch
