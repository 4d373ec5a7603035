"""Local joint trust: options of one's own, and reports in any order."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import pytest
from subject_conformance import SubjectConformance

from dpaudit import Ledger, guarantee
from dpaudit.base.errors import InputError
from private_bo.own import LocalJointStudy
from private_bo.own.studies import ConstantUser


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


def test_reports_count_in_any_order_and_each_once():
    study = LocalJointStudy(users=5, epsilon=1e4, answers=(0.0, 10.0), features=12)
    assert guarantee(study.plan(), 1e-5).epsilon <= 1e4
    with closing(Ledger(study.plan(), rng=np.random.default_rng(0))) as ledger:
        server = study.server(np.random.default_rng(0))
        asked = [server.ask() for _ in range(5)]
        with pytest.raises(InputError, match="users is 5, and all have been asked"):
            server.ask()
        devices = [study.device(f"user {n}", ledger) for n in range(4)]
        own = [np.array([[0.2 * n, 0.5]]) for n in range(4)]
        reports = [devices[n].answer(asked[n], own[n], lambda _: 0.0) for n in range(4)]
        for number in (3, 0, 2):
            server.tell(reports[number])
        with pytest.raises(InputError, match="turn is 3"):
            server.tell(reports[3])
    assert server.server.rounds == 3
    assert server.best().shape == (2,)


def test_a_search_finds_the_best_among_what_each_may_choose():
    study = LocalJointStudy(objective=liking, users=250, epsilon=1e3)
    with closing(Ledger(study.plan(), rng=np.random.default_rng(0))) as ledger:
        result = study.run([0.0] * 250, ledger, np.random.default_rng(1))
    assert result.summary["recommended"] == pytest.approx([0.4, 0.4], abs=0.25)
