"""Local trust: what devices release, and what all studies share."""

from __future__ import annotations

import gc
import math
from contextlib import closing

import numpy as np
import pytest
from subject_conformance import SubjectConformance

from dpaudit import Ledger, PlanMismatchError, RandomizedResponse, guarantee
from dpaudit.base.errors import InputError
from private_bo.own import BoxSpace, LocalStudy
from private_bo.own.studies import Fixed, clipped

SECRET = 0.73519284


def liking(x, taste):
    return math.exp(-8 * float(np.square(x - 0.4).sum())) + 0.01 * taste


class TestOneBit(SubjectConformance):
    subject = LocalStudy(objective=liking, users=8, epsilon=1.0)

    def data(self):
        return list(range(8))

    def neighbour(self):
        return [Fixed(1.0), *range(1, 8)]

    def bad_data(self):
        return [[1.0], "records", 3, [float("nan")] * 8, ["word"] * 8]


class TestLaplace(TestOneBit):
    subject = LocalStudy(objective=liking, users=8, epsilon=5.0, answers=(-3.0, 2.0))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0, 3.0, 20.0])
def test_the_plan_proves_the_claim_and_wastes_nothing(epsilon):
    study = LocalStudy(epsilon=epsilon)
    assert guarantee(study.plan(), 0.0).epsilon == pytest.approx(epsilon, rel=1e-9)
    assert guarantee(study.plan(), 0.0).epsilon <= epsilon
    assert isinstance(study.mechanism, RandomizedResponse) is (epsilon < 2.3)


@Ledger.register
class Scripted:
    """A ledger that releases what it is told to."""

    def __init__(self, answers):
        self.answers, self.seen = list(answers), []

    def release(self, mechanism, value, *, unit, at):
        self.seen.append(value)
        return self.answers.pop(0)


def test_a_bit_is_read_without_bias_and_with_its_variance():
    study = LocalStudy(epsilon=1.0, answers=(2.0, 10.0))
    question = study.server(np.random.default_rng(0)).ask()
    lie = study.mechanism.p / 2
    zero, one = (
        study.device("a", Scripted([bit]), np.random.default_rng(0)).answer(question, 5.0)
        for bit in (0, 1)
    )
    mean = {}
    for answer in (2.0, 5.0, 10.0):
        share = (answer - 2) / 8  # of coins that are 1
        heads = share * (1 - lie) + (1 - share) * lie
        mean[answer] = (1 - heads) * zero.value + heads * one.value
        variance = heads * (1 - heads) * (one.value - zero.value) ** 2
        assert variance <= one.variance * (1 + 1e-12)
    assert mean == {answer: pytest.approx(answer) for answer in mean}


def test_coins_have_the_bias_of_the_answer_and_far_answers_are_clipped():
    study = LocalStudy(epsilon=1.0)
    question = study.server(np.random.default_rng(0)).ask()
    ledger = Scripted([0] * 4200)
    device = study.device("a", ledger, np.random.default_rng(1))
    for value in [0.3] * 4000 + [1e9] * 100 + [-1e9] * 100:
        device.answer(question, value)
    assert np.mean(ledger.seen[:4000]) == pytest.approx(0.3, abs=0.04)  # 5.5 deviations
    assert ledger.seen[4000:] == [1] * 100 + [0] * 100


def test_a_device_answers_once_and_shows_no_private_value():
    study = LocalStudy(users=3, epsilon=4.0)
    rng = np.random.default_rng(0)
    with closing(Ledger(study.plan(), rng=rng)) as ledger:
        server = study.server(rng)
        device, question = study.device("ann", ledger, rng), server.ask()
        for wrong in (float("nan"), "HIV", [SECRET, SECRET], None):
            with pytest.raises(InputError) as refused:
                device.answer(question, wrong)
            assert "HIV" not in str(refused.value)
            assert str(SECRET) not in str(refused.value)
        assert len(ledger) == 0
        device.answer(question, SECRET)
        with pytest.raises(PlanMismatchError):
            device.answer(server.ask(), 0.2)


def reachable(root):
    """All floats that can be reached from an object, but through classes, modules and code."""
    seen, todo, found = set(), [root], []
    while todo:
        one = todo.pop()
        if id(one) in seen or isinstance(one, type) or callable(one):
            continue
        seen.add(id(one))
        if isinstance(one, float):
            found.append(one)
        elif isinstance(one, np.ndarray):
            found += one.ravel().tolist()
        todo += gc.get_referents(one)
    return found


@pytest.mark.parametrize("epsilon", [1.0, 6.0])
def test_the_server_holds_no_answer(epsilon):
    study = LocalStudy(objective=lambda x, user: SECRET, users=20, epsilon=epsilon)
    rng = np.random.default_rng(0)
    with closing(Ledger(study.plan(), rng=rng)) as ledger:
        server = study.play(study.people([0] * 20), ledger, rng)
    held = np.array(reachable(server))
    assert len(held) > 100
    for private in (SECRET, SECRET - 0.5):
        assert np.abs(held - private).min() > 1e-9


def test_a_search_without_truth_finds_the_best_and_invents_no_regret():
    study = LocalStudy(objective=liking, users=200, epsilon=6.0, space=BoxSpace((-1, 0), (1, 2)))
    with Ledger(study.plan(), rng=np.random.default_rng(0)) as ledger:
        result = study.run([0.0] * 200, ledger, np.random.default_rng(1))
    assert result.summary["recommended"] == pytest.approx([0.4, 0.4], abs=0.2)
    assert result.owner is None
    assert set(result.series) == {"released", "x1", "x2"}


def test_answers_are_scaled():
    assert [clipped(y, (-2.0, 6.0)) for y in (-9, -2, 2, 6, 1e300)] == [-0.5, -0.5, 0, 0.5, 0.5]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"space": 3}, "space is 3; it must be a BoxSpace or PointSpace"),
        ({"kernels": ()}, "kernels is"),
        ({"kernels": 0.2}, "it must hold kernels"),
        ({"objective": 3}, "objective is 3; it must be a function"),
        ({"answers": (1.0, 1.0)}, "answers"),
        ({"users": 0}, "users is 0"),
        ({"epsilon": -1.0}, "epsilon is -1"),
    ],
)
def test_wrong_settings_are_refused(fields, words):
    with pytest.raises(InputError, match=words):
        LocalStudy(**fields)


def test_without_an_objective_nothing_runs():
    study = LocalStudy(users=2)
    with pytest.raises(InputError, match="objective is None"):
        study.measure(np.zeros(2), 0)
