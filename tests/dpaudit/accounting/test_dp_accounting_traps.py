"""What dp-accounting 0.6.0 gets wrong, pinned, beside the right answer.

A test that fails here after an upgrade is good news: the trap is mended.
"""

from __future__ import annotations

import math
from typing import Any

import dp_accounting as dp
import pytest
from accounting_builders import plan, poisson, use
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

from dpaudit.accounting import guarantee
from dpaudit.interchange.dp_accounting import to_dp_event
from dpaudit.mechanisms import Gaussian, Laplace, RandomizedResponse
from dpaudit.plan import AddRemove, ReplaceOne

REPLACE = dp.NeighboringRelation.REPLACE_ONE


def reference(accountant: Any, event: Any, delta: float) -> float:
    accountant.compose(event)
    return float(accountant.get_epsilon(delta))


def test_the_count_of_randomised_response_is_ignored() -> None:
    event = dp.SelfComposedDpEvent(dp.RandomizedResponseDpEvent(0.5, 2), 100)
    theirs = reference(PLDAccountant(REPLACE), event, 1e-5)
    assert theirs == pytest.approx(1.099, abs=1e-3)
    ours = guarantee(plan(use(RandomizedResponse(0.5), relation=ReplaceOne(), count=100)), 1e-5)
    assert ours.epsilon == pytest.approx(90.8, abs=0.1)


def test_replace_one_does_not_double_the_sensitivity_of_rdp() -> None:
    event = dp.GaussianDpEvent(10.0)
    theirs = reference(RdpAccountant(neighboring_relation=REPLACE), event, 1e-5)
    assert theirs == pytest.approx(0.375, abs=1e-3)
    assert reference(PLDAccountant(REPLACE), event, 1e-5) == pytest.approx(0.726, abs=1e-3)
    ours = plan(use(Gaussian(10.0), 2.0, ReplaceOne()))
    assert guarantee(ours, 1e-5).epsilon == pytest.approx(0.7255, abs=1e-4)
    assert 0.7255 < guarantee(ours, 1e-5, "rdp").epsilon < 0.8


@pytest.mark.parametrize("accountant", [RdpAccountant, PLDAccountant])
def test_there_is_no_epsilon_at_delta_zero(accountant: Any) -> None:
    tenth = plan(use(Laplace(20.0), count=10))
    assert reference(accountant(), to_dp_event(tenth), 0.0) == math.inf
    assert guarantee(tenth).epsilon == 0.5


def test_rdp_is_not_capped_by_pure_epsilon() -> None:
    one = plan(use(Laplace(0.2)))
    assert reference(RdpAccountant(), to_dp_event(one), 1e-12) > 5.0
    assert guarantee(one, 1e-12, "rdp").epsilon <= 5.0


def test_fractional_orders_of_sampled_gaussian_rdp_are_too_large() -> None:
    steps = plan(use(Gaussian(1.0), count=40, sampling=poisson(0.5)))
    delta = 200**-1.1
    theirs = reference(RdpAccountant(), to_dp_event(steps), delta)
    assert theirs == pytest.approx(18.40, abs=0.01)
    assert 17.8 < guarantee(steps, delta, "rdp").epsilon < 17.95


@pytest.mark.parametrize(
    "ledger",
    [
        plan(use(Gaussian(3.0), count=20)),
        plan(use(Gaussian(1.0), count=200, sampling=poisson(0.02))),
        plan(use(Laplace(4.0), count=20)),
        plan(use(Gaussian(5.0), count=9), use(Laplace(9.0), count=9)),
    ],
    ids=["gaussian", "sampled", "laplace", "mixed"],
)
def test_elsewhere_we_agree_or_are_tighter(ledger: Any, capfd: pytest.CaptureFixture[str]) -> None:
    event = to_dp_event(ledger)
    ours = guarantee(ledger, 1e-6, "rdp").epsilon
    capfd.readouterr()
    pld = reference(PLDAccountant(), event, 1e-6)
    rdp = reference(RdpAccountant(), event, 1e-6)
    assert pld * (1 - 1e-3) <= ours <= rdp * (1 + 1e-3)


def test_our_accountants_write_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    steps = plan(use(Gaussian(1.0), count=3, sampling=poisson(0.9), relation=AddRemove()))
    guarantee(steps, 1e-6)
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""
