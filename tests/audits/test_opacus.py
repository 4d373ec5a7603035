"""Training with opacus: defects and wrong loops are found, and what audits can show at all."""

from __future__ import annotations

import logging
import math

import numpy as np
import pytest
import torch
from opacus.optimizers import DPOptimizer
from scipy.stats import norm

from audits.opacus import __main__ as command
from audits.opacus.audited import Setting
from audits.opacus.audits import _event, _expected, reach
from audits.opacus.defects import (
    CHECKS,
    NEIGHBOURS,
    NORM,
    ClipAfterAveraging,
    expected_batch_audit,
    routine,
)
from audits.opacus.reachable import _nearest, chance, law
from audits.opacus.trainings import MISSED, TRAININGS
from dpaudit import Ledger
from dpaudit.auditing.replaying.recording import RecordingNoise
from dpaudit.auditing.replaying.replay import replay

# -- every defect is found by what should find it, and opacus itself passes ------------------------


ATTACKS = [check for check in CHECKS if check.method.startswith("attack")]
QUICK = [check for check in (*CHECKS, *TRAININGS) if check not in ATTACKS]


@pytest.fixture(autouse=True)
def _one_thread():
    torch.set_num_threads(1)


@pytest.mark.parametrize("check", QUICK, ids=[f"{each.subject}, {each.method}" for each in QUICK])
def test_what_should_be_found_is(check):
    said = check.look(1)
    assert check.right(said), said


def test_every_defect_has_a_method_that_finds_it():
    subjects = {check.subject for check in CHECKS}
    found = {check.subject for check in CHECKS if check.finds}
    right = {"opacus as it is", "the same with a public divisor"}
    assert subjects - found == right


# -- attacks on what opacus does -------------------------------------------------------------------


def test_the_divisor_is_found_by_attack():
    record = expected_batch_audit(public=False, runs=80, seed=0)
    assert record.refuted
    assert record.epsilon_lower > record.claim_epsilon


# -- optimizers with one mistake each --------------------------------------------------------------


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


# -- wrong trainings are refused or found, and honest ones are not ---------------------------------


@pytest.fixture(autouse=True)
def _quiet():
    logging.getLogger("opacus").setLevel(logging.ERROR)


def test_the_table_is_as_long_as_it_says():
    wrong = [each for each in TRAININGS if each.finds]
    assert len(wrong) == 36
    assert [each.subject for each in wrong if each.finds == MISSED] == [
        "inputs normalised by the data",
        "gradients of rows made of all rows",
    ]
    assert len({each.subject for each in TRAININGS}) == len(TRAININGS)


# -- what audits can show: against closed forms, and against audits --------------------------------


def test_the_law_of_whole_batches_is_that_of_one_gaussian():
    """Of 20 steps at noise 4 two Gaussians √20/4 apart: total variation and divergence."""
    p, q = law(Setting(noise=4.0, batches=1, epochs=20))
    far = math.sqrt(20) / 4
    assert np.abs(p - q).sum() / 2 == pytest.approx(2 * norm.cdf(far / 2) - 1, abs=1e-4)
    assert p @ np.log(p / q) == pytest.approx(far**2 / 2, rel=1e-3)


def test_the_law_is_that_of_drawn_scores():
    """The probability that a member's score is above another's, within 5 standard deviations."""
    setting = Setting()
    p, q = law(setting)
    above = float(p @ (np.cumsum(q) - q / 2))
    members, others = _expected(setting)
    n = len(members)
    assert abs((members > others).mean() - above) < 5 * 0.5 * n**-0.5


@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_the_nearest_mechanism_keeps_its_epsilon(epsilon):
    p, q = law(Setting())
    (p0, q0), _ = _nearest(p, q, epsilon)
    assert p0.sum() == pytest.approx(1.0, abs=1e-9)
    assert q0.sum() == pytest.approx(1.0, abs=1e-9)
    assert np.abs(np.log(p0 / q0)).max() == pytest.approx(epsilon, abs=1e-9)
    # Mixed with others of its kind it is farther from p, q: it is the nearest one.
    for other in (np.full_like(p, 1 / len(p)), q, p):
        mixed = [0.99 * side + 0.01 * other for side in (p0, q0)]
        assert p @ np.log(p0 / mixed[0]) + q @ np.log(q0 / mixed[1]) > 0


def test_of_one_run_the_chance_is_that_of_all_pairs_of_cells():
    """By enumeration; of 10 000 draws twice, within 5 standard deviations of each."""
    setting, level = Setting(noise=0.5, batches=1, epochs=1), 0.05
    p, q = law(setting)
    (p0, q0), _ = _nearest(p, q, 0.01 * setting.certified)
    ratio = (np.log(p / p0)[:, None] + np.log(q / q0)).ravel()
    order = np.argsort(-ratio)
    null, true = (np.cumsum(np.outer(*each).ravel()[order]) for each in ((p0, q0), (p, q)))
    exact = float(np.interp(level, null, true))
    assert exact > 0.15
    assert chance(setting, 0.01, 1) == pytest.approx(exact, abs=0.03)


def test_audits_show_no_more_often_what_they_can():
    """Fifteen audits of 1000 runs are above the bound by 5 standard deviations with 1e-6."""
    setting, drawing = Setting(batches=1, epochs=4), np.random.default_rng(5)
    most, found = chance(setting, 0.6, 1000), []
    for _ in range(15):
        noise = drawing.normal(0, setting.noise, (2, 1000, 4))
        sides = setting.likelihood(1 + noise[0]), setting.likelihood(noise[1])
        found.append(_event(*sides, setting, 0.95) >= 0.6 * setting.certified)
    assert np.mean(found) <= most + 5 * 0.5 * 15**-0.5
    assert most < 0.3


def test_the_page_says_what_is_out_of_reach(monkeypatch):
    from audits.opacus import audits

    monkeypatch.setattr(audits, "chance", lambda setting, share, runs: share / runs)
    page = reach(Setting(), 1)
    assert "from 1 runs on each side" in page
    assert "50% in at most 50.0%" in page
    assert "With 2 runs a bound reaches 50% in at most 25.0%" in page


# -- the table of defects --------------------------------------------------------------------------


def test_the_command_prints_a_row_a_check(capsys):
    assert command.main(["--only", "of the mean"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert "not-the-declared-noise" in lines[2]
    assert not any("UNEXPECTED" in line for line in lines)
