"""A trusted shuffler between users and server: whom it draws, and what it passes on."""

from __future__ import annotations

import math
from collections import Counter
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from rehearsals import rules
from subject_conformance import SubjectConformance

from dpaudit import InputError, Ledger, RandomizedResponse, TrustModel, certify, guarantee
from dpaudit.certificate import SubjectRecord
from dpaudit.plan import Plan
from private_bo.levels import Levels
from private_bo.own import BoxSpace, LocalStudy, ShuffleStudy, optimise, study
from private_bo.own.shuffle import hidden, hidden_levels
from private_bo.own.studies import ConstantUser

PAGE = Path(__file__).parents[3] / "docs/own-problems.md"


def liking(x, taste):
    return math.exp(-8 * float(np.square(x - 0.4).sum())) + 0.01 * taste


SMALL = ShuffleStudy(objective=liking, users=40, epsilon=1.0)
ALONE = ShuffleStudy(objective=liking, users=8, epsilon=3.0)


class TestShuffleStudy(SubjectConformance):
    subject = SMALL

    def data(self):
        return list(range(self.subject.users))

    def neighbour(self):
        return [ConstantUser(1e6), *range(1, self.subject.users)]

    def bad_data(self):
        return [[1.0], "records", 3]


class TestNobodyToHideAmong(TestShuffleStudy):
    subject = ALONE


@pytest.mark.parametrize(("epsilon", "delta", "users"), [(1e-3, 0.1, 1), (1e6, 1e-5, 3)])
def test_a_claim_that_is_met_by_delta_alone_or_by_no_level_has_a_plan(epsilon, delta, users):
    mine = study(None, BoxSpace(), users=users, epsilon=epsilon, delta=delta, trust="shuffle")
    assert guarantee(mine.plan(), delta).epsilon <= epsilon
    assert len(mine.findings()) <= 3


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 5.0])
def test_the_plan_proves_the_claim_and_wastes_little(epsilon):
    mine = study(None, BoxSpace(), users=500, epsilon=epsilon, trust="shuffle")
    plan = mine.plan()
    assert mine.hides
    assert {each.trust for each in plan.invocations} == {TrustModel.CENTRAL}
    assert 0.99 * epsilon <= guarantee(plan, 1e-5).epsilon <= epsilon
    about = {"subject": SubjectRecord("shuffle study"), "findings": mine.findings()}
    made = certify(plan, claim=mine.claim(), delta=1e-5, **about)
    (told,) = [each for each in made.findings if each.rule == "trusted-shuffler"]
    local = float(mine.mechanism.pair(1.0).pure_epsilon)
    assert f"only ε = {math.ceil(1000 * local) / 1000:g} protects" in told.message
    more = RandomizedResponse.calibrated(epsilon=1.01 * local, k=mine.mechanism.k)
    assert guarantee(Plan.of(hidden(more, 500)), 1e-5).epsilon > epsilon


@pytest.mark.parametrize(("users", "epsilon"), [(500, 0.5), (500, 1.0), (500, 5.0), (40, 10.0)])
def test_an_answer_is_never_noisier_than_under_local_trust(users, epsilon):
    own = ShuffleStudy(users=users, epsilon=epsilon)
    local = LocalStudy(users=users, epsilon=epsilon)
    assert own.variance < local.variance if own.hides else own.variance == local.variance
    assert own.hides is (users == 500)


@pytest.mark.parametrize(
    ("users", "local", "bit", "variance", "count"),
    [(500, "3.11", "0.30", "0.089", 4), (2000, "4.36", "0.26", "0.034", 6)],
)
def test_the_page_states_what_an_answer_costs_and_tells(users, local, bit, variance, count):
    """At ε = 1 and δ = 1e-5; ε₀ is rounded up, and a bit of it has the variance that is stated."""
    levels = hidden_levels(1.0, 1e-5, users)
    epsilon = float(levels.law.pair(1.0).pure_epsilon)
    alone = Levels(RandomizedResponse.calibrated(epsilon=epsilon))
    assert f"{math.ceil(100 * epsilon) / 100:.2f}" == local
    assert (f"{alone.variance:.2f}", f"{levels.variance:.3f}", levels.count) == (
        bit,
        variance,
        count,
    )
    text = PAGE.read_text(encoding="utf-8")
    assert f"| {users} | {local} | {bit} | {variance} ({count}) |" in text
    assert "ε₀ is 3.11 with 500 users, and 4.36 with 2000" in text


def test_without_anybody_to_hide_among_it_is_the_local_search():
    fields = {"objective": liking, "users": 30, "epsilon": 12.0}
    found = []
    for subject in (ShuffleStudy(**fields), LocalStudy(**fields)):
        with closing(Ledger(subject.plan(), rng=np.random.default_rng(0))) as ledger:
            found.append(subject.run([0.0] * 30, ledger, np.random.default_rng(1)).to_dict())
    first, then = found
    assert first["series"] == then["series"]
    assert [each.rule for each in ShuffleStudy(**fields).findings()] == [
        "usual-range",
        "nobody-to-hide-among",
    ]


def parties(**settings):
    mine = ShuffleStudy(**{"users": 60, "answers": (0.0, 8.0)} | settings)
    ledger = Ledger(mine.plan(), rng=np.random.default_rng(0))
    rng = np.random.default_rng(1)
    return mine.server(rng), mine.shuffler(ledger, rng), ledger


def test_every_question_goes_to_one_of_all_users():
    server, shuffler, ledger = parties()
    drawn = Counter()
    for _ in range(60):
        question = server.ask()
        drawn[shuffler.draw()] += 1
        server.tell(shuffler.answer(question, 4.0))
    assert len(server.trace) == len(ledger) == 60
    assert max(drawn.values()) > 1  # by chance at least once in 10^25 runs
    assert set(drawn) <= set(range(60))
    with pytest.raises(InputError, match="users is 60, and that many have been drawn"):
        shuffler.draw()


def test_silence_is_the_middle_and_a_level_is_read_with_its_variance():
    server, shuffler, _ = parties(epsilon=12.0, users=8)
    question = server.ask()
    assert shuffler.draw() == 0
    low = shuffler.answer(question, -3.0)
    shuffler.draw()
    top = shuffler.answer(question, 1e9)
    shuffler.draw()
    silent = shuffler.answer(question, None)
    # at ε = 12 a level lies once in 5000 answers
    assert [low.value, silent.value, top.value] == pytest.approx([0.0, 4.0, 8.0], abs=0.01)
    assert top.variance == pytest.approx(64 * (shuffler.study.levels.variance + 0.01))


def test_draws_and_answers_take_turns_and_no_private_value_is_shown():
    server, shuffler, ledger = parties()
    question = server.ask()
    with pytest.raises(InputError, match="answer is called before draw"):
        shuffler.answer(question, 1.0)
    shuffler.draw()
    with pytest.raises(InputError, match="draw is called before the last user has answered"):
        shuffler.draw()
    for wrong, words in (
        (float("nan"), "is no finite number"),
        ("HIV", "is no finite number"),
        ([1.0], "is an array; it must be one number"),
    ):
        with pytest.raises(InputError, match=words) as refused:
            shuffler.answer(question, wrong)
        assert "HIV" not in str(refused.value)
    assert len(ledger) == 0
    server.tell(shuffler.answer(question, 1.0))
    assert len(ledger) == 1


def test_the_audited_statistic_has_the_law_of_the_run():
    """Of 300 runs: five deviations, so a false alarm of 1e-6."""
    subject = ShuffleStudy(objective=lambda x, own: own, users=40, epsilon=1.0, features=3)
    found = []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        with closing(Ledger(subject.plan(), rng=rng)) as ledger:
            shuffler, server = subject.shuffler(ledger, rng), subject.server(rng)
            question, released = server.ask(), []
            for _ in range(40):
                own = shuffler.draw() == 0
                told = shuffler.answer(question, 1.0 * own)
                released.append(told.value)
        top = subject.read(question, subject.mechanism.k - 1).value
        found.append(sum(each == pytest.approx(top) for each in released))
    drawn = subject.audit_release(1, 4000, np.random.default_rng(0))
    error = drawn.std() * (1 / 300 + 1 / 4000) ** 0.5
    assert abs(np.mean(found) - drawn.mean()) < 5 * error
    counted = subject.statistic([np.int64(1), np.int64(0), np.int64(1)])
    assert counted == 2


@pytest.mark.filterwarnings("ignore:.* answers were outside")
def test_a_search_finds_the_best():
    found = optimise(liking, BoxSpace(), users=200, epsilon=3.0, trust="shuffle", seed=0)
    assert found.point == pytest.approx([0.4, 0.4], abs=0.25)
    assert found.certificate.guarantee.epsilon <= 3.0
    assert found.certificate.guarantee.delta == 1e-5


@pytest.mark.filterwarnings("ignore:the objective failed")
@pytest.mark.parametrize("value", [0.0, math.nan], ids=["raises", "is no number"])
@pytest.mark.parametrize("epsilon", [1.0, 12.0], ids=["hidden", "alone"])
def test_an_objective_that_fails_is_one_in_the_middle(value, epsilon):
    """Else a run ends, in public, where the one user on whom it fails is drawn."""

    def failing(point, record):
        return math.nan if math.isnan(value) else 1 / record

    about = {"space": BoxSpace(), "users": [value] * 60, "epsilon": epsilon, "seed": 0}
    found = optimise(failing, trust="shuffle", **about)
    middle = optimise(lambda point, record: 0.5, trust="shuffle", **about)
    assert found.result.to_dict() == middle.result.to_dict()
    with pytest.raises(InputError, match="objective is None"):
        optimise(None, trust="shuffle", **about)


@pytest.mark.parametrize("epsilon", [1.0, 12.0], ids=["hidden", "alone"])
def test_how_often_an_objective_failed_is_told_to_an_experimenter_or_the_owner(epsilon, recwarn):
    about = {"space": BoxSpace(), "users": 20, "epsilon": epsilon, "trust": "shuffle"}
    told = r"^the objective failed for 20 of 20 answers, which counted as the middle"
    with pytest.warns(UserWarning, match=told):
        optimise(lambda point: 1.0, seed=0, **about)
    optimise(lambda point, record: 0.5, seed=0, **about)
    found = optimise(lambda point: 1.0, float_noise=True, **about)
    assert not recwarn.list
    assert found.result.owner.summary == {"failed objectives": 20}
    assert "failed" not in f"{found!r} {found.result.to_dict()} {found.certificate.to_dict()}"


@pytest.mark.parametrize(
    ("error", "ended", "words"),
    [(SystemExit, InputError, "raised SystemExit"), (KeyboardInterrupt, KeyboardInterrupt, None)],
)
def test_an_objective_that_ends_the_process_ends_the_run(error, ended, words):
    def ending(point, record):
        raise error

    with pytest.raises(ended, match=words):
        optimise(ending, BoxSpace(), users=20, epsilon=1.0, trust="shuffle", seed=0)


def test_that_an_answer_came_is_not_hidden_as_in_other_studies():
    secret, *others = SMALL.not_covered()
    assert "must stay its secret" in secret
    assert others == list(ALONE.not_covered())
    assert any("whether and when an answer came" in each for each in others)


@pytest.mark.parametrize(
    ("fields", "said"),
    [({"users": 0}, "users is 0"), ({"epsilon": 1e-17}, "epsilon is 1e-17")],
)
def test_bad_fields_are_one_sentence(fields, said):
    with pytest.raises(InputError, match=f"^{said}"):
        ShuffleStudy(**{"users": 60} | fields)


@pytest.mark.parametrize("subject", [SMALL, ALONE], ids=["hidden", "alone"])
def test_a_rehearsal_finds_nothing(subject):
    assert rules(subject) == set()
