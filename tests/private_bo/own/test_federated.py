"""Federated agents: what they send, what they make of a broadcast, and what it costs."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import pytest
from subject_conformance import SubjectConformance

from dpaudit import Ledger, guarantee
from dpaudit.base.errors import InputError
from private_bo.federated import Broadcast
from private_bo.gp import SquaredExponential
from private_bo.own import BoxSpace, FederatedStudy
from private_bo.own.studies import ConstantUser


def liking(x, taste):
    return float(np.exp(-8 * np.square(x - 0.4).sum())) + 0.01 * taste


class TestConformance(SubjectConformance):
    subject = FederatedStudy(objective=liking, users=3, rounds=2, evaluations=2, features=12)

    def data(self):
        return list(range(3))

    def neighbour(self):
        return [ConstantUser(0.5), *range(1, 3)]

    def bad_data(self):
        return [[1.0], "records", [float("nan")] * 3]


@pytest.mark.parametrize(("epsilon", "rounds"), [(1.0, 3), (0.3, 1)])
def test_the_plan_proves_the_claim(epsilon, rounds):
    study = FederatedStudy(epsilon=epsilon, rounds=rounds, users=50)
    assert guarantee(study.plan(), 1e-5).epsilon == pytest.approx(epsilon, rel=1e-3)
    assert guarantee(study.plan(), 1e-5).epsilon <= epsilon


def agent(**fields):
    study = FederatedStudy(**({"users": 4, "space": BoxSpace((0.0,), (1.0,))} | fields))
    return study, study.agent(2, np.random.default_rng(0))


def test_a_report_is_the_posterior_mean_of_the_own_data():
    study, one = agent(answers=(0.0, 4.0))
    points = []
    for number in range(5):
        question = one.ask()
        points.append(question.point)
        if number != 3:  # never told
            one.tell(question.number, 2 + np.sin(5 * question.point[0]))
    del points[3]
    phi = study.maps[0](np.array(points))
    seen = np.sin(5 * np.array(points)[:, 0]) / 4
    mean = 0.09 * phi.T @ np.linalg.solve(0.09 * phi @ phi.T + 0.01 * np.eye(4), seen)
    report = one.report(1)
    assert report.vector[: len(mean)] == pytest.approx(mean, abs=1e-9)
    assert not report.vector[len(mean) :].any()
    assert (report.round, report.agent) == (1, 2)


def test_an_agent_that_finds_the_middle_everywhere_sends_zeros():
    _, one = agent()
    for _ in range(3):
        one.tell(one.ask().number, 0.5)
    assert not one.report(0).vector.any()


def told(one, objective, count):
    for _ in range(count):
        question = one.ask()
        one.tell(question.number, objective(question.point[0]))


def test_a_broadcast_is_believed_if_the_own_data_speak_for_it():
    study, one = agent(kernels=SquaredExponential(0.1), users=20)
    features = study.maps[0]
    at = np.linspace(0, 1, 200)[:, None]
    shape = 0.4 * np.exp(-0.5 * ((at[:, 0] - 0.83) / 0.06) ** 2)
    theta = np.linalg.lstsq(features(at), shape, rcond=None)[0]
    vector = np.pad(theta, (0, study.inner.features - theta.size))
    told(one, lambda x: 0.5 + 0.4 * np.exp(-0.5 * ((x - 0.83) / 0.06) ** 2), 4)
    one.receive(Broadcast(0, vector[None]))
    assert one.ask().point[0] == pytest.approx(0.83, abs=0.1)
    _, other = agent(kernels=SquaredExponential(0.1), users=20)
    told(other, lambda x: 0.9 if x < 0.5 else 0.1, 12)
    other.receive(Broadcast(0, vector[None]))
    assert other.best()[0] < 0.55


def test_wrong_use_is_one_sentence_without_private_values():
    _, one = agent()
    question = one.ask()
    for number, value, words in (
        (7, 0.5, "number is 7"),
        ("x", 0.5, "number is 'x'"),
        (question.number, "HIV", "is no finite number"),
        (question.number, float("nan"), "is no finite number"),
    ):
        with pytest.raises(InputError, match=words) as refused:
            one.tell(number, value)
        assert "HIV" not in str(refused.value)
    one.tell(question.number, 0.5)
    with pytest.raises(InputError, match="unanswered"):
        one.tell(question.number, 0.5)
    with pytest.raises(InputError, match="kernels has 2 entries"):
        FederatedStudy(kernels=(SquaredExponential(0.1), SquaredExponential(0.2)))
    with pytest.raises(InputError, match="users is 1"):
        FederatedStudy(users=1)


def test_others_help():
    """One of many agents with one objective: the last broadcast points at its best."""
    study = FederatedStudy(objective=liking, users=25, epsilon=8.0, evaluations=4, rounds=1)
    with closing(Ledger(study.plan(), rng=np.random.default_rng(0))) as ledger:
        result = study.run([0.0] * 25, ledger, np.random.default_rng(1))
    assert result.summary["recommended"] == pytest.approx([0.4, 0.4], abs=0.25)
    assert len(result.owner.summary["best of each agent"]) == 25
    assert "best of each agent" not in repr(result)
