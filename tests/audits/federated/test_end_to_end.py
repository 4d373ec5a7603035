"""The whole federated algorithm under attack."""

from __future__ import annotations

import numpy as np
import pytest
from federated_game import ALPHA, outputs

from audits.federated.end_to_end import EndToEnd
from audits.federated.game import (
    CanaryLikelihoodRatio,
    audit,
    canary_pair,
)
from dpaudit.base.errors import InputError


def test_the_canary_moves_the_first_broadcast_alone():
    """Present and absent with the same generators: same noise, same other agents."""
    subject = EndToEnd()
    pair = canary_pair(subject)
    shift = CanaryLikelihoodRatio.of(subject).shifts[0]
    moved = 0
    for seed in range(20):
        with_canary, without = (
            subject.audit_release(data, 1, np.random.default_rng(seed))[0]
            for data in (pair.x, pair.x_prime)
        )
        assert with_canary.shape == (10, 2, 4)
        difference = with_canary[0] - without[0]
        assert difference[:, 1:] == pytest.approx(0, abs=1e-9)
        if np.abs(difference).max() > 1e-9:
            assert difference[:, 0] == pytest.approx(shift, rel=1e-9)
            moved += 1
    assert 0 < moved < 20


def test_not_refuted_and_not_blind():
    """False alarm of both parts below 1e-6: the verdict's rate, and five standard errors."""
    subject = EndToEnd(rate=1.0, regions=1, rounds=3)
    assert not audit(subject, runs=160, confidence=1 - ALPHA).refuted
    score = CanaryLikelihoodRatio.of(subject)
    seen, unseen = (score(side) for side in outputs(subject, 60))
    error = np.hypot(seen.std(), unseen.std()) / 60**0.5
    assert seen.mean() - unseen.mean() > 5 * error


def test_nonsense():
    with pytest.raises(InputError, match="present"):
        EndToEnd().audit_release({"agent": 0}, 1, np.random.default_rng(0))
