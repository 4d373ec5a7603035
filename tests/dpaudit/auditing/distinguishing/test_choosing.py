"""A pilot picks the score that promises most; an earlier one wins ties."""

import sys

import numpy as np
import pytest

from dpaudit import InputError
from dpaudit.auditing.distinguishing.choosing import choose_score, first_scores
from dpaudit.auditing.distinguishing.scores import FixedScore, Identity, LinearScore

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
