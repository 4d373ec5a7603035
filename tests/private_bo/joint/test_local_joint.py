"""What a client sends."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpaudit import Ledger, PlanMismatchError, guarantee
from dpaudit.errors import InputError
from private_bo.gp import Ball, EigenFeatures, SquaredExponential
from private_bo.joint import LocalJointGPUCB, Report
from private_bo.joint.local_joint import Lemma5Statistics
from private_bo.joint.problems import bump
from private_bo.joint.statistics import lemma_5_sigmas, lemma_6_shift

SMALL = EigenFeatures(SquaredExponential(1.0), Ball(2.0, 2), 6)


def algorithm(**fields) -> LocalJointGPUCB:
    return LocalJointGPUCB(**({"steps": 4, "feature_map": SMALL} | fields))


@pytest.mark.parametrize("noise", ["tight", "paper"])
@pytest.mark.parametrize("matrix_weight", [0.0, 0.3])
def test_reports_are_read_back(noise: str, matrix_weight: float) -> None:
    statistics = algorithm(noise=noise, matrix_weight=matrix_weight).statistics
    phi = np.full(6, 6**-0.5)
    value = statistics.encode(phi, 1.0)
    assert value.shape == statistics.shape
    sums = statistics.decode(value, 1, 1.0)
    np.testing.assert_allclose(sums.vector, phi * (1.0 if noise == "paper" else 0.5))
    if sums.matrix is not None:
        np.testing.assert_allclose(sums.matrix, np.outer(phi, phi))


@pytest.mark.parametrize("noise", ["tight", "paper"])
def test_no_replacement_moves_a_report_farther_and_one_as_far(noise: str) -> None:
    statistics = algorithm(noise=noise, epsilon=10.0).statistics
    rng = np.random.default_rng(0)
    widest = 0.0
    bound = 1.0 if noise == "tight" else statistics.reward_bound
    low = 0.0 if noise == "tight" else -bound
    for angle in np.linspace(0, math.pi, 721):
        # Mirrored about the diagonal of the first two features.
        half = angle / 2
        x, y = np.zeros(6), np.zeros(6)
        x[:2] = math.cos(math.pi / 4 - half), math.sin(math.pi / 4 - half)
        y[:2] = x[1], x[0]
        for reward in (low, bound):
            moved = statistics.encode(x, bound) - statistics.encode(y, reward)
            widest = max(widest, float(np.linalg.norm(moved)))
    for _ in range(300):
        x, y = rng.normal(size=(2, 6))
        x, y = x / np.linalg.norm(x), y / np.linalg.norm(y)
        moved = statistics.encode(x, bound) - statistics.encode(y, low)
        widest = max(widest, float(np.linalg.norm(moved)))
    assert widest <= statistics.sensitivity * (1 + 1e-12)
    assert widest == pytest.approx(statistics.sensitivity, rel=1e-4)


def test_lemma_5_has_the_papers_deviations() -> None:
    statistics = Lemma5Statistics.of_lemma(28, 1.0, 1e-5, 1.0)
    sigma_x, sigma_u, bound = statistics.sigma_x, statistics.sigma_u, statistics.reward_bound
    assert sigma_x**2 == pytest.approx(8 * math.log(2.5e5))
    assert bound**2 == pytest.approx(1 + 2 * math.log(8 * 28 / 1e-5))
    assert sigma_u**2 == pytest.approx(8 * bound**2 * math.log(5e5))
    # The orthogonal pair moves yφ by √2 L; the worst one does more.
    assert statistics.orthogonal_sensitivity < statistics.sensitivity
    proved = guarantee(LocalJointGPUCB(delta=1e-5, noise="paper").plan(), 1e-5).epsilon
    assert proved < 1.0


ARMS = np.zeros((2, 2))


def ledger_of(subject: LocalJointGPUCB) -> Ledger:
    return Ledger(subject.plan(), rng=np.random.default_rng(0))


def test_a_client_answers_once_and_a_name_is_charged_once() -> None:
    subject = algorithm()
    server, ledger = subject.server(), ledger_of(subject)
    client = subject.client("ann", ledger)
    report = client.answer(server.parameters(), ARMS, lambda arm: 1.0)
    with pytest.raises(InputError, match="answers once"):
        client.answer(server.parameters(), ARMS, lambda arm: 1.0)
    with pytest.raises(PlanMismatchError):
        subject.client("ann", ledger).answer(server.parameters(), ARMS, lambda arm: 1.0)
    assert len(ledger) == 1
    server.receive(report)
    with pytest.raises(InputError, match="counted"):
        server.receive(report)
    assert server.rounds == 1


def test_reports_out_of_order_or_of_wrong_shape_are_refused() -> None:
    subject = algorithm()
    server = subject.server()
    (length,) = subject.statistics.shape
    with pytest.raises(InputError, match="round 1 is expected"):
        server.receive(Report(1, "ann", np.zeros(length)))
    with pytest.raises(InputError, match="shape"):
        server.receive(Report(0, "ann", np.zeros(length + 1)))
    assert server.sums() is None


def test_nobody_is_asked_after_the_last_round() -> None:
    subject = algorithm(steps=1)
    server = subject.server()
    server.receive(Report(0, "ann", np.zeros(subject.statistics.shape)))
    with pytest.raises(InputError, match="steps is 1"):
        server.parameters()


def test_wrong_answers_cost_nothing() -> None:
    subject = algorithm(out_of_range="refuse")
    server, ledger = subject.server(), ledger_of(subject)
    client = subject.client("ann", ledger)
    for arms, reward in [(np.empty((0, 2)), 1.0), (np.zeros((1, 3)), 1.0), (ARMS, 2.0)]:
        with pytest.raises(InputError):
            client.answer(server.parameters(), arms, lambda arm, y=reward: y)
    assert len(ledger) == 0
    client.answer(server.parameters(), ARMS, lambda arm: 1.0)
    assert len(ledger) == 1


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
