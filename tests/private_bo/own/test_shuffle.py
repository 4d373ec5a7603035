"""A trusted shuffler between users and server: what it takes, and what it releases."""

from __future__ import annotations

import math

import numpy as np
import pytest
from rehearsals import rules
from subject_conformance import SubjectConformance

from dpaudit import InputError, Ledger, TrustModel, certify, guarantee
from dpaudit.certificate import SubjectRecord
from private_bo.own import BoxSpace, ShuffleStudy, optimise, study
from private_bo.own.studies import ConstantUser


def liking(x, taste):
    return math.exp(-8 * float(np.square(x - 0.4).sum())) + 0.01 * taste


SMALL = ShuffleStudy(objective=liking, users=60, epsilon=1.0, batch=30, points=3)


class TestShuffleStudy(SubjectConformance):
    subject = SMALL

    def data(self):
        return list(range(60))

    def neighbour(self):
        return [ConstantUser(1e6), *range(1, 60)]

    def bad_data(self):
        return [[1.0], "records", 3, [float("nan")] * 60, ["word"] * 60]


@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_the_plan_proves_the_claim_under_central_trust(epsilon):
    mine = study(None, BoxSpace(), users=400, epsilon=epsilon, trust="shuffle", batch=100)
    plan = mine.plan()
    assert [each.mechanism.reports for each in plan.invocations] == [100, 100, 100, 100]
    assert {each.trust for each in plan.invocations} == {TrustModel.CENTRAL}
    assert 0.998 * epsilon <= guarantee(plan, 1e-5).epsilon <= epsilon
    about = {"subject": SubjectRecord("shuffle study"), "findings": mine.findings()}
    made = certify(plan, claim=mine.claim(), delta=1e-5, **about)
    assert "trusted-shuffler" in {each.rule for each in made.findings}


def parties(noise=0, **settings):
    mine = ShuffleStudy(
        **{"users": 10, "batch": 5, "points": 2, "answers": (0.0, 8.0), "epsilon": 20.0} | settings
    )
    ledger = Ledger(mine.plan(), rng=np.random.default_rng(noise))
    rng = np.random.default_rng(1)
    return mine.server(rng), mine.shuffler(ledger, rng), ledger


def test_a_batch_is_asked_about_its_points_and_their_means_are_released():
    server, shuffler, ledger = parties()
    questions = [server.ask() for _ in range(10)]
    assert [q.group for q in questions] == [0, 0, 0, 1, 1, 2, 2, 2, 3, 3]
    assert len({tuple(q.point) for q in questions}) == 4
    for n in range(5):
        shuffler.collect(f"user {n}", [8.0, 0.0])
    first, second = shuffler.release()
    # at ε = 20 a bit lies once in 10^8: the ends of the range arrive as they are
    assert (first.group, second.group) == (0, 1)
    assert (first.value, second.value) == (pytest.approx(8.0), pytest.approx(0.0, abs=1e-6))
    assert first.variance == pytest.approx(16 / 3)
    for n in range(5, 9):
        shuffler.collect(f"user {n}", [8.0, 0.0])
    for released in (first, second, *shuffler.release()):  # one is missing: a coin
        server.tell(released)
    assert len(server.trace) == 4
    assert len(ledger) == 2
    with pytest.raises(InputError, match="and so are all others"):
        shuffler.release()


def test_a_user_answers_once_and_no_private_value_is_shown():
    _, shuffler, ledger = parties()
    shuffler.collect("ann", [1.0, 2.0])
    for user, answers, words in (
        ("ann", [1.0, 2.0], "'ann' has answered"),
        ("bob", [1.0], "answers has 1 entries; it must have one for each of the 2 points"),
        ("bob", [1.0, float("nan")], "NaN"),
        ("bob", ["HIV", 1.0], "no array of numbers"),
    ):
        with pytest.raises(InputError, match=words) as refused:
            shuffler.collect(user, answers)
        assert "HIV" not in str(refused.value)
    for user in ("bob", "cas", "dee", "eve"):
        shuffler.collect(user, [1.0, 2.0])
    with pytest.raises(InputError, match="or the batch is complete"):
        shuffler.collect("fay", [1.0, 2.0])
    assert len(ledger) == 0
    shuffler.release()
    with pytest.raises(InputError, match="'ann' has answered"):
        shuffler.collect("ann", [1.0, 2.0])


def test_a_search_finds_the_best_of_answers_that_are_bits():
    found = optimise(liking, BoxSpace(), users=400, epsilon=3.0, trust="shuffle", batch=80, seed=0)
    assert found.point == pytest.approx([0.4, 0.4], abs=0.25)
    assert found.certificate.guarantee.epsilon <= 3.0
    assert found.certificate.guarantee.delta == 1e-5


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"batch": 61}, "batch is 61; it must be at most the number of users, 60"),
        ({"points": 0}, "points is 0"),
        ({"epsilon": 1e-17}, "epsilon is 1e-17"),
    ],
)
def test_bad_fields_are_one_sentence(fields, said):
    with pytest.raises(InputError, match=f"^{said}"):
        ShuffleStudy(**{"users": 60} | fields)


def test_a_rehearsal_finds_nothing():
    assert rules(SMALL) == set()
