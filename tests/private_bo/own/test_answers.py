"""Local trust: what devices release, and what all studies share."""

from __future__ import annotations

import gc
import math
from contextlib import closing, suppress
from dataclasses import replace

import numpy as np
import pytest
from subject_conformance import SubjectConformance

from dpaudit import Ledger, PlanMismatchError, guarantee
from dpaudit.base.errors import InputError
from private_bo.own import BoxSpace, JointStudy, LocalStudy, Privatiser
from private_bo.own.agent import scale_answer
from private_bo.own.studies import ConstantUser

SECRET = 0.73519284


def liking(x, taste):
    return math.exp(-8 * float(np.square(x - 0.4).sum())) + 0.01 * taste


class TestOneBit(SubjectConformance):
    subject = LocalStudy(objective=liking, users=8, epsilon=1.0)

    def data(self):
        return list(range(8))

    def neighbour(self):
        return [ConstantUser(1.0), *range(1, 8)]

    def bad_data(self):
        return [[1.0], "records", 3, [float("nan")] * 8, ["word"] * 8]


class TestLevels(TestOneBit):
    subject = LocalStudy(objective=liking, users=8, epsilon=5.0, answers=(-3.0, 2.0))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0, 3.0, 20.0])
def test_the_plan_proves_the_claim_and_wastes_nothing(epsilon):
    study = LocalStudy(epsilon=epsilon)
    assert guarantee(study.plan(), 0.0).epsilon == pytest.approx(epsilon, rel=1e-9)
    assert guarantee(study.plan(), 0.0).epsilon <= epsilon
    assert (study.levels.count == 2) is (epsilon < 1.1)


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
        server = study.search(study.check_data([0] * 20), ledger, rng)
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
    assert [scale_answer(y, (-2.0, 6.0)) for y in (-9, -2, 2, 6, 1e300)] == [
        -0.5,
        -0.5,
        0,
        0.5,
        0.5,
    ]


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


class TestConformance(SubjectConformance):
    subject = JointStudy(objective=liking, users=11, group=4)

    def data(self):
        return list(range(11))

    def neighbour(self):
        return [ConstantUser(1.0), *range(1, 11)]

    def bad_data(self):
        return [[1.0], "records", 3, [float("nan")] * 11]


@Ledger.register
class Silent:
    """A ledger without noise."""

    def __init__(self):
        self.sums = {}

    def __len__(self):
        return len(self.sums)

    def release(self, mechanism, value, *, at):
        self.sums[at] = value
        return value


def parties(**fields):
    study = JointStudy(**({"users": 10, "group": 4, "answers": (0.0, 8.0)} | fields))
    ledger = Silent()
    return study.server(np.random.default_rng(0)), study.privatiser(ledger), ledger


def test_groups_cost_what_one_costs():
    study = JointStudy(users=1000, epsilon=0.7, group=7)
    assert study.groups == 143
    assert len(study.plan().invocations) == 143
    assert guarantee(study.plan(), 0.0).epsilon == pytest.approx(0.7, rel=1e-9)
    assert JointStudy(users=500, epsilon=1.0).group_size == 8
    assert JointStudy(users=5, epsilon=1.0).group_size == 1


def test_a_group_is_asked_about_one_point_and_its_mean_is_released():
    server, privatiser, _ = parties()
    questions = [server.ask() for _ in range(10)]
    assert [q.group for q in questions] == [0] * 4 + [1] * 4 + [2] * 2
    assert len({tuple(q.point) for q in questions}) == 3
    order = [5, 0, 9, 1, 4, 8, 2, 6, 3, 7]
    released = {}
    for number in order:
        found = privatiser.collect(questions[number], f"user {number}", number)
        if found:
            released[found.group] = found
    assert list(released) == [2, 0, 1]
    means = {0: 1.5, 1: (4 + 5 + 6 + 7) / 4, 2: 8.0}  # 9 is clipped to 8
    for group, mean in means.items():
        assert released[group].value == pytest.approx(mean)
        server.tell(released[group])
    assert released[2].variance == pytest.approx(64 * (2 / 4 + 0.01 / 2))


def test_who_never_answers_counts_as_the_middle():
    server, privatiser, _ = parties()
    questions = [server.ask() for _ in range(4)]
    assert privatiser.collect(questions[2], "ann", 8.0) is None
    found = privatiser.close(0)
    assert found.value == pytest.approx((8 + 3 * 4) / 4)
    with pytest.raises(InputError, match="group is 0, which has been released"):
        privatiser.collect(questions[0], "bob", 1.0)


def test_a_user_is_in_one_group_alone():
    server, privatiser, ledger = parties()
    questions = [server.ask() for _ in range(10)]
    privatiser.collect(questions[0], "ann", 1.0)
    for question, user, value, words in (
        (questions[0], "bob", 1.0, "each answers once"),
        (questions[5], "ann", 1.0, "each answers once"),
        (questions[1], "bob", float("nan"), "is no finite number"),
        (questions[1], "bob", "HIV", "is no finite number"),
    ):
        with pytest.raises(InputError, match=words) as refused:
            privatiser.collect(question, user, value)
        assert "HIV" not in str(refused.value)
    with pytest.raises(InputError, match="group is 7"):
        privatiser.close(7)
    with pytest.raises(InputError, match="group is True"):
        privatiser.close(True)
    another = Privatiser(privatiser.study, ledger)  # as after a restart
    with pytest.raises(InputError, match="each answers once"):
        another.collect(questions[5], "ann", 1.0)
    with pytest.raises(InputError, match="number is 10"):
        privatiser.collect(replace(questions[9], number=10), "cas", 1.0)
    assert ledger.sums == {}
    privatiser.collect(questions[1], "bob", 1.0)  # a refusal costs no turn


def test_a_resumed_run_puts_nobody_in_a_second_group(tmp_path):
    study = JointStudy(users=4, group=2)
    journal = tmp_path / "ledger.jsonl"
    with suppress(KeyboardInterrupt), Ledger(study.plan(), journal=journal) as ledger:
        server, privatiser = study.server(np.random.default_rng(0)), study.privatiser(ledger)
        questions = [server.ask() for _ in range(4)]
        privatiser.collect(questions[0], "ann", 0.9)
        privatiser.collect(questions[1], "bob", 0.9)
        raise KeyboardInterrupt  # so that the journal stays open
    with closing(Ledger.resume(journal, plan=study.plan())) as resumed:
        with pytest.raises(InputError, match="has 1 releases of other privatisers"):
            study.privatiser(resumed)
        assert len(resumed) == 1


def test_too_many_groups_are_refused():
    with pytest.raises(InputError, match="makes 20000 groups"):
        JointStudy(users=20_000, group=1)


def test_a_search_finds_the_best():
    study = JointStudy(objective=liking, users=400, epsilon=2.0)
    with closing(Ledger(study.plan(), rng=np.random.default_rng(0))) as ledger:
        result = study.run([0.0] * 400, ledger, np.random.default_rng(1))
    assert result.summary["recommended"] == pytest.approx([0.4, 0.4], abs=0.2)
    assert len(result.series["released"]) == len(ledger) == 100


@pytest.mark.parametrize(
    ("kind", "users", "epsilon", "finds"),
    [
        (LocalStudy, 50, 0.5, False),
        (LocalStudy, 45, 0.5, True),  # variance 4.17 of a bit against 0.09 a user
        (JointStudy, 120, 0.1, True),  # ten sums of 12, each with a variance of 200/12²
        (JointStudy, 130, 0.1, True),
        (JointStudy, 400, 0.1, False),
    ],
)
def test_too_few_users_to_learn_from_are_a_finding_before_the_run(kind, users, epsilon, finds):
    study = kind(users=users, epsilon=epsilon)
    if kind is LocalStudy:
        expected = 0.25 * ((math.exp(0.5) + 1) / (math.exp(0.5) - 1)) ** 2 / users
    else:
        size = users // 10
        expected = (2 / epsilon**2 / size**2 + 0.01 / size) / 10
    assert 1 / study.information == pytest.approx(expected, rel=1e-9)
    assert (expected >= 0.09) is finds
    assert [each.rule for each in study.findings()] == ["usual-range", *["cannot-learn"] * finds]


@pytest.mark.parametrize(("group", "finds"), [(None, False), (8, False), (24, False), (25, True)])
def test_a_group_that_is_larger_than_noise_asks_for_is_a_finding(group, finds):
    study = JointStudy(users=500, epsilon=1.0, group=group)
    assert [each.rule for each in study.findings()] == ["usual-range", *["large-group"] * finds]
    assert not finds or "With 25 users asked about each point, only 20" in str(study.findings())
