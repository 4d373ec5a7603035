"""One round after the other."""

from __future__ import annotations

import itertools
import math

import pytest
from accounting_builders import repeated
from accounting_truths import exact_gaussian_delta

from dpaudit.accounting.pld.accountant import PLDAccountant
from dpaudit.accounting.pld.incremental import IncrementalPLD
from dpaudit.base.errors import InputError
from dpaudit.mechanisms import (
    Gaussian,
)


def test_rounds_agree_with_their_compositions() -> None:
    schedule = list(IncrementalPLD([repeated(Gaussian(1.0), rate=0.02)], horizon=120, delta=1e-5))
    assert len(schedule) == 120
    uppers = [one.upper for one in schedule]
    assert all(later > sooner * (1 - 1e-9) for sooner, later in itertools.pairwise(uppers))
    for count in (1, 2, 11, 60, 120):
        whole = PLDAccountant().compose([repeated(Gaussian(1.0), count, rate=0.02)]).epsilon(1e-5)
        one = schedule[count - 1]
        assert max(one.lower or 0, whole.lower or 0) <= min(one.upper, whole.upper)
        assert one.upper == pytest.approx(whole.upper, rel=2e-3)


def test_rounds_end_at_the_horizon() -> None:
    rounds = IncrementalPLD([repeated(Gaussian(1.0), rate=0.5)], horizon=1, delta=1e-3)
    rounds.advance()
    with pytest.raises(InputError, match="horizon"):
        rounds.advance()
    with pytest.raises(InputError, match="delta"):
        IncrementalPLD([repeated(Gaussian(1.0), rate=0.5)], horizon=1, delta=0.0)


def test_rounds_without_hope() -> None:
    rounds = IncrementalPLD([repeated(Gaussian(1e-20), rate=0.5)], horizon=2, delta=1e-5)
    assert rounds.advance().upper == math.inf


def test_rounds_that_share_an_end_are_bounded_by_it() -> None:
    """Of plain Gaussian noise, of which k rounds are one of √k/σ."""
    schedule = list(IncrementalPLD([repeated(Gaussian(60.0))], horizon=1600, delta=1e-5))
    for count in (511, 512, 513, 1024, 1025, 1026, 1500, 1537, 1538, 1600):
        one = schedule[count - 1]
        assert exact_gaussian_delta(math.sqrt(count) / 60, one.upper) <= 1e-5
        assert one.lower is not None
        assert exact_gaussian_delta(math.sqrt(count) / 60, one.lower) >= 1e-5
        assert one.upper - one.lower < 0.01 * one.upper
