"""Local joint trust: options of one's own, and one level of what was found near a public place."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import pytest
from rehearsals import rules
from subject_conformance import SubjectConformance

from dpaudit import Ledger, guarantee
from dpaudit.base.errors import InputError
from private_bo.own import LocalJointStudy
from private_bo.own.local_joint import Report
from private_bo.own.studies import ConstantUser

SECRET = "a private diagnosis"


def liking(x, taste):
    return float(np.exp(-8 * np.square(x - 0.4).sum())) + 0.01 * taste


def options(taste):
    return np.array([[0.1, 0.1 * taste], [0.4, 0.4]])


class TestConformance(SubjectConformance):
    subject = LocalJointStudy(objective=liking, options=options, users=6, features=8)

    def data(self):
        return list(range(6))

    def neighbour(self):
        return [ConstantUser(1.0), *range(1, 6)]

    def bad_data(self):
        return [[1.0], "records", [float("nan")] * 6, ["word"] * 6]


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 5.0])
def test_the_plan_proves_the_claim_with_no_delta(epsilon):
    study = LocalJointStudy(epsilon=epsilon)
    assert guarantee(study.plan(), 0.0).epsilon == pytest.approx(epsilon, rel=1e-9)
    assert str(study.claim()) == f"ε = {epsilon:g}, δ = 0"


def test_reports_count_in_any_order_and_each_once():
    study = LocalJointStudy(users=5, epsilon=1e2, answers=(0.0, 10.0), features=12)
    rng = np.random.default_rng(0)
    with closing(Ledger(study.plan(), rng=np.random.default_rng(0))) as ledger:
        server = study.server(rng)
        asked = [server.ask() for _ in range(5)]
        with pytest.raises(InputError, match="users is 5, and all have been asked"):
            server.ask()
        devices = [study.device(f"user {n}", ledger, rng) for n in range(4)]
        own = [asked[n].point[None] for n in range(4)]
        reports = [devices[n].answer(asked[n], own[n], lambda _: 10.0) for n in range(4)]
        assert [each.level for each in reports] == [study.levels.count] * 4
        for number in (3, 0, 2):
            server.tell(reports[number])
        with pytest.raises(InputError, match="group is 3, whose result was given"):
            server.tell(reports[3])
        with pytest.raises(InputError, match="level is"):
            server.tell(Report(1, study.levels.law.k))
        with pytest.raises(InputError, match="group is 9"):
            server.tell(Report(9, 0))
    assert [found.group for _, found in server.trace] == [3, 0, 2]
    assert server.best().shape == (2,)


def test_a_device_plays_the_best_of_its_options_and_reports_0_if_that_is_far():
    study = LocalJointStudy(users=60, epsilon=1e2)
    rng = np.random.default_rng(0)
    with closing(Ledger(study.plan(), rng=np.random.default_rng(0))) as ledger:
        server = study.server(rng)
        for number in range(60):
            asked = server.ask()
            far = np.where(asked.point > 0.5, 0.0, 1.0)  # half the square away at least
            own = np.stack([far, asked.point]) if number < 20 else far[None]
            device = study.device(f"user {number}", ledger, rng)
            played = []
            report = device.answer(asked, own, lambda place, to=played: to.append(place) or 0.9)
            assert played == [device.choice] == [1 if number < 20 else 0]
            if number < 20:
                assert report.level > 0
            server.tell(report)
    assert 1 / 3 <= server.near < 0.6  # a distance of ½ is near with probability e^−1 at most


def test_a_device_answers_once_and_shows_no_private_value():
    study = LocalJointStudy(users=3)
    rng = np.random.default_rng(0)

    def broken(place):
        raise ValueError(SECRET)

    with closing(Ledger(study.plan(), rng=rng)) as ledger:
        server = study.server(rng)
        device, asked = study.device("ann", ledger, rng), server.ask()
        for wrong in (broken, lambda place: float("nan"), lambda place: SECRET):
            with pytest.raises(InputError) as refused:
                device.answer(asked, np.zeros((2, 2)), wrong)
            assert SECRET not in str(refused.value)
        for wrong in ([], [[0.1]], [[float("nan"), 0.0]], SECRET):
            with pytest.raises(InputError) as refused:
                device.answer(asked, wrong, lambda place: 0.5)
            assert SECRET not in str(refused.value)
        assert len(ledger) == 0
        device.answer(asked, np.zeros((2, 2)), lambda place: 0.5)
        with pytest.raises(InputError, match="'ann' has answered"):
            device.answer(server.ask(), np.zeros((2, 2)), lambda place: 0.5)


def test_a_search_finds_the_best_among_what_each_may_choose():
    study = LocalJointStudy(objective=liking, users=250, epsilon=5.0)
    with closing(Ledger(study.plan(), rng=np.random.default_rng(0))) as ledger:
        result = study.run([0.0] * 250, ledger, np.random.default_rng(1))
    assert result.summary["recommended"] == pytest.approx([0.4, 0.4], abs=0.2)
    assert set(result.series) == {"released", "x1", "x2"}


def test_options_of_which_few_are_near_are_learnt_from():
    """Ten of each user's own: the objective is known near its best from levels alone."""

    def few(user):
        return np.random.default_rng(user).random((10, 2))

    study = LocalJointStudy(
        objective=lambda x, user: liking(x, 0.0), options=few, users=400, epsilon=5.0
    )
    with closing(Ledger(study.plan(), rng=np.random.default_rng(0))) as ledger:
        server = study.search(list(range(400)), ledger, np.random.default_rng(1))
    assert server.best() == pytest.approx([0.4, 0.4], abs=0.25)
    assert 0.3 < server.near < 0.98


def test_a_rehearsal_finds_nothing():
    assert rules(LocalJointStudy(objective=liking, options=options, users=12, features=8)) == set()
