"""One-bit responses through a shuffler: declared, released, learnt from."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from crowds import Crowd, ledger_of, problem
from rehearsals import rules
from subject_conformance import SubjectConformance

from dpaudit import InputError, TrustModel, guarantee
from private_bo.gp import FiniteDomain
from private_bo.local import LDPOneBitGP, ShuffledOneBitGP
from private_bo.local.policies import (
    Users,
    ask_ahead,
    ask_batches,
    expected_earnings,
    prior_covariance,
)
from private_bo.problems.sources import load_problem

SMALL = ShuffledOneBitGP(epsilon=1.0, steps=60, batch=30, points=2)


class OtherFirst(Crowd):
    """The same people, but that the first answers at the end of the range about both points."""

    def respond(self, index, rng):
        response = super().respond(index, rng)
        return replace(response, value=-2.0) if self.asked <= 2 else response


class TestShuffled(SubjectConformance):
    subject = SMALL

    def data(self):
        return problem()

    def neighbour(self):
        return replace(problem(), rewards=OtherFirst())

    def bad_data(self):
        yield []
        yield from (problem(value=value) for value in (math.nan, np.zeros(2), "one", [None]))
        yield load_problem("taipei-sellers", np.random.default_rng(0))


def test_plan_is_of_disjoint_batches_and_proves_the_claim():
    subject = ShuffledOneBitGP(epsilon=1.0)
    plan = subject.plan()
    assert [each.mechanism.reports for each in plan.invocations] == [
        *(50, 50, 50, 75, 112, 168, 252, 378, 567, 298)
    ]
    assert len({each.group for each in plan.invocations}) == 10
    assert {each.trust for each in plan.invocations} == {TrustModel.CENTRAL}
    assert 0.998 <= guarantee(plan, 1e-5).epsilon <= 1.0
    assert str(subject.claim()) == "ε = 1, δ = 1e-05"


def test_a_run_releases_counts_of_batches_alone():
    data = problem()
    with ledger_of(SMALL) as ledger:
        result = SMALL.run(data, ledger, np.random.default_rng(0))
    assert len(ledger) == 2
    assert data.rewards.asked == 120  # both points of each user
    assert len(result.for_owner.series["cumulative regret"]) == 60


def test_whom_users_trust_is_told_with_what_they_keep():
    notes = {each.rule: each for each in SMALL.findings()}
    assert set(notes) == {"trusted-shuffler", "few-batches"}
    assert "There are 2 batches, of 30 users and more" in notes["few-batches"].message
    usual = ShuffledOneBitGP(epsilon=1.0, steps=2000)
    assert len(usual.batches) >= 5
    assert [each.rule for each in usual.findings()] == ["trusted-shuffler"]
    local = float(SMALL.batches[0].local.pair(1.0).pure_epsilon)
    assert f"ε = {math.ceil(1000 * local) / 1000:g} alone" in notes["trusted-shuffler"].message
    alone = ShuffledOneBitGP(epsilon=1.0, steps=9, batch=1)
    assert {each.rule for each in alone.findings()} >= {"nobody-to-hide-among"}
    few = ShuffledOneBitGP(epsilon=0.1, steps=60, batch=30)
    assert "cannot-learn" in {each.rule for each in few.findings()}
    enough = ShuffledOneBitGP(epsilon=0.1, steps=400, batch=200)
    assert "cannot-learn" not in {each.rule for each in enough.findings()}
    assert "cannot-learn" in {each.rule for each in LDPOneBitGP(epsilon=0.1, steps=400).findings()}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"batch": 61}, "batch is 61; it must be at most the number of users, 60"),
        ({"batch": 0}, "batch is 0"),
        ({"points": 0}, "points is 0"),
        ({"delta": 0.0}, "delta is 0.0"),
        ({"epsilon": 1e-17}, "epsilon is 1e-17, so small"),
        ({"answers_per_user": 2}, "answers_per_user is 2; it must be 1"),
    ],
)
def test_bad_fields_are_one_sentence(fields, said):
    with pytest.raises(InputError, match=f"^{said}") as caught:
        ShuffledOneBitGP(**{"steps": 60} | fields)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


def test_batches_of_one_are_local_up_to_10_000():
    alone = ShuffledOneBitGP(epsilon=2.0, steps=12, batch=1)
    assert alone.batches == (alone.batches[0],) * 12
    assert guarantee(alone.plan(), 0.0).epsilon <= 2.0
    with pytest.raises(InputError, match="makes 10001 batches"):
        ShuffledOneBitGP(steps=10_001, batch=1).plan()


def test_the_model_of_an_audit_keeps_the_claim_and_a_batch_of_one_attains_it():
    pair = SMALL.audit_pairs()[0]
    rng = np.random.default_rng(5)
    here, there = (SMALL.audit_release(x, 20_000, rng) for x in (pair.x, pair.x_prime))
    events = range(31)
    worst = max(np.mean(there >= k) - math.exp(1.0) * np.mean(here >= k) for k in events)
    assert worst < 0.02  # δ is 1e-5; six deviations of 20 000 draws
    bare = ShuffledOneBitGP(epsilon=1.0, steps=60, batch=1, points=2)
    here, there = (bare.audit_release(x, 20_000, rng) for x in (pair.x, pair.x_prime))
    assert np.mean(there) / np.mean(here) == pytest.approx(math.e, rel=0.05)


def test_a_rehearsal_finds_nothing():
    assert rules(SMALL) == set()


def test_blind_rounds_gain_nothing_from_what_they_ask():
    """All rounds blind: the best is what looks best now; with one blind it is the old formula."""
    domain = FiniteDomain.grid(4)
    covariance = prior_covariance(domain, problem().kernel)
    mean = np.array([0.0, 0.3, 0.1, 0.0])
    blind = expected_earnings(mean, covariance, 3.0, 40, 40)
    assert blind.argmax() == 1
    assert blind[1] == pytest.approx(40 * 0.3)
    known = expected_earnings(mean, covariance, 3.0, 40)
    assert (known > 40 * mean).all()


def test_a_batch_is_spread_and_then_finds_the_best():
    asked = []

    def release(number, points):
        asked.append(points)
        return [(float(F[point]), 0.01) for point in points]

    users = Users(problem(), lambda user, reward: reward, np.random.default_rng(0))
    F = users.problem.f
    outcome = ask_batches(users, [[5, 5, 5, 5], [5, 5, 5, 5]], [3.0, 3.0], release)
    assert len(set(asked[0])) > 1
    assert set(asked[1]) == {int(F.argmax())}
    assert outcome.choices.tolist() == np.repeat([*asked[0], *asked[1]], 5).tolist()
    alone = ask_ahead(users, 8, 3.0)
    assert len(alone.choices) == 8
