"""A pilot picks the score that promises most; an earlier one wins ties.

Scores that a far_pilot teaches, with scikit-learn and without.
"""

import sys

import numpy as np
import pytest
from score_conformance import ScoreConformance

from dpaudit import AuditPair, Claim, InputError, UnsupportedError
from dpaudit.auditing import (
    BlackBox,
    LearnedScore,
    LinearScore,
    audit_release,
    audit_subject,
    learn_scores,
)
from dpaudit.auditing.distinguishing.choosing import choose_score, first_scores
from dpaudit.auditing.distinguishing.scores import FixedScore, Identity, MeansScore

SETTINGS = {"test_runs": 4000, "confidence": 0.95}


def pilot(size=2000, shape=(2,)):
    """The first entry of x is larger by 2; nothing else differs."""
    x, x_prime = np.random.default_rng(0).laplace(size=(2, size, *shape))
    x[:, 0] += 2.0
    return x, x_prime


def test_the_best_score_is_chosen_wherever_it_stands():
    best, useless = LinearScore((1.0, 0.0)), LinearScore((0.0, 1.0))
    for scores in ([best, useless], [useless, best]):
        choice = choose_score(scores, *pilot(), 0.0, **SETTINGS, learner=None)
        assert choice.score is best
        assert 1.2 < choice.promise < 2.0
        assert choice.judged_on[0].shape == (2000, 2)


def test_of_equal_scores_the_first_is_chosen():
    one, two = (LinearScore((1.0, 0.0), name=name) for name in ("one", "two"))
    assert choose_score([one, two], *pilot(), 0.0, **SETTINGS, learner=None).score is one


def test_a_score_is_not_judged_on_what_it_was_trained_on():
    seen = []

    def learner(x, x_prime):
        seen.append((x, x_prime))
        return [FixedScore(lambda outputs: outputs[:, 0])]

    x, x_prime = pilot()
    choice = choose_score([], x, x_prime, 0.0, **SETTINGS, learner=learner)
    ((trained, _),) = seen
    np.testing.assert_array_equal(trained, x[:1000])
    np.testing.assert_array_equal(choice.judged_on[0], x[1000:])


def test_without_any_score():
    with pytest.raises(InputError, match="there is no score to choose from"):
        choose_score([], *pilot(), 0.0, **SETTINGS, learner=None)


def test_the_first_scores_need_no_training(monkeypatch):
    assert first_scores(np.zeros(5)) == first_scores(np.zeros((5, 1))) == [Identity()]
    assert first_scores(np.zeros((5, 2))) == []
    monkeypatch.setitem(sys.modules, "sklearn", None)
    total, first, second = first_scores(np.zeros((5, 2)))
    outputs = np.array([[1.0, 10.0]])
    assert [float(each(outputs)[0]) for each in (total, first, second)] == [11.0, 1.0, 10.0]
    assert len(first_scores(np.zeros((5, 100)))) == 65


PAIR = AuditPair(0.0, 1.0)


def power_at(score, x, x_prime, level=0.1):
    """Chance of the upper tail under x, where it has the given chance under x'."""
    cut = np.quantile(score(x_prime), 1 - level)
    return float((score(x) > cut).mean())


def copied(data, rng, size):
    """Noise of one entry is copied into another: neither alone leaks more than claimed."""
    noise = rng.laplace(size=size)
    return np.stack([data + noise, noise + 1e-3 * rng.normal(size=size)], axis=1)


def twofold(data, rng, size):
    """Both entries leak, each by itself."""
    return data + 0.3 * rng.laplace(size=(size, 2))


def far_pilot(scale):
    """Outputs of :func:`twofold`, and its negative half."""
    rng = np.random.default_rng(0)
    return twofold(scale, rng, 400), twofold(0.0, rng, 400)


class Learned(ScoreConformance):
    release = staticmethod(lambda data, size, rng: data + 0.3 * rng.laplace(size=(size, 2)))
    pair = AuditPair(0.3, 0.0)
    holds = Claim(2.0)
    broken = Claim(0.8)


class TestLogisticConforms(Learned):
    score = LearnedScore.logistic(*far_pilot(0.3))


class TestBoostedConforms(Learned):
    score = LearnedScore.boosted(*far_pilot(0.3))


def test_logistic_comes_near_the_best_linear_score():
    rng = np.random.default_rng(3)
    x, x_prime = rng.normal(size=(2, 2000, 4))
    x += 0.5
    fresh = rng.normal(size=(2, 50_000, 4))
    score = LearnedScore.logistic(x, x_prime)
    best = power_at(LinearScore((1.0,) * 4), fresh[0] + 0.5, fresh[1])
    assert power_at(score, fresh[0] + 0.5, fresh[1]) > best - 0.05


def test_boosting_finds_what_no_linear_score_can():
    rng = np.random.default_rng(4)
    x, x_prime = rng.normal(size=(2, 4000, 2))
    x[:, 1] = np.sign(x[:, 0]) * np.abs(x[:, 1])
    choice = choose_score([], x, x_prime, 0.0, test_runs=4000, confidence=0.95)
    assert "gradient boosting" in choice.score.method


def test_infinite_outputs_are_taken():
    outputs = np.array([[np.inf, 0.0], [-np.inf, 1.0]] * 20)
    score = LearnedScore.logistic(outputs[::2], outputs[1::2])
    assert np.isfinite(score(outputs)).all()


def test_what_is_learned_follows_from_the_outputs():
    rng = np.random.default_rng(0)
    numbers, arrays, atoms = rng.normal(size=40), rng.normal(size=(300, 2)), np.arange(40.0) % 3
    assert [*learn_scores(numbers, numbers)] == []
    assert [each.method for each in learn_scores(arrays, arrays + 1)] == [
        "learned score (logistic regression)",
        "learned score (gradient boosting)",
        "learned score (normal laws)",
    ]
    assert [each.method for each in learn_scores(atoms, atoms)] == [
        "black-box, learned log ratio of discrete outputs"
    ]


class TestMeansConforms(Learned):
    score = MeansScore.fit(*far_pilot(0.3))


@pytest.mark.parametrize("signs", [(1.0,), (1.0, -1.0)])
def test_of_many_entries_that_tell_a_little_each_nearly_all_is_learned(signs):
    """Together they move by two standard deviations; alone each by a fifteenth of one."""
    rng, shift = np.random.default_rng(5), np.resize(signs, 900) / 15
    x, x_prime = rng.normal(size=(2, 2000, 900))
    fresh = rng.normal(size=(2, 4000, 900))
    x, moved = x + shift, fresh[0] + shift
    best = power_at(LinearScore(tuple(shift)), moved, fresh[1])
    choice = choose_score([], x, x_prime, 0.0, test_runs=18_000, confidence=0.95)
    assert choice.score.name in ("sum of the output", "weighted sum of the entries")
    assert power_at(choice.score, moved, fresh[1]) > 0.8 * best


def test_of_one_entry_that_varies_there_is_nothing_to_learn():
    x, x_prime = np.random.default_rng(0).normal(size=(2, 200, 3))
    x[:, [0, 2]] = x_prime[:, [0, 2]] = 7.0
    (score,) = learn_scores(x, x_prime)
    np.testing.assert_array_equal(score(x), x[:, 1])


def test_arrays_are_told_apart_by_a_learned_score():
    record = audit_release(BlackBox(copied), PAIR, epsilon=1.0, runs=4000, seed=2)
    assert record.refuted
    assert record.method.startswith("learned score")
    assert "not_learned" not in record.details


class TestWithoutScikitLearn:
    @pytest.fixture(autouse=True)
    def missing(self, monkeypatch):
        for module in ("sklearn", "sklearn.linear_model", "sklearn.ensemble"):
            monkeypatch.setitem(sys.modules, module, None)

    def test_arrays_are_audited_by_sum_and_entries_and_the_record_says_so(self):
        record = audit_release(BlackBox(twofold), PAIR, epsilon=1.0, runs=2000, seed=2)
        assert record.refuted
        assert record.details["score"] == "black-box, threshold on the sum"
        assert record.details["not_learned"] == (
            "No score was learned: a learned score of arrays needs scikit-learn, which is not "
            "installed; install it with pip install 'dpaudit[learn]'."
        )

    def test_subjects_are_audited_all_the_same(self):
        from examples import Answers

        assert "not_learned" not in audit_subject(Answers(), runs=300, seed=0).details

    def test_numbers_need_none(self):
        record = audit_release(
            lambda data, size, rng: data + rng.laplace(size=size),
            PAIR,
            epsilon=1.0,
            runs=300,
            seed=0,
            learn=True,
        )
        assert "not_learned" not in record.details

    def test_whoever_asks_for_learning_is_told(self):
        with pytest.raises(UnsupportedError, match=r"needs scikit-learn, .* 'dpaudit\[learn\]'"):
            audit_release(BlackBox(copied), PAIR, epsilon=1.0, runs=2000, seed=2, learn=True)
        with pytest.raises(UnsupportedError, match=r"dpaudit\[learn\]"):
            LearnedScore.boosted(np.zeros((4, 2)), np.ones((4, 2)))

    def test_nothing_is_learned_where_nobody_wants_it(self):
        with pytest.raises(InputError, match="there is no score to choose from"):
            audit_release(BlackBox(copied), PAIR, epsilon=1.0, runs=2000, seed=2, learn=False)
