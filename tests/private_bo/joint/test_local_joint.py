"""The local-joint algorithm: calibration and a run."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit import Ledger, guarantee
from dpaudit.base.errors import InputError
from private_bo.gp import Ball, EigenFeatures, SquaredExponential
from private_bo.joint import LocalJointGPUCB
from private_bo.joint.statistics import lemma_5_sigmas, lemma_6_shift
from private_bo.joint.subject import bump

SMALL = EigenFeatures(SquaredExponential(1.0), Ball(2.0, 2), 6)


def algorithm(**fields) -> LocalJointGPUCB:
    return LocalJointGPUCB(**({"steps": 4, "feature_map": SMALL} | fields))


def ledger_of(subject: LocalJointGPUCB) -> Ledger:
    return Ledger(subject.plan(), rng=np.random.default_rng(0))


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 0.1), (10.0, 0.1), (1.0, 1e-5)])
def test_tight_noise_is_certified_and_not_wasteful(epsilon: float, delta: float) -> None:
    proved = guarantee(algorithm(epsilon=epsilon, delta=delta).plan(), delta).epsilon
    assert epsilon * (1 - 1e-6) < proved <= epsilon


def test_the_whole_run_is_one_release_of_each_user() -> None:
    subject = algorithm(epsilon=10.0, steps=40)
    with ledger_of(subject) as ledger:
        result = subject.run(bump(np.random.default_rng(0), 40), ledger, np.random.default_rng(0))
    assert len(ledger) == 40
    assert {entry.unit for entry in ledger} == {f"user {n}" for n in range(1, 41)}
    assert len(result.for_owner.series["cumulative regret"]) == 40


def test_papers_noise_is_shifted_by_lemma_6_and_has_one_reading() -> None:
    subject = algorithm(noise="paper", epsilon=10.0)
    sigma_x, _, _ = lemma_5_sigmas(10.0, 0.1, bound=1.0, size=SMALL.size)
    shift = lemma_6_shift(sigma_x, steps=4, size=SMALL.size, confidence=0.1)
    assert subject.learner().shift == shift
    assert algorithm().learner().shift is None
    with pytest.raises(InputError, match="noise is printed"):
        algorithm(noise="printed")
