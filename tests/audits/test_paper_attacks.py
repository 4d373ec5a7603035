"""The attacks that were made for one algorithm of the papers alone."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from audits.catalogue.papers import FEDERATED
from audits.papers.attacks import (
    CONFIDENCE,
    CanaryLikelihoodRatio,
    _move,
    attacks,
    farthest,
    likelihood_ratio_audit,
)
from dpaudit import guarantee, privacy_curve
from dpaudit.base.errors import InputError
from private_bo.federated import DPFTS, DPFTSDE
from private_bo.joint import JointGPUCB, LocalJointGPUCB
from private_bo.local import LDPTGPUCB
from private_bo.outsourced import CertifiedCurator, Curator

# -- which algorithms have an attack of their own --------------------------------------------------


def test_local_algorithms_need_no_attack_of_their_own():
    assert attacks(LDPTGPUCB()) == ()


@pytest.mark.parametrize("subject", [DPFTS, DPFTSDE, JointGPUCB, LocalJointGPUCB])
def test_these_have_one(subject):
    assert attacks.dispatch(subject) is not attacks.dispatch(LDPTGPUCB)


def test_the_papers_curator_is_refuted_by_its_column_space():
    found = attacks(Curator())
    assert found[0].epsilon_lower == math.inf
    assert all(audit.confidence in (None, CONFIDENCE) for audit in found)


def test_the_certified_curator_is_not():
    found = attacks(CertifiedCurator())
    assert found
    assert not any(audit.refuted for audit in found)


def test_another_curator_than_the_one_attacked_is_refused():
    with pytest.raises(InputError, match="dimensions of the grid"):
        attacks(Curator(columns=3))


# -- the strongest attack on the joint algorithms --------------------------------------------------


LARGE = JointGPUCB(steps=64, noise="paper", norm_bound=100.0, reward_range=(-100.0, 100.0))


def test_large_rewards_move_the_square_that_the_lemma_forgets():
    """[φ; y] = (1, 0, y) against (0, 1, 0): squared distance 2 + 2y² + y⁴."""
    move = _move(LARGE, farthest(LARGE))
    assert np.linalg.norm(move) == pytest.approx(math.sqrt(2 + 2e4 + 1e8))


@pytest.mark.parametrize("subject", [JointGPUCB(), LocalJointGPUCB()])
def test_the_declared_sensitivity_is_reached(subject):
    """So the attack has the guarantee's own distance, and the gap is that of the runs."""
    (invocation,) = subject.plan().invocations
    distance = np.linalg.norm(_move(subject, farthest(subject)))
    assert distance == pytest.approx(invocation.sensitivity, rel=1e-9)


def test_lemma_5():
    subject = LocalJointGPUCB(epsilon=10.0, noise="paper")
    (invocation,) = subject.plan().invocations
    distance = np.linalg.norm(_move(subject, farthest(subject)))
    assert distance == pytest.approx(invocation.sensitivity, rel=1e-6)


def test_large_rewards_refute_lemma_2():
    record = likelihood_ratio_audit(LARGE, runs=3_000, confidence=CONFIDENCE)
    assert record.refuted
    truth = guarantee(LARGE.plan(), LARGE.delta).epsilon
    assert 1.0 < record.epsilon_lower < truth


def test_the_bound_on_lemma_5_is_near_the_truth_and_below_it():
    subject = LocalJointGPUCB(epsilon=10.0, noise="paper")
    record = likelihood_ratio_audit(subject, runs=1_000_000, confidence=0.9)
    assert 9.5 < record.epsilon_lower < guarantee(subject.plan(), subject.delta).epsilon


@pytest.mark.parametrize("subject", [JointGPUCB(steps=32), LocalJointGPUCB()])
def test_right_noise_is_not_refuted(subject):
    """False-alarm rate 1e-6."""
    record = likelihood_ratio_audit(subject, runs=5_000, confidence=CONFIDENCE)
    assert not record.refuted
    assert record.epsilon_lower > 0.5


def test_it_replays():
    runs = {"runs": 1_000, "confidence": 0.99, "seed": 5}
    subject = LocalJointGPUCB()
    first, second = (likelihood_ratio_audit(subject, **runs) for _ in range(2))
    assert first == second


# -- membership inference on DP-FTS-DE -------------------------------------------------------------


LANDMINES = DPFTSDE(
    agents=29, regions=4, clip=22.0, features=100, reliance="1/t", rate=0.35, rounds=40
)


def transcripts(algorithm, size):
    (pair,) = algorithm.audit_pairs()
    return [
        algorithm.audit_release(data, size, np.random.default_rng([0, side]))
        for side, data in enumerate((pair.x, pair.x_prime))
    ]


@pytest.mark.parametrize("rate", [0.35, 1.0])
def test_the_score_is_the_ratio_of_the_mixture_densities(rate):
    """Against scipy's normal density of each round's joint vector."""
    algorithm = replace(LANDMINES, rate=rate, rounds=6, sharp_rounds=2, fading_rounds=3)
    weights = algorithm.public_weights.values
    (pair,) = algorithm.audit_pairs()
    seen, _ = transcripts(algorithm, 20)
    found = CanaryLikelihoodRatio.of(algorithm)(seen)
    for transcript, score in zip(seen, found, strict=True):
        expected = 0.0
        for t, broadcast in enumerate(transcript):
            sigma = algorithm.noise_multiplier * weights[t].max() * 22 / rate
            law = multivariate_normal(cov=sigma**2 * np.eye(4))
            without = law.pdf(broadcast)
            shift = weights[t, :, pair.x["agent"]] * 22 / 2 / rate
            with_canary = rate * law.pdf(broadcast - shift) + (1 - rate) * without
            expected += math.log(with_canary / without)
        assert score == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_the_score_needs_independent_sampling():
    fixed = DPFTSDE(agents=8, rate=0.5, sampling="fixed-size", rounds=3)
    with pytest.raises(InputError, match="poisson"):
        CanaryLikelihoodRatio.of(fixed)


def test_its_loss_is_what_is_certified():
    """E[(1 − e^(ε−L))₊] against the PLD in either direction; five standard errors."""
    score, size, curve = (
        CanaryLikelihoodRatio.of(LANDMINES),
        50_000,
        privacy_curve(LANDMINES.plan()),
    )
    with_canary, without = (score(side) for side in transcripts(LANDMINES, size))
    for epsilon in (0.5, 1.5, 2.5):
        gains = [np.maximum(0, -np.expm1(epsilon - losses)) for losses in (with_canary, -without)]
        worst = max(gains, key=np.mean)
        proved = float(curve(np.array([epsilon]))[0])
        assert worst.mean() == pytest.approx(proved, abs=5 * worst.std() / size**0.5 + 1e-4)


def test_the_small_model_of_the_catalogue_has_the_same_loss():
    game = DPFTSDE(agents=20, regions=1, rate=0.25, rounds=5, delta=1e-5)
    both = (guarantee(plan, 1e-5).epsilon for plan in (game.plan(), FEDERATED))
    assert next(both) == pytest.approx(next(both), rel=1e-9)
