"""Every defect is found by what should find it, and opacus itself passes."""

import numpy as np
import pytest
import torch
from opacus.optimizers import DPOptimizer

from audits.opacus import __main__ as command
from audits.opacus.attacks import expected_batch_audit
from audits.opacus.defects import CHECKS
from audits.opacus.optimizers import NEIGHBOURS, NORM, ClipAfterAveraging, routine
from dpaudit import Ledger
from dpaudit.auditing.replaying.recording import RecordingNoise
from dpaudit.auditing.replaying.replay import replay

ATTACKS = [check for check in CHECKS if check.method.startswith("attack")]
QUICK = [check for check in CHECKS if check not in ATTACKS]


@pytest.fixture(autouse=True)
def _one_thread():
    torch.set_num_threads(1)


@pytest.mark.parametrize("check", QUICK, ids=[f"{each.subject}, {each.method}" for each in QUICK])
def test_what_should_be_found_is(check):
    assert bool(check.look(1).found) is check.finds


def test_the_divisor_is_found_by_attack():
    record = expected_batch_audit(public=False, runs=80, seed=0)
    assert record.refuted
    assert record.epsilon_lower > record.claim_epsilon


def test_every_defect_has_a_method_that_finds_it():
    subjects = {check.subject for check in CHECKS}
    found = {check.subject for check in CHECKS if check.finds}
    right = {"opacus as it is", "the same with a public divisor"}
    assert subjects - found == right


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


def test_the_command_prints_a_row_a_check(capsys):
    assert command.main(["--only", "of the mean"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert "not-the-declared-noise" in lines[2]
    assert not any("UNEXPECTED" in line for line in lines)
