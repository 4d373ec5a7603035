"""Membership inference with shadow models."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, norm
from shifted_scores import DELTA, Shifted, gaussian_plan

from dpaudit.base.errors import InputError
from dpaudit.training.membership import MembershipAttack, audit_membership


def test_examples_that_differ_are_told_apart_by_lira_alone():
    # Each example has a level of its own, which one threshold for all cannot know.
    levels = np.random.default_rng(0).normal(scale=10.0, size=400)

    def train(mask, rng):
        return levels + 2.0 * mask + rng.normal(size=mask.size)

    auc = {
        attack: audit_membership(
            train, 400, attack=attack, shadows=16, epsilon=1.0, guesses=(50, 50), seed=0
        ).details["auc"]
        for attack in MembershipAttack
    }
    best = norm.cdf(2 / np.sqrt(2))
    assert auc[MembershipAttack.THRESHOLD] < 0.65
    assert best - 0.06 < auc[MembershipAttack.LIRA_OFFLINE] < best + 0.05
    assert best - 0.06 < auc[MembershipAttack.LIRA_ONLINE] < best + 0.05


def test_false_alarms_of_shadow_attacks_are_rare():
    # More alarms in 12 true claims at error rate 0.1 would be chance once in 10^7.
    plan, options = gaussian_plan(1.0), {"shadows": 8, "targets": 3, "guesses": (15, 15)}
    alarms = sum(
        audit_membership(
            Shifted(1.0), 60, plan=plan, delta=DELTA, seed=seed, confidence=0.9, **options
        ).refuted
        for seed in range(12)
    )
    assert alarms <= binom.isf(1e-7, 12, 0.1)


def test_workers_do_not_change_the_record():
    options = {"shadows": 4, "epsilon": 1.0, "seed": 3, "guesses": (10, 10)}
    alone, together = (
        audit_membership(Shifted(1.0), 50, workers=workers, **options) for workers in (1, 2)
    )
    assert alone == together


def test_bad_options_are_named():
    options = {"epsilon": 1.0, "seed": 0}
    with pytest.raises(InputError, match="attack is 'guess'"):
        audit_membership(Shifted(1.0), 50, attack="guess", **options)
    with pytest.raises(InputError, match="shadows is 3"):
        audit_membership(Shifted(1.0), 50, shadows=3, **options)
    with pytest.raises(InputError, match="infinite score"):
        audit_membership(lambda mask, rng: np.where(mask, np.inf, 0.0), 50, **options)
    with pytest.raises(InputError, match="dask, timeout, memory, but not journal"):
        audit_membership(Shifted(1.0), 50, journal="x", **options)
