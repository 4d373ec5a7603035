"""The local-joint protocol: one answer of each client, in order."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit import InputError, Ledger, PlanMismatchError
from private_bo.gp import Ball, EigenFeatures, SquaredExponential
from private_bo.joint import LocalJointGPUCB, Report

SMALL = EigenFeatures(SquaredExponential(1.0), Ball(2.0, 2), 6)
ARMS = np.zeros((2, 2))


def algorithm(**fields) -> LocalJointGPUCB:
    return LocalJointGPUCB(**({"steps": 4, "feature_map": SMALL} | fields))


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
