"""What an audit decides before its first run."""

import sys

import numpy as np
import pytest

from dpaudit import Claim
from dpaudit.auditing.distinguishing.choosing import learn_scores
from dpaudit.auditing.distinguishing.design import Design, learner_for, score_tuple
from dpaudit.auditing.distinguishing.scores import Identity, LinearScore
from dpaudit.auditing.evidence.events import pilot_size
from dpaudit.mechanisms import LaplacePair

CURVE = LaplacePair(1).delta


def design(curve=CURVE, scores=(), learner=learn_scores, stop_early=False):
    return Design(Claim(1.0), 0.95, curve, scores, learner, stop_early)


@pytest.mark.parametrize("stop_early", [False, True])
@pytest.mark.parametrize("curve", [None, CURVE])
def test_the_tests_share_the_error_rate(curve, stop_early):
    found = design(curve, stop_early=stop_early)
    assert found.point_error + found.curve_error == pytest.approx(0.05)
    assert (found.curve_null() is None) == (curve is None)
    assert found.point_error == pytest.approx(
        0.05 if curve is None else 0.0 if stop_early else 0.005
    )


class Bound:
    def __init__(self):
        self.asked = []

    def lower_bound(self, confidence):
        self.asked.append(confidence)
        return 1.5


def test_the_point_refutes_at_its_share_alone():
    bound = Bound()
    assert design().point_refutes(bound)
    assert bound.asked == [pytest.approx(0.995)]
    assert not design(stop_early=True).point_refutes(bound)
    assert len(bound.asked) == 1


def test_a_pilot_is_larger_where_scores_are_learned_and_none_where_nothing_is_chosen():
    plain = pilot_size(10_000)
    assert design().pilot((), 10_000) == plain
    assert design().pilot((3,), 10_000) == 2.5 * plain
    assert design(learner=None, scores=(LinearScore((1.0,) * 3),)).pilot((3,), 10_000) == plain
    assert design(stop_early=True).pilot((), 10_000) == 0
    assert design(stop_early=True).pilot((3,), 10_000) == 2.5 * plain
    scores = (LinearScore((1.0,) * 3),)
    assert design(stop_early=True, scores=scores).pilot((3,), 10_000) == 0


def test_one_score_or_several():
    one = Identity()
    assert score_tuple(None) == ()
    assert score_tuple(one) == score_tuple([one]) == (one,)


def test_scores_are_learned_where_none_is_given_or_where_it_is_wanted():
    def own(x, x_prime):
        return [Identity()]

    assert learner_for(None, ()) is learner_for(True, (Identity(),)) is learn_scores
    assert learner_for(None, (Identity(),)) is learner_for(False, ()) is None
    assert learner_for(own, (Identity(),)) is own


def test_a_record_says_that_no_classifier_was_trained(monkeypatch):
    assert design().not_learned((3,)) == ""
    monkeypatch.setitem(sys.modules, "sklearn", None)
    assert "scikit-learn, which is not installed" in design().not_learned((3,))
    assert design().not_learned(()) == ""
    assert design(learner=None).not_learned((3,)) == ""
    assert design(learner=lambda x, x_prime: [np.sum]).not_learned((3,)) == ""
