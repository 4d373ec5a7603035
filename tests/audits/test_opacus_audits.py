"""Audits of trainings show much of what is certified, and no more."""

import numpy as np
import pytest
import torch

pytest.importorskip("opacus")

from audits.opacus.audited import NETWORKS, PATHS, PLAIN, Setting, digits, rows
from audits.opacus.audits import Row, lower_bounds, one_run, one_run_gradients, table

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
QUICK = Setting()


@pytest.fixture(autouse=True)
def _one_thread():
    torch.set_num_threads(1)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)
def test_a_canarys_coordinate_is_a_run_of_the_mechanism(path):
    """Mean q and variance z² + q(1 − q) of members, 0 and z² of others: 1e-6 by normal tails."""
    members = np.arange(300) < 150
    _, moved = path.train(QUICK, NETWORKS["CNN"](), rows(*digits(), members), 300, 1)
    steps, rate, noise = QUICK.batches * QUICK.epochs, 1 / QUICK.batches, QUICK.noise
    assert moved.shape == (300, steps)
    for side, mean, spread in (
        (moved[:150], rate, noise**2 + rate * (1 - rate)),
        (moved[150:], 0.0, noise**2),
    ):
        assert abs(side.mean() - mean) < 5 * (spread / side.size) ** 0.5
        assert abs(side.var() / spread - 1) < 5 * (2 / side.size) ** 0.5


def test_bounds_hold_and_grow_with_the_truth():
    """The mechanism itself, and one with 30 % less noise than declared, which is refuted."""
    drawing, plain = np.random.default_rng(0), Setting(noise=4.0, batches=1, epochs=20)
    shape, found = (4000, 20), []
    for noise in (4.0, 2.8):
        sides = (1 + drawing.normal(0, noise, shape), drawing.normal(0, noise, shape))
        found.append(lower_bounds(*map(plain.likelihood, sides), plain))
    assert 0.3 * plain.certified < found[0].free < plain.certified
    assert 0.7 * plain.certified < found[0].family < plain.certified
    assert found[1].family > plain.certified


@pytest.mark.parametrize("audit", [one_run, one_run_gradients])
@pytest.mark.parametrize("name", NETWORKS)
def test_one_run_shows_no_more_than_is_certified(audit, name):
    assert 0 <= audit(PATHS[2], NETWORKS[name], QUICK, 100, 0) <= QUICK.certified


def test_what_is_not_private_shows():
    assert one_run_gradients(PLAIN, NETWORKS["CNN"], QUICK, 300, 0) > QUICK.certified


def test_the_page_says_how_far_apart_both_are():
    some = Row("CNN, ledger", 2.8, "gradients", (1.0, 1.4), (2.0, 2.5), 3.0)
    page = table([some, Row("CNN, not private", None, "gradients", (5.0,), (), 1.0)], 2)
    assert "| 2.80 | gradients | 1.00 · 1.20 · 1.40 | 2.8 | 2.00 · 2.25 · 2.50 | 1.4 |" in page
    assert "| none | gradients | 5.00 · 5.00 · 5.00 |  |  |  | 1.0 |" in page
