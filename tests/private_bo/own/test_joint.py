"""Joint trust: sums of groups, and what the privatiser refuses."""

from __future__ import annotations

import math
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from subject_conformance import SubjectConformance

from dpaudit import Ledger, guarantee
from dpaudit.base.errors import InputError
from private_bo.own import JointStudy, Privatiser
from private_bo.own.studies import Fixed


def liking(x, taste):
    return math.exp(-8 * float(np.square(x - 0.4).sum())) + 0.01 * taste


class TestConformance(SubjectConformance):
    subject = JointStudy(objective=liking, users=11, group=4)

    def data(self):
        return list(range(11))

    def neighbour(self):
        return [Fixed(1.0), *range(1, 11)]

    def bad_data(self):
        return [[1.0], "records", 3, [float("nan")] * 11]


@Ledger.register
class Silent:
    """A ledger without noise."""

    def __init__(self):
        self.sums = {}

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
        (questions[1], "bob", float("nan"), "NaN"),
        (questions[1], "bob", "HIV", "no array of numbers"),
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


def test_too_many_groups_are_refused():
    with pytest.raises(InputError, match="makes 20000 groups"):
        JointStudy(users=20_000, group=1)


def test_a_search_finds_the_best():
    study = JointStudy(objective=liking, users=400, epsilon=2.0)
    with closing(Ledger(study.plan(), rng=np.random.default_rng(0))) as ledger:
        result = study.run([0.0] * 400, ledger, np.random.default_rng(1))
    assert result.summary["recommended"] == pytest.approx([0.4, 0.4], abs=0.2)
    assert len(result.series["released"]) == len(ledger) == 100
