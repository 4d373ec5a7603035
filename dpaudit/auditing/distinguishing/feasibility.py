"""How many runs an audit needs to refute a claim at all."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpaudit.auditing.distinguishing.nulls import RARE_PILOT, RARE_SHARE, CurveNull
from dpaudit.auditing.distinguishing.rates import RatesNull
from dpaudit.auditing.evidence.power import fewest_runs
from dpaudit.base.errors import InputError
from dpaudit.certificate import Claim


class TooFewRunsError(InputError):
    """No outputs whatever could refute the claim with so few runs."""


_MOST_RUNS = 10**7
_STEPS = 64
_NEVER = 2**63  # e^30 runs and more


def require_enough_runs(
    claim: Claim,
    runs: int,
    test_runs: Callable[[int], int],
    error: float,
    curve: CurveNull | RatesNull | None,
) -> None:
    """Refuse an audit that could not refute the claim whatever it saw.

    Args:
        claim: under test.
        runs: runs a side, all stages.
        test_runs: how many of so many runs (at least 2) the joint test sees.
        error: of the joint test, 0 where it decides nothing.
        curve: an unused test of the claimed curve, if there is one; it is used up.

    Raises:
        TooFewRunsError: saying how many runs are needed.
    """
    possible = error > 0 and claim.epsilon <= 30
    fewest = fewest_runs(claim.epsilon, claim.delta, error) if possible else _NEVER
    if RARE_PILOT <= fewest < _NEVER:
        fewest = fewest_runs(claim.epsilon, claim.delta, error * (1 - RARE_SHARE))
    needed = _runs_in_all(fewest, test_runs) if fewest < _NEVER else _NEVER
    if runs >= needed:
        return
    if curve is not None:
        while not curve.refuted and curve.pairs < _MOST_RUNS and curve.pairs < needed:
            more = max(64, curve.pairs // 4)
            curve.update(np.ones(more), np.zeros(more))
        needed = min(needed, curve.pairs) if curve.refuted else needed
    if runs < needed:
        remedy = (
            f"at least {needed} are needed; give more, or a smaller epsilon to test"
            if needed < _NEVER
            else "no number of runs could; give a smaller epsilon to test"
        )
        raise TooFewRunsError(
            f"runs is {runs}; even outputs that never coincide could not refute {claim} with so "
            f"few: {remedy}."
        )


def _runs_in_all(fewest: int, test_runs: Callable[[int], int]) -> int:
    """The least number of runs from which on at least ``fewest`` are always left for the test."""
    low, high = 1, max(2, fewest)
    while test_runs(high) < fewest:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if test_runs(middle) >= fewest else (middle, high)
    # A pilot that grows in steps takes a few test runs back, so the last shortage counts.
    nearby = range(high + _STEPS, max(2, high) - 1, -1)
    short = (runs for runs in nearby if test_runs(runs) < fewest)
    return next(short, high - 1) + 1
